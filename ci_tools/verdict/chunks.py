"""Judges chunk records: each planned chunk is there once, whole, and of this plan."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ci_tools.findings import Finding, Kind
from ci_tools.planning.plan import Plan, PlannedChunk, Scope
from ci_tools.records.layout import log_path
from ci_tools.records.lines import SCHEMA
from ci_tools.verdict.case import FileCase
from ci_tools.verdict.evidence import ChunkRecord, Evidence
from ci_tools.verdict.files import FileVerdict, judge_file
from ci_tools.verdict.outcomes import Outcome, TestResult

RERUN = "run the lane again; if it repeats, read the chunk job's log"


def match_chunks(plan: Plan, evidence: Evidence) -> tuple[dict[int, ChunkRecord], list[Finding]]:
    """Return the one record of each planned chunk, and findings for all that do not match."""
    by_number: dict[int, list[ChunkRecord]] = defaultdict(list)
    findings: list[Finding] = []
    planned = {chunk.number for chunk in plan.chunks}
    for record in evidence.chunks:
        start = record.journal.events[0] if record.journal.events else {}
        number = start.get("chunk")
        if start.get("event") != "chunk-start" or not isinstance(number, int):
            why = "; ".join(record.journal.problems) or "it does not begin with its start"
            findings.append(
                chunk_finding("broken-chunk", f"chunk record {record.folder}/ is unusable: {why}")
            )
        elif start.get("plan") != plan.hash or start.get("schema") != SCHEMA:
            findings.append(
                chunk_finding("foreign-chunk", f"chunk record {record.folder}/ is of another plan")
            )
        elif number not in planned:
            findings.append(
                chunk_finding("foreign-chunk", f"chunk {number} in {record.folder}/ is not planned")
            )
        else:
            by_number[number].append(record)
    for number in sorted(planned):
        records = by_number.get(number, [])
        if len(records) > 1:
            where = ", ".join(f"{record.folder}/" for record in records)
            findings.append(
                chunk_finding("doubled-chunk", f"chunk {number} has several records: {where}")
            )
        elif not records and number in evidence.refusals:
            findings.append(evidence.refusals[number])
        elif not records:
            findings.append(_missing_chunk(number, evidence))
    matched = {number: records[0] for number, records in by_number.items() if len(records) == 1}
    return matched, findings


def _missing_chunk(number: int, evidence: Evidence) -> Finding:
    result = evidence.job_results.get("chunk", "")
    because = f"; the chunk job ended as {result!r}" if result else ""
    return chunk_finding(
        "missing-chunk",
        f"chunk {number} left no record{because}: it was cancelled, died with its machine, or "
        "could not start its container",
    )


def judge_chunk(
    plan: Plan, chunk: PlannedChunk, record: ChunkRecord
) -> tuple[list[Finding], dict[str, TestResult]]:
    """Return what is wrong with a chunk's record, and the result of each of its ids."""
    findings = list(_check_journal(chunk, record))
    ends: dict[int, list[Mapping[str, Any]]] = defaultdict(list)
    for event in record.journal.events:
        if event["event"] == "file-end" and isinstance(event.get("index"), int):
            ends[event["index"]].append(event)
    results: dict[str, TestResult] = {}
    for index in range(len(chunk.files)):
        verdict = _judge(plan, chunk, record, index, ends[index])
        findings += verdict.findings
        results |= verdict.results
    return findings, results


def _judge(
    plan: Plan,
    chunk: PlannedChunk,
    record: ChunkRecord,
    index: int,
    ends: Sequence[Mapping[str, Any]],
) -> FileVerdict:
    return judge_file(
        FileCase(
            planned=chunk.files[index],
            index=index,
            plan_hash=plan.hash,
            chunk=chunk.number,
            is_partial=plan.scope is Scope.PARTIAL,
            journal=record.files.get(index),
            ends=ends,
            log=log_path(Path(record.folder), index).as_posix(),
        )
    )


def _check_journal(chunk: PlannedChunk, record: ChunkRecord) -> Iterator[Finding]:
    events = record.journal.events
    for problem in record.journal.problems:
        yield chunk_finding("broken-chunk", f"journal of chunk {chunk.number}: {problem}")
    last = events[-1]
    if last["event"] == "interrupted":
        left = last.get("not_started")
        count = len(left) if isinstance(left, list) else "an unknown number"
        yield chunk_finding(
            "interrupted",
            f"chunk {chunk.number} was interrupted; {count} of its files were not started",
        )
    elif last["event"] != "chunk-finish" or last.get("lines") != len(events):
        yield chunk_finding(
            "unfinished-chunk", f"chunk {chunk.number} did not finish: its supervisor died"
        )
    if events[0].get("files") != len(chunk.files):
        yield chunk_finding(
            "foreign-chunk", f"chunk {chunk.number} was started with other files than planned"
        )
    planned = [(index, file.path) for index, file in enumerate(chunk.files)]
    starts = [(e.get("index"), e.get("path")) for e in events if e["event"] == "file-start"]
    if last["event"] == "chunk-finish" and Counter(starts) != Counter(planned):
        yield chunk_finding(
            "foreign-file", f"chunk {chunk.number} did not start its files exactly as planned"
        )
    ends = [(e.get("index"), e.get("path")) for e in events if e["event"] == "file-end"]
    if any(end not in planned for end in ends):
        yield chunk_finding(
            "foreign-file", f"chunk {chunk.number} ended a file that was not planned for it"
        )
    for index in sorted(set(record.files) - set(range(len(chunk.files)))):
        yield chunk_finding(
            "foreign-journal", f"chunk {chunk.number} holds a journal {index} that nobody planned"
        )


def unrun_results(chunk: PlannedChunk, why: str) -> dict[str, TestResult]:
    """Return the results of a chunk that has no usable record."""
    return {
        test_id: TestResult(outcome=Outcome.UNACCOUNTED, message=why)
        for file in chunk.files
        for test_id in file.ids
    }


def chunk_finding(rule: str, message: str) -> Finding:
    """Return a finding about a chunk's record."""
    return Finding(rule=f"record/{rule}", kind=Kind.INFRASTRUCTURE, message=message, fix=RERUN)
