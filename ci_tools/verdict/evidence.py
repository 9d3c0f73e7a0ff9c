"""Reads a folder of records into values; what is missing or broken is kept as such.

Decides nothing. Symbolic links are not followed: records of a fork's pull request are foreign.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ci_tools.errors import CiToolsError
from ci_tools.findings import Finding, Kind, parse_finding
from ci_tools.planning.format import parse_plan
from ci_tools.planning.plan import Plan
from ci_tools.records.layout import (
    CHUNK_JOURNAL,
    ENVIRONMENT,
    JOURNALS,
    PLAN,
    PREFLIGHT,
    REFUSAL,
)
from ci_tools.records.lines import Lines, load_lines, read_regular
from ci_tools.running.worklist import WORKLIST

MAX_JSON_BYTES = 64 * 1024**2
_JOURNAL_NAME = re.compile(r"(?:\d{4}|[1-9]\d{4,6})\.jsonl")


@dataclass(frozen=True, kw_only=True)
class ChunkRecord:
    """What one chunk left.

    Attributes:
        folder: Where it lies, relative to the records.
        journal: The supervisor's journal.
        environment: The environment record; None when missing or unreadable.
        files: The journal of each file, by its place in the chunk.
    """

    folder: str
    journal: Lines
    environment: Mapping[str, Any] | None
    files: Mapping[int, Lines]


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """All that a verdict is computed from.

    Attributes:
        plan: The plan; None when there is none that can be read.
        preflight: What the checks before the plan found; None when they left nothing.
        chunks: The chunk records, sorted by folder.
        refusals: By chunk: why its environment could not be had.
        problems: Findings about the records themselves.
        job_results: The results of the workflow's jobs by name, where there are any.
    """

    plan: Plan | None
    preflight: tuple[Finding, ...] | None
    chunks: tuple[ChunkRecord, ...]
    refusals: Mapping[int, Finding] = field(default_factory=dict)
    problems: tuple[Finding, ...] = ()
    job_results: Mapping[str, str] = field(default_factory=dict)


def load_evidence(records: Path, job_results: Mapping[str, str]) -> Evidence:
    """Return everything below the folder `records`; a folder that does not exist holds nothing."""
    problems: list[Finding] = []
    plans: list[Path] = []
    preflights: list[Path] = []
    folders: list[Path] = []
    refusals: dict[int, Finding] = {}
    for folder, names in _walk(records):
        plans += [folder / name for name in names if name == PLAN]
        preflights += [folder / name for name in names if name == PREFLIGHT]
        if REFUSAL in names:
            _load_refusal(folder / REFUSAL, refusals, problems)
        if CHUNK_JOURNAL in names or WORKLIST in names or folder.name.startswith("chunk-"):
            folders.append(folder)
    plan = _load_plan(plans, records, problems)
    return Evidence(
        plan=plan,
        preflight=_load_preflight(preflights, records, problems),
        chunks=tuple(_load_chunk(folder, records) for folder in sorted(folders)),
        refusals=refusals,
        problems=tuple(problems),
        job_results=job_results,
    )


def _walk(records: Path) -> Iterator[tuple[Path, list[str]]]:
    for parent, folders, names in os.walk(records):
        folders.sort()
        yield Path(parent), names


def _load_plan(paths: list[Path], records: Path, problems: list[Finding]) -> Plan | None:
    if len(paths) > 1:
        problems.append(_problem("doubled-plan", "more than one plan is among the records"))
        return None
    if not paths:
        return None
    try:
        return parse_plan(load_json(paths[0]) or {}, PLAN)
    except CiToolsError as error:
        problems.append(_problem("broken-plan", f"the plan cannot be used: {error.message}"))
        return None


def _load_preflight(
    paths: list[Path], records: Path, problems: list[Finding]
) -> tuple[Finding, ...] | None:
    if len(paths) > 1:
        problems.append(_problem("doubled-preflight", "more than one preflight is there"))
    data = load_json(paths[0]) if len(paths) == 1 else None
    if data is None:
        return None
    try:
        return tuple(parse_finding(row) for row in data["findings"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        problems.append(_problem("broken-preflight", f"the preflight cannot be read: {error!r}"))
        return None


def _load_refusal(path: Path, refusals: dict[int, Finding], problems: list[Finding]) -> None:
    data = load_json(path) or {}
    try:
        refusals[int(data["chunk"])] = parse_finding(data["finding"])
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        problems.append(_problem("broken-refusal", f"a refusal cannot be read: {error!r}"))


def write_refusal(results: Path, chunk: int, finding: Finding) -> None:
    """Write down why a chunk's environment could not be had, for the verdict to say."""
    results.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"chunk": chunk, "finding": finding.to_json()}) + "\n"
    (results / REFUSAL).write_text(text, encoding="utf-8")


def _load_chunk(folder: Path, records: Path) -> ChunkRecord:
    files: dict[int, Lines] = {}
    for entry in sorted(_entries(folder / JOURNALS)):
        if _JOURNAL_NAME.fullmatch(entry):
            files[int(entry.partition(".")[0])] = load_lines(folder / JOURNALS / entry)
    return ChunkRecord(
        folder=folder.relative_to(records).as_posix(),
        journal=load_lines(folder / CHUNK_JOURNAL),
        environment=load_json(folder / ENVIRONMENT),
        files=files,
    )


def _entries(folder: Path) -> list[str]:
    try:
        return [] if folder.is_symlink() else [entry.name for entry in os.scandir(folder)]
    except OSError:
        return []


def load_json(path: Path) -> Mapping[str, Any] | None:
    """Return the object in a JSON file; None when it is missing, too large, or none."""
    content = read_regular(path, MAX_JSON_BYTES)
    try:
        data = json.loads(content) if isinstance(content, bytes) else None
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def _problem(rule: str, message: str) -> Finding:
    return Finding(
        rule=f"record/{rule}",
        kind=Kind.INFRASTRUCTURE,
        message=message,
        fix="run the lane again; the records of one run belong in one folder",
    )
