"""Tiny projects whose tests the real supervisor runs, recorded as a chunk job records them.

The environment is the one that these tests run in: its own packages make the lock, and a module
`jax` in the project stands in for the one that this environment does not have.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ci_tools.planning.format import render_plan
from ci_tools.planning.making import make_plan
from ci_tools.planning.plan import Plan
from ci_tools.records.layout import (
    CHUNK_JOURNAL,
    LAUNCH,
    PLAN,
    PREFLIGHT,
    chunk_folder,
    journal_path,
    log_path,
)
from ci_tools.records.lines import Lines, load_lines
from ci_tools.running.worklist import WorkFile, Worklist, write_worklist
from ci_tools.verdict.decide import Demand, Verdict, decide
from ci_tools.verdict.evidence import load_evidence
from tests.unit.builders import COMMIT, IMAGE, make_lock, make_request

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT = """\
[tool.pytest.ini_options]
addopts = ["--import-mode=importlib", "--strict-markers"]
markers = ["excluded: set aside"]
"""
JAX = """\
__version__ = "0"
def default_backend(): return "cpu"
def devices(): return ["cpu:0"]
"""
ONE_AT_A_TIME = 1 << 50  # bytes that a file is said to need


@dataclass
class Project:
    """A tree under test, and the records of its run beside it."""

    root: Path
    packages: tuple[str, ...] = ()
    timeout_seconds: float = 60.0
    file_memory_bytes: int = 1
    preload: tuple[str, ...] = ()
    cache: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)

    @property
    def records(self) -> Path:
        return self.root.parent / "records"

    def write(self, path: str, text: str) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def plan(
        self,
        gate: Mapping[str, Sequence[str]],
        excluded: Mapping[str, Sequence[str]] | None = None,
        *,
        selection: tuple[str, ...] = (),
        tests_per_chunk: int = 1000,
    ) -> Plan:
        """Make and record the plan of a lock with these ids, after checks without a finding."""
        request = make_request(selection=selection, tests_per_chunk=tests_per_chunk)
        plan = make_plan(make_lock(gate, excluded), request)
        self.records.mkdir(exist_ok=True)
        (self.records / PLAN).write_text(render_plan(plan), encoding="utf-8")
        text = json.dumps({"schema": 1, "findings": []})
        (self.records / PREFLIGHT).write_text(text, encoding="utf-8")
        return plan

    def prepare(self, worklist: Worklist) -> Path:
        """Write what the host writes before a chunk starts, and return its folder."""
        folder = chunk_folder(self.records, worklist.chunk)
        folder.mkdir(parents=True)
        write_worklist(folder, worklist)
        image = {"kind": "published", **vars(IMAGE)}
        launch = {"image": image, "commit": COMMIT, "packages": list(self.packages)}
        (folder / LAUNCH).write_text(json.dumps(launch), encoding="utf-8")
        return folder

    def worklist(self, plan: Plan, number: int) -> Worklist:
        is_partial = bool(plan.selection)
        return self.make_worklist(
            [
                WorkFile(path=file.path, ids=file.ids if is_partial else None)
                for file in plan.chunk(number).files
            ],
            plan=plan.hash,
            chunk=number,
        )

    def make_worklist(
        self, files: Sequence[WorkFile], *, plan: str = "", chunk: int = 0, list_only: bool = False
    ) -> Worklist:
        return Worklist(
            plan=plan,
            chunk=chunk,
            lane="gate",
            files=tuple(files),
            packages=self.packages,
            lock="requirements/gate.txt",
            timeout_seconds=self.timeout_seconds,
            file_memory_bytes=self.file_memory_bytes,
            preload=self.preload,
            cache=self.cache,
            list_only=list_only,
        )

    def start(self, folder: Path) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "ci_tools.running.supervisor", str(folder)],
            cwd=self.root,
            env={**os.environ, "PYTHONPATH": str(ROOT), **self.variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, plan: Plan) -> list[int]:
        """Run every chunk; return the supervisors' exit codes."""
        codes = []
        for chunk in plan.chunks:
            process = self.start(self.prepare(self.worklist(plan, chunk.number)))
            process.communicate(timeout=300)
            codes.append(process.returncode)
        return codes

    def list_ids(self, *paths: str) -> dict[str, list[str]]:
        """Collect files as `make roster-lock` does; the names below each file."""
        files = [WorkFile(path=path, ids=None) for path in paths]
        process = self.start(folder := self.prepare(self.make_worklist(files, list_only=True)))
        process.communicate(timeout=300)
        assert process.returncode == 0
        found: dict[str, list[str]] = {}
        for index, path in enumerate(paths):
            (selected,) = events_of(load_lines(journal_path(folder, index)), "selected")
            found[path] = [i.removeprefix(f"{path}::") for i in selected["gated"]]
        folder.rename(self.root.parent / f"listing-{time.monotonic_ns()}")
        return found

    def judge(self, plan: Plan) -> Verdict:
        demand = Demand(is_blocking=not plan.selection, expected_plan=plan.hash)
        return decide(load_evidence(self.records, {}), demand)

    def journal(self, index: int = 0, chunk: int = 1) -> Lines:
        return load_lines(journal_path(chunk_folder(self.records, chunk), index))

    def chunk_journal(self, chunk: int = 1) -> Lines:
        return load_lines(chunk_folder(self.records, chunk) / CHUNK_JOURNAL)

    def log(self, index: int = 0, chunk: int = 1) -> str:
        path = log_path(chunk_folder(self.records, chunk), index)
        return path.read_text(encoding="utf-8", errors="replace")


def make_project(folder: Path) -> Project:
    """An empty project in `folder`."""
    project = Project(folder / "tree")
    project.write("pyproject.toml", PYPROJECT)
    project.write("jax.py", JAX)
    rows = {d.metadata["Name"]: d.version for d in importlib.metadata.distributions()}
    project.write("requirements/gate.txt", "".join(f"{n}=={v}\n" for n, v in rows.items()))
    return project


def events_of(lines: Lines, name: str) -> list[Mapping[str, Any]]:
    return [event for event in lines.events if event["event"] == name]
