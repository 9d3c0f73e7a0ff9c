"""The records of a green gate run as plain values, for a test to break one thing in them.

Journals are lists of events without numbers: rendering numbers them, so that an event which a test
adds or removes is one that the writer really wrote or never wrote. Tests of damage work on bytes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ci_tools.findings import Finding
from ci_tools.planning.format import render_plan
from ci_tools.planning.making import make_plan
from ci_tools.planning.plan import ExpectedImage, Plan, PlanRequest
from ci_tools.records.layout import (
    CHUNK_JOURNAL,
    ENVIRONMENT,
    PLAN,
    PREFLIGHT,
    chunk_folder,
    journal_path,
)
from ci_tools.records.lines import SCHEMA, Lines, parse_lines
from ci_tools.roster.lock import Lane, LockLine, RosterLock
from ci_tools.verdict.decide import Demand, Verdict, decide
from ci_tools.verdict.evidence import ChunkRecord, Evidence

Event = dict[str, Any]
Change = Callable[["Run"], object]

IMAGE = ExpectedImage(name="ghcr.io/owner/gate", digest="sha256:" + "0a" * 32, inputs="1b" * 32)
COMMIT = "c0ffee" + "0" * 34
A, B, C = "tests/roster/test_a.py", "tests/roster/test_b.py", "tests/roster/test_c.py"
IDS = {A: ("test_one", "test_two[x y]"), B: ("TestB::test_three",), C: ("test_four",)}
EXCLUDED = {A: ("test_slow",)}


def make_lock(
    gate: Mapping[str, Iterable[str]], excluded: Mapping[str, Iterable[str]] | None = None
) -> RosterLock:
    """A lock with the ids `path::name`, in its order."""
    lines = [LockLine(Lane.GATE, f"{path}::{name}") for path in gate for name in gate[path]]
    for path, names in (excluded or {}).items():
        lines += [LockLine(Lane.EXCLUDED, f"{path}::{name}") for name in names]
    return RosterLock(tuple(sorted(lines)))


def make_request(
    *, selection: tuple[str, ...] = (), tests_per_chunk: int = 3, image: ExpectedImage = IMAGE
) -> PlanRequest:
    return PlanRequest(
        lane=Lane.GATE,
        selection=selection,
        commit=COMMIT,
        image=image,
        tests_per_chunk=tests_per_chunk,
    )


def passed(test_id: str) -> list[Event]:
    """What the plugin writes of a test that passes."""
    return [{"event": "test-start", "id": test_id, "time": 1.0}] + [
        phase(test_id, when) for when in ("setup", "call", "teardown")
    ]


def phase(test_id: str, when: str, outcome: str = "passed", **fields: Any) -> Event:
    return {
        "event": "phase",
        "id": test_id,
        "when": when,
        "outcome": outcome,
        "seconds": 0.25,
        **fields,
    }


@dataclass
class ChunkFiles:
    """What one chunk left: its journal, its environment record, the journal of each file."""

    journal: list[Event]
    environment: dict[str, Any] | None
    files: dict[int, list[Event]]


@dataclass
class Run:
    """All records of one run; a test changes them in place."""

    plan: Plan | None
    preflight: list[Finding] | None
    chunks: dict[str, ChunkFiles]
    job_results: dict[str, str]
    refusals: dict[int, Finding] = field(default_factory=dict)

    @property
    def first(self) -> ChunkFiles:
        """The chunk that holds file A alone; chunk-002 holds B and C."""
        return self.chunks["chunk-001"]

    @property
    def a(self) -> list[Event]:
        """The journal of file A."""
        return self.first.files[0]

    def end_of_a(self) -> Event:
        """The supervisor's event on the end of file A."""
        return next(e for e in self.first.journal if e["event"] == "file-end" and e["index"] == 0)

    def replace_test(self, test_id: str, events: Sequence[Event]) -> None:
        """Put other events in the place of those of one test of file A."""
        at = next(i for i, event in enumerate(self.a) if event.get("id") == test_id)
        self.a[:] = [event for event in self.a if event.get("id") != test_id]
        self.a[at:at] = events

    def end_badly(self, code: int = 1) -> None:
        """Let the process of file A end with a code, as pytest does after a failure."""
        self.a[-1]["exit_status"] = code
        self.end_of_a()["exit_code"] = code


def make_run(
    gate: Mapping[str, Iterable[str]] = IDS,
    excluded: Mapping[str, Iterable[str]] = EXCLUDED,
    *,
    selection: tuple[str, ...] = (),
    tests_per_chunk: int = 3,
) -> Run:
    """Return the records of a run in the published image in which every planned test passed."""
    request = make_request(selection=selection, tests_per_chunk=tests_per_chunk)
    plan = make_plan(make_lock(gate, excluded), request)
    chunks = {}
    for chunk in plan.chunks:
        files = {
            index: file_journal(plan, chunk.number, file.path, file.ids, file.excluded)
            for index, file in enumerate(chunk.files)
        }
        paths = [file.path for file in chunk.files]
        chunks[chunk_folder(Path(), chunk.number).as_posix()] = ChunkFiles(
            journal=chunk_journal(plan, chunk.number, paths),
            environment=make_environment(),
            files=files,
        )
    results = {"plan": "success", "chunk": "success"}
    return Run(plan=plan, preflight=[], chunks=chunks, job_results=results)


def file_journal(
    plan: Plan, chunk: int, path: str, ids: Sequence[str], excluded: Sequence[str]
) -> list[Event]:
    tests = [event for test_id in ids for event in passed(test_id)]
    start = {"schema": SCHEMA, "plan": plan.hash, "chunk": chunk, "path": path, "pid": 7}
    return [
        {"event": "start", **start, "time": 1.0, "python": "3.13.0", "pytest": "9.2.0"},
        {"event": "selected", "gated": list(ids), "excluded": list(excluded)},
        {"event": "collected", "ids": list(ids)},
        *tests,
        {"event": "finish", "exit_status": 0, "lines": None},
    ]


def chunk_journal(plan: Plan, number: int, paths: Sequence[str]) -> list[Event]:
    start = {"schema": SCHEMA, "plan": plan.hash, "chunk": number, "files": len(paths)}
    events: list[Event] = [{"event": "chunk-start", **start, "workers": 1, "time": 1.0}]
    for index, path in enumerate(paths):
        place = {"path": path, "index": index}
        how = {"exit_code": 0, "signal": None, "ended_by": "exit", "seconds": 1.0}
        events.append({"event": "file-start", **place, "pid": 7 + index, "time": 1.0})
        events.append({"event": "file-end", **place, **how, "cpu_seconds": 1.0, "peak_bytes": 9})
    events.append({"event": "environment-end", "exit_code": 0})
    events.append({"event": "chunk-finish", "lines": None, "time": 2.0})
    return events


def make_environment() -> dict[str, Any]:
    image = {"engine": "docker", "kind": "published", "image_id": "sha256:2c", "label": ""}
    identity = {"name": IMAGE.name, "digest": IMAGE.digest, "inputs": IMAGE.inputs}
    row = {"name": "jax", "version": "0.12.0.1", "is_locked": True, "hashes": ["sha256:3d"]}
    return {
        "schema": 1,
        "status": "ok",
        "image": image | identity,
        "commit": COMMIT,
        "dirty": False,
        "python": {"version": "3.13.0"},
        "machine": {"cores": 2},
        "variables": {},
        "distributions": [row, {"name": "pip", "version": "24.2", "is_locked": False}],
        "packages_under_test": {},
        "jax": {"version": "0.12.0.1", "backend": "cpu", "devices": ["cpu:0"]},
    }


def render_journal(events: Sequence[Event]) -> bytes:
    """The bytes of a journal, numbered as the writer numbers it."""
    rows = []
    for number, event in enumerate(events):
        whole = {"n": number, **event}
        if event["event"] in ("finish", "chunk-finish") and event["lines"] is None:
            whole["lines"] = number + 1
        rows.append(json.dumps(whole, separators=(",", ":")).encode("ascii") + b"\n")
    return b"".join(rows)


def to_lines(events: Sequence[Event]) -> Lines:
    return parse_lines(render_journal(events))


def to_evidence(run: Run) -> Evidence:
    """What a verdict reads, without files."""
    return Evidence(
        plan=run.plan,
        preflight=None if run.preflight is None else tuple(run.preflight),
        chunks=tuple(
            ChunkRecord(
                folder=folder,
                journal=to_lines(chunk.journal),
                environment=chunk.environment,
                files={index: to_lines(events) for index, events in chunk.files.items()},
            )
            for folder, chunk in sorted(run.chunks.items())
        ),
        refusals=run.refusals,
        job_results=run.job_results,
    )


def write_run(run: Run, records: Path) -> None:
    """Write the records as a run leaves them."""
    records.mkdir(parents=True, exist_ok=True)
    if run.plan is not None:
        (records / PLAN).write_text(render_plan(run.plan), encoding="utf-8")
    if run.preflight is not None:
        data = {"schema": 1, "findings": [finding.to_json() for finding in run.preflight]}
        (records / PREFLIGHT).write_text(json.dumps(data), encoding="utf-8")
    for name, chunk in run.chunks.items():
        folder = records / name
        journal_path(folder, 0).parent.mkdir(parents=True, exist_ok=True)
        (folder / CHUNK_JOURNAL).write_bytes(render_journal(chunk.journal))
        for index, events in chunk.files.items():
            journal_path(folder, index).write_bytes(render_journal(events))
        if chunk.environment is not None:
            (folder / ENVIRONMENT).write_text(json.dumps(chunk.environment), encoding="utf-8")


def judge(run: Run, *, is_blocking: bool = True, expected_plan: str | None = None) -> Verdict:
    """Return the verdict on a run, for the gate unless told otherwise."""
    if expected_plan is None and run.plan is not None and is_blocking:
        expected_plan = run.plan.hash
    return decide(to_evidence(run), Demand(is_blocking=is_blocking, expected_plan=expected_plan))


def rules_of(verdict: Verdict) -> list[str]:
    return [finding.rule for finding in verdict.findings]
