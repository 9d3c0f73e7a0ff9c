"""What one planned file is judged from, and the findings that can be made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ci_tools.findings import Finding, Kind
from ci_tools.planning.plan import PlannedFile
from ci_tools.records.lines import Lines

Events = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, kw_only=True)
class FileCase:
    """What a file is judged from.

    Attributes:
        planned: The file as planned.
        index: Its place in the chunk.
        plan_hash: The plan's hash, which the journal has to name.
        chunk: The chunk's number.
        is_partial: Whether only a part of the file was asked for.
        journal: The file's journal; None when it is missing.
        ends: The supervisor's `file-end` events for it.
        log: Where its output lies, for messages.
    """

    planned: PlannedFile
    index: int
    plan_hash: str
    chunk: int
    is_partial: bool
    journal: Lines | None
    ends: Sequence[Mapping[str, Any]]
    log: str


def death_finding(case: FileCase, kind: Kind, message: str, culprit: str | None) -> Finding:
    """Return that a file's process did not end by itself."""
    return Finding(
        rule=f"death/{kind}",
        kind=kind,
        message=message,
        path=case.planned.path,
        test_id=culprit,
        fix=f"read {case.log}, and run the file alone with the command given",
    )


def record_finding(case: FileCase, rule: str, message: str) -> Finding:
    """Return that the records of a file cannot be relied on."""
    return Finding(
        rule=f"record/{rule}",
        kind=Kind.INFRASTRUCTURE,
        message=message,
        path=case.planned.path,
        fix="run the lane again; if it repeats, read the chunk's log",
    )


def roster_finding(case: FileCase, rule: str, test_id: str, message: str, fix: str) -> Finding:
    """Return that a test is not as the roster has it."""
    return Finding(
        rule=f"roster/{rule}",
        kind=Kind.ROSTER,
        message=message,
        path=case.planned.path,
        test_id=test_id,
        fix=fix,
    )
