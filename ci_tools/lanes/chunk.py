"""Runs one chunk in a ready environment and leaves its records in a folder."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ci_tools.config import Config
from ci_tools.edges import git
from ci_tools.edges.machine import find_memory_bytes
from ci_tools.errors import ExitCode, InfrastructureError, UsageError
from ci_tools.image.execute import new_launch_name, run_inside
from ci_tools.image.identity import Launch, ReadyEnvironment
from ci_tools.lanes.carryover import find_carried
from ci_tools.planning.plan import Plan, PlannedChunk, Scope
from ci_tools.records.layout import CHUNK_JOURNAL, LAUNCH, chunk_folder
from ci_tools.running.worklist import WorkFile, Worklist, write_worklist
from ci_tools.tree import Tree

_RUNNER_VARIABLES = ("ImageOS", "ImageVersion", "RUNNER_NAME", "RUNNER_OS", "GITHUB_RUN_ID")


@dataclass(frozen=True, kw_only=True)
class ChunkRun:
    """Where and how chunks run.

    Attributes:
        tree: The tree under test.
        config: Its configuration.
        environment: What the chunk runs in.
        results: The folder that gets one `chunk-NNN/` for each chunk.
        report: Gets the progress, a line at a time.
    """

    tree: Tree
    config: Config
    environment: ReadyEnvironment
    results: Path
    report: Callable[[str], None]


def run_chunk(run: ChunkRun, plan: Plan, number: int) -> ExitCode:
    """Run one chunk of a plan.

    Returns:
        GREEN when every file's process ended well, RED otherwise: the verdict decides.

    Raises:
        UsageError: The chunk's folder exists already.
        InfrastructureError: The environment could not start the supervisor.
    """
    chunk = plan.chunk(number)
    return run_worklist(run, chunk_folder(run.results, number), _worklist(run, plan, chunk))


def _worklist(run: ChunkRun, plan: Plan, chunk: PlannedChunk) -> Worklist:
    is_partial = plan.scope is Scope.PARTIAL
    return Worklist(
        plan=plan.hash,
        chunk=chunk.number,
        lane=plan.lane.value,
        files=tuple(
            WorkFile(path=file.path, ids=file.ids if is_partial else None) for file in chunk.files
        ),
        packages=run.config.packages,
        lock=run.tree.relative(run.tree.gate_requirements),
        timeout_seconds=run.config.run.file_timeout_seconds,
        file_memory_bytes=run.config.run.file_memory_bytes,
        preload=run.config.run.preload,
    )


def run_worklist(run: ChunkRun, folder: Path, worklist: Worklist) -> ExitCode:
    """Run a worklist with its records in `folder`, which must not exist yet.

    Raises:
        As `run_chunk`.
    """
    try:
        folder.mkdir(parents=True)
    except FileExistsError as error:
        raise UsageError(
            f"{folder} exists already, and records of two runs must not mix",
            fix="name another --results folder, or remove it",
        ) from error
    carried = find_carried(run.tree, run.config, run.environment, run.report, worklist)
    worklist = carried.prepare(worklist)
    write_worklist(folder, worklist)
    text = json.dumps(_describe_launch(run), indent=1, sort_keys=True) + "\n"
    (folder / LAUNCH).write_text(text, encoding="utf-8")
    launch = Launch(
        tree=run.tree.root,
        results=run.results.resolve(),
        memory_bytes=find_memory_bytes(),
        variables={},
        name=new_launch_name(f"chunk-{worklist.chunk}"),
        cache=carried.entries,
    )
    inside = f"{run.environment.results_inside(launch.results)}/{folder.name}"
    try:
        ending = run_inside(
            run.environment,
            [run.environment.python, "-m", "ci_tools.running.supervisor", inside],
            launch,
            on_line=run.report,
        )
    finally:
        carried.keep(folder)
    if not (folder / CHUNK_JOURNAL).exists():
        raise InfrastructureError(
            f"the environment did not start the tests (exit {ending.code}); its output is above",
            fix="try the environment alone: python3 -m ci_tools image exec -- python -V",
        )
    return _exit_code(ending.code)


def _exit_code(code: int) -> ExitCode:
    known = (ExitCode.GREEN, ExitCode.RED, ExitCode.INFRASTRUCTURE, ExitCode.INTERRUPTED)
    return next((known_code for known_code in known if known_code == code), ExitCode.INCOMPLETE)


def _describe_launch(run: ChunkRun) -> Mapping[str, Any]:
    root = run.tree.root
    return {
        "image": run.environment.identity.to_json(),
        "commit": git.head_commit(root),
        "dirty": git.is_dirty(root),
        "packages": list(run.config.packages),
        "runner": {
            "host": f"{platform.system()} {platform.machine()}",
            "python": platform.python_version(),
            **{k: os.environ[k] for k in _RUNNER_VARIABLES if k in os.environ},
        },
    }
