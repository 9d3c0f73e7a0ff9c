"""Makes the roster lock: collects every file in a process of its own and writes down its ids.

Files of the kinds `manual` and `legacy` are not imported; they stand in the lock by file.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ci_tools.findings import Finding, Kind
from ci_tools.lanes.chunk import ChunkRun, run_worklist
from ci_tools.records.layout import journal_path, log_path
from ci_tools.records.lines import Lines, load_lines
from ci_tools.roster.exclusion import ExclusionKind
from ci_tools.roster.lock import Lane, LockLine
from ci_tools.roster.scan import RosterFile
from ci_tools.running.worklist import WorkFile, Worklist

FOLDER = "listing"


def list_roster(run: ChunkRun, files: Sequence[RosterFile]) -> tuple[list[LockLine], list[Finding]]:
    """Return the lock's entries, and findings for files whose tests cannot be listed.

    Raises:
        As `run_worklist`.
    """
    by_file = [file for file in files if _is_listed_by_file(file)]
    collected = [file for file in files if file not in by_file and _is_collected(file)]
    folder = run.results / FOLDER
    run_worklist(run, folder, _worklist(run, collected))
    lines = [LockLine(Lane.EXCLUDED, file.path) for file in by_file]
    findings: list[Finding] = []
    for index, file in enumerate(collected):
        journal = load_lines(journal_path(folder, index))
        entries = read_listing(file, journal)
        lines += entries
        if not entries:
            findings.append(_unlisted(file, journal, log_path(folder, index)))
    return lines, findings


def _is_listed_by_file(file: RosterFile) -> bool:
    exclusion = file.exclusion
    return exclusion is not None and exclusion.kind in (
        ExclusionKind.MANUAL,
        ExclusionKind.LEGACY,
    )


def _is_collected(file: RosterFile) -> bool:
    return file.is_test_file or file.exclusion is not None


def _worklist(run: ChunkRun, files: Sequence[RosterFile]) -> Worklist:
    return Worklist(
        plan="",
        chunk=0,
        lane=Lane.GATE.value,
        files=tuple(WorkFile(path=file.path, ids=None) for file in files),
        packages=run.config.packages,
        lock="",
        timeout_seconds=run.config.run.collect_timeout_seconds,
        file_memory_bytes=run.config.run.file_memory_bytes,
        preload=run.config.run.preload,
        list_only=True,
    )


def read_listing(file: RosterFile, journal: Lines) -> list[LockLine]:
    """Return the entries of one collected file; none means that it has to be mended.

    An excluded file that collects nothing stands in the lock by file.
    """
    selected = next((e for e in journal.events if e["event"] == "selected"), None)
    failed = any(
        event["event"] == "collect-report" and event.get("outcome") == "failed"
        for event in journal.events
    )
    entries: list[LockLine] = []
    if selected is not None and not failed and not journal.problems:
        gate = Lane.GATE if file.foreign is None else Lane.EXCLUDED
        entries += [LockLine(gate, str(i)) for i in selected.get("gated", ())]
        entries += [LockLine(Lane.EXCLUDED, str(i)) for i in selected.get("excluded", ())]
    if not entries and file.exclusion is not None:
        entries.append(LockLine(Lane.EXCLUDED, file.path))
    return entries


def _unlisted(file: RosterFile, journal: Lines, log: Path) -> Finding:
    reports = [event for event in journal.events if event["event"] == "collect-report"]
    refused = [event for event in journal.events if event["event"] == "refused"]
    reasons = [str(event.get("message", "")) for event in [*refused, *reports]]
    ended = any(event["event"] == "finish" for event in journal.events)
    why = reasons[0] if reasons else ("it holds no test" if ended else "it did not end")
    return Finding(
        rule="roster/unlisted-file",
        kind=Kind.ROSTER,
        message=f"the tests of {file.path} cannot be listed: {why}",
        path=file.path,
        fix=f"mend the file (its output is in {log}), or exclude it with a kind and a reason",
    )
