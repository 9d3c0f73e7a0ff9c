"""`ci-local`: the gate's checks, plan, chunks and verdict in one go, on this machine."""

from __future__ import annotations

import contextlib
import datetime
import os
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ci_tools.config import Config
from ci_tools.edges import git
from ci_tools.errors import ExitCode
from ci_tools.image.engines.obtain import obtain_environment
from ci_tools.image.identity import EnvironmentRequest
from ci_tools.lanes.chunk import ChunkRun, run_chunk
from ci_tools.lanes.conclude import conclude
from ci_tools.lanes.preflight import (
    expected_image,
    load_roster_input,
    run_preflight,
    write_preflight,
)
from ci_tools.planning.format import render_plan
from ci_tools.planning.making import make_plan
from ci_tools.planning.plan import Plan, PlanRequest
from ci_tools.records.layout import PLAN, PREFLIGHT
from ci_tools.roster.lock import Lane, RosterLock
from ci_tools.roster.selection import is_selected
from ci_tools.tree import Tree
from ci_tools.verdict.decide import Demand


@dataclass(frozen=True, kw_only=True)
class LocalRequest:
    """What a person asked for on this machine.

    Attributes:
        tree: The repository.
        config: Its configuration.
        environment: Which engine, and what it may do to get the image.
        only: The words of `ONLY=`; empty: everything.
        report: Gets the progress, a line at a time.
    """

    tree: Tree
    config: Config
    environment: EnvironmentRequest
    only: str
    report: Callable[[str], None]


def run_local(request: LocalRequest) -> ExitCode:
    """Run the lane and print its verdict; the results stay below `.ci-tools/results/`."""
    tree, report = request.tree, request.report
    results = make_results_folder(tree)
    report(f"results: {tree.relative(results)}")
    preflight = run_preflight(
        tree,
        request.config,
        base=None,
        is_blocking=False,
        base_image=request.environment.base_image,
    )
    write_preflight(results / PREFLIGHT, preflight)
    for notice in preflight.notices:
        report(f"notice: {notice}")
    if preflight.findings:
        return conclude(tree, results, results, Demand(is_blocking=False), report)
    loaded = load_roster_input(tree, request.config)
    plan = plan_lane(tree, request.config, loaded.lock, request.only, is_one_chunk=True)
    (results / PLAN).write_text(render_plan(plan), encoding="utf-8")
    ready = obtain_environment(request.environment)
    labelled = label_lines(report, ready.identity.label)
    run = ChunkRun(
        tree=tree, config=request.config, environment=ready, results=results, report=labelled
    )
    for chunk in plan.chunks:
        labelled(f"chunk {chunk.number} of {len(plan.chunks)}: {chunk.test_count} tests")
        run_chunk(run, plan, chunk.number)
    return conclude(tree, results, results, Demand(is_blocking=False), report)


def label_lines(report: Callable[[str], None], label: str) -> Callable[[str], None]:
    """Return a reporter that says on every line what the lines are not from."""
    return report if not label else lambda line: report(f"[{label}] {line}")


def plan_lane(
    tree: Tree, config: Config, lock: RosterLock, only: str, *, is_one_chunk: bool = False
) -> Plan:
    """Return the gate's plan; `only` makes it partial.

    Args:
        tree: The repository.
        config: Its configuration.
        lock: The roster lock.
        only: The words of `ONLY=`; empty: everything.
        is_one_chunk: Cut nothing: one machine runs it all.

    Raises:
        UsageError: A word of `only` matches no id.
    """
    request = PlanRequest(
        lane=Lane.GATE,
        selection=split_selection(lock, only),
        commit=git.head_commit(tree.root),
        image=expected_image(tree),
        tests_per_chunk=len(lock.lines) + 1 if is_one_chunk else config.run.tests_per_chunk,
    )
    return make_plan(lock, request)


def split_selection(lock: RosterLock, only: str) -> tuple[str, ...]:
    """Return the words of `ONLY=`: one id with spaces, lines, or words quoted as in a shell."""
    text = only.strip()
    if not text:
        return ()
    if any(is_selected(line.test_id, text) for line in lock.lines):
        return (text,)
    if "\n" in text:
        return tuple(line.strip() for line in text.splitlines() if line.strip())
    try:
        return tuple(shlex.split(text))
    except ValueError:
        return (text,)


def make_results_folder(tree: Tree) -> Path:
    """Return a new folder for the results of one run; `latest` points to it."""
    folder = tree.state / "results"
    stamp = datetime.datetime.now(datetime.UTC).strftime("%Y%m%dT%H%M%SZ")
    results = folder / f"{stamp}-{os.getpid()}"
    results.mkdir(parents=True)
    link = folder / f".latest-{os.getpid()}"
    with contextlib.suppress(OSError):
        link.symlink_to(results.name)
        link.replace(folder / "latest")
    return results
