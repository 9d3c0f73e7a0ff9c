"""Judges one planned file: its journal against its planned ids and against how its process ended.

Every planned id gets exactly one result here; everything that is not as planned is a finding.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ci_tools.findings import Finding, Kind
from ci_tools.planning.plan import PlannedFile
from ci_tools.records.lines import SCHEMA, Lines
from ci_tools.verdict.outcomes import Outcome, TestResult, find_outcomes, find_unfinished

_USAGE_ERROR = 4  # pytest's own code for it
LOCK_FIX = "make roster-lock, and commit the lock with the tests"


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


@dataclass(frozen=True, kw_only=True)
class FileVerdict:
    """The result of every planned id of a file, and what is wrong with the file as a whole."""

    results: Mapping[str, TestResult]
    findings: tuple[Finding, ...]


def judge_file(case: FileCase) -> FileVerdict:
    """Return the verdict on one planned file."""
    events = case.journal.events if case.journal is not None else ()
    found = find_outcomes(events)
    findings = [*_check_record(case), *_check_end(case, events), *_check_events(case, events)]
    results = {
        test_id: found.get(test_id) or TestResult(outcome=Outcome.UNACCOUNTED)
        for test_id in case.planned.ids
    }
    findings += _check_selection(case, events, found, is_explained=bool(findings))
    findings += _check_unrun(case, results, is_explained=bool(findings))
    _explain_unaccounted(results, findings)
    findings += _check_outcomes(case, results)
    findings += _check_exit(case, events, is_explained=bool(findings))
    return FileVerdict(results=results, findings=tuple(findings))


def _check_record(case: FileCase) -> Iterator[Finding]:
    """The journal is there, whole, and of this plan."""
    path = case.planned.path
    if case.journal is None:
        ends = [f"exit {end.get('exit_code')}, signal {end.get('signal')}" for end in case.ends]
        how = f"{path} left no journal ({'; '.join(ends) or 'and no end'})"
        yield _infrastructure(case, "missing-journal", how)
        return
    for problem in case.journal.problems:
        yield _infrastructure(case, "broken-journal", f"journal of {path}: {problem}")
    events = case.journal.events
    start = events[0] if events else {}
    expected = {
        "event": "start",
        "schema": SCHEMA,
        "plan": case.plan_hash,
        "chunk": case.chunk,
        "path": path,
    }
    wrong = [key for key, value in expected.items() if start.get(key) != value]
    if wrong and not case.journal.problems:
        yield _infrastructure(
            case,
            "foreign-journal",
            f"journal of {path} is not of this plan: {', '.join(wrong)} differ",
        )


def _check_end(case: FileCase, events: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    """The process ended by itself, after its finish event, with the code written there."""
    path = case.planned.path
    if len(case.ends) != 1:
        how = "no end" if not case.ends else f"{len(case.ends)} ends"
        yield _infrastructure(case, "missing-end", f"the supervisor recorded {how} of {path}")
        return
    end = case.ends[0]
    finish = events[-1] if events and events[-1]["event"] == "finish" else None
    if not _ended_well(end, finish) and not _is_told(case, end, events):
        yield _explain_end(case, end, finish, events)
    if finish is not None and finish.get("lines") != len(events):
        yield _infrastructure(
            case, "broken-journal", f"journal of {path} has {len(events)} lines, not what it says"
        )


def _ended_well(end: Mapping[str, Any], finish: Mapping[str, Any] | None) -> bool:
    is_own_end = end.get("ended_by") == "exit" and end.get("signal") is None
    return is_own_end and finish is not None and finish.get("exit_status") == end.get("exit_code")


def _is_told(case: FileCase, end: Mapping[str, Any], events: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a missing finish has its own finding: a refusal, or a journal that is not whole."""
    if end.get("ended_by") != "exit" or end.get("signal") is not None:
        return False
    if case.journal is None or (events and case.journal.problems):
        return True
    is_refused = any(event["event"] == "refused" for event in events)
    return is_refused and end.get("exit_code") == _USAGE_ERROR


def _explain_end(
    case: FileCase,
    end: Mapping[str, Any],
    finish: Mapping[str, Any] | None,
    events: Sequence[Mapping[str, Any]],
) -> Finding:
    path, kind = case.planned.path, Kind.CRASH
    culprit = find_unfinished(events)
    during = f"during {culprit}" if culprit else _where_between(events, finish)
    if end.get("ended_by") == "timeout":
        kind = Kind.TIMEOUT
        message = (
            f"{path} ran over its time limit after {end.get('seconds')} s, {during}; Python stacks "
            f"are in {case.log}"
        )
    elif end.get("ended_by") != "exit":
        return _infrastructure(case, "interrupted", f"{path} was ended by {end.get('ended_by')}")
    elif isinstance(end.get("signal"), int):
        message = (
            f"{path} died by {_signal_name(end['signal'])} {during}; the signal alone does not "
            "prove a cause"
        )
    elif finish is None:
        message = (
            f"{path} exited with {end.get('exit_code')} without finishing, {during}: os._exit, "
            "sys.exit or a native exit"
        )
    else:
        message = (
            f"{path} finished with {finish.get('exit_status')} and exited with "
            f"{end.get('exit_code')}: it died after the last test"
        )
    return _death(case, kind, message, culprit)


def _where_between(events: Sequence[Mapping[str, Any]], finish: Mapping[str, Any] | None) -> str:
    if finish is not None:
        return "after the last test"
    names = {event["event"] for event in events}
    if "collected" in names:
        return "between tests, in teardown or at exit"
    return "at import or collection" if names else "before pytest started"


def _check_events(case: FileCase, events: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    """What pytest itself reported besides tests."""
    for event in events:
        name = event["event"]
        message = str(event.get("message", ""))[:500]
        if name == "refused":
            yield _infrastructure(case, "foreign-package", message)
        elif name == "internal-error":
            yield _internal_error(case, events, str(event.get("detail", "")))
        elif name == "collect-report":
            skipped = event.get("outcome") == "skipped"
            what = "skipped itself at collection" if skipped else "cannot be collected"
            line = event.get("line")
            yield Finding(
                rule="roster/skipped-file" if skipped else "roster/collection-error",
                kind=Kind.ROSTER,
                message=f"{event.get('id') or case.planned.path} {what}: {message}",
                path=str(event.get("path") or case.planned.path),
                line=line if isinstance(line, int) else None,
                fix="mark it excluded with its kind and reason"
                if skipped
                else "mend the import; if it cannot be mended now, exclude the file with a reason",
            )


def _internal_error(case: FileCase, events: Sequence[Mapping[str, Any]], detail: str) -> Finding:
    """An exit at import, or an error in pytest or one of its plugins."""
    last = ([line for line in detail.splitlines() if line.strip()] or ["no detail"])[-1].strip()
    collected = any(event["event"] == "selected" for event in events)
    if not collected and "SystemExit" in last:
        return Finding(
            rule="roster/collection-error",
            kind=Kind.ROSTER,
            message=f"{case.planned.path} calls sys.exit at import ({last}), so its tests are lost",
            path=case.planned.path,
            fix="put the call under `if __name__`, or exclude the file as manual",
        )
    return _death(case, Kind.CRASH, f"pytest failed in itself on {case.planned.path}: {last}", None)


def _check_selection(
    case: FileCase,
    events: Sequence[Mapping[str, Any]],
    found: Mapping[str, TestResult],
    *,
    is_explained: bool,
) -> Iterator[Finding]:
    """What was collected is what the lock has, exactly."""
    planned = set(case.planned.ids)
    selected = next((event for event in events if event["event"] == "selected"), None)
    reported = set(found)
    if selected is not None:
        gated = _strings(selected.get("gated"))
        if not case.is_partial:
            reported |= set(gated)
            yield from _check_excluded(case, _strings(selected.get("excluded")))
        if not is_explained:
            for test_id in sorted(planned - set(gated)):
                yield _roster(
                    case,
                    "missing-id",
                    test_id,
                    f"{test_id} is locked and was not collected: the test vanished",
                    "restore it, or `make roster-lock` and commit with `Roster-Removed: <why>`",
                )
    elif not is_explained:
        yield _infrastructure(
            case, "broken-journal", f"journal of {case.planned.path} lists no tests"
        )
    for test_id in sorted(reported - planned):
        yield _roster(
            case, "unlocked-id", test_id, f"{test_id} was collected and is not planned", LOCK_FIX
        )


def _check_excluded(case: FileCase, excluded: Sequence[str]) -> Iterator[Finding]:
    locked = set(case.planned.excluded) - {case.planned.path}
    for test_id in sorted(set(excluded) ^ locked):
        where = "not locked as excluded" if test_id in excluded else "locked as excluded and gone"
        yield _roster(case, "excluded-differs", test_id, f"{test_id} is {where}", LOCK_FIX)


def _check_unrun(
    case: FileCase, results: Mapping[str, TestResult], *, is_explained: bool
) -> Iterator[Finding]:
    """Planned, collected, and without an outcome although the process ended well."""
    unrun = [i for i, result in results.items() if result.outcome is Outcome.UNACCOUNTED]
    if unrun and not is_explained:
        more = f" and {len(unrun) - 1} more" if len(unrun) > 1 else ""
        yield _roster(
            case,
            "not-run",
            unrun[0],
            f"{unrun[0]}{more} did not run to the end although the file ended as if it had",
            "look for pytest.exit(), a stop at the first failure, or a plugin that drops tests",
        )


def _check_exit(
    case: FileCase, events: Sequence[Mapping[str, Any]], *, is_explained: bool
) -> Iterator[Finding]:
    """Every outcome is green and pytest, or a plugin or hook of it, still says that it failed."""
    status = events[-1].get("exit_status") if events else None
    if status != 0 and not is_explained:
        yield _infrastructure(
            case,
            "unexplained-exit",
            f"{case.planned.path} ended with exit status {status} although every planned test "
            "passed, so a hook or plugin failed the session",
        )


def _explain_unaccounted(results: Mapping[str, TestResult], findings: Sequence[Finding]) -> None:
    why = findings[0].message if findings else "no outcome was recorded"
    for result in results.values():
        if result.outcome is Outcome.UNACCOUNTED and not result.message:
            result.message = f"it did not run: {why}"


def _check_outcomes(case: FileCase, results: Mapping[str, TestResult]) -> Iterator[Finding]:
    for test_id, result in results.items():
        words = _WORDS.get(result.outcome)
        if words is not None:
            rule, kind, what, fix = words
            yield Finding(
                rule=rule,
                kind=kind,
                message=f"{test_id} {what}: {result.message}"[:2000],
                path=result.path or case.planned.path,
                line=result.line,
                test_id=test_id,
                fix=fix,
            )


_EXCLUDE = "exclude it with a kind and a reason, or make it run: a skip asserts nothing"
_STRICT = "declare xfail(strict=True), so that a pass is noticed"
_WORDS: Mapping[Outcome, tuple[str, Kind, str, str]] = {
    Outcome.FAILED: ("test/failed", Kind.TEST, "failed", "reproduce it with the command given"),
    Outcome.ERROR: (
        "test/error",
        Kind.TEST,
        "failed in setup or teardown",
        "reproduce it with the command given",
    ),
    Outcome.SKIPPED: ("roster/skipped", Kind.ROSTER, "was skipped", _EXCLUDE),
    Outcome.XFAILED_LOOSE: ("roster/loose-xfail", Kind.ROSTER, "failed as expected", _STRICT),
    Outcome.XPASSED: ("roster/xpassed", Kind.ROSTER, "passed where a failure is expected", _STRICT),
    Outcome.DOUBLED: (
        "record/doubled-outcome",
        Kind.INFRASTRUCTURE,
        "has more than one outcome",
        "remove what runs tests twice (a rerun plugin), or run the lane again",
    ),
}


def _strings(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _death(case: FileCase, kind: Kind, message: str, culprit: str | None) -> Finding:
    return Finding(
        rule=f"death/{kind}",
        kind=kind,
        message=message,
        path=case.planned.path,
        test_id=culprit,
        fix=f"read {case.log}, and run the file alone with the command given",
    )


def _infrastructure(case: FileCase, rule: str, message: str) -> Finding:
    return Finding(
        rule=f"record/{rule}",
        kind=Kind.INFRASTRUCTURE,
        message=message,
        path=case.planned.path,
        fix="run the lane again; if it repeats, read the chunk's log",
    )


def _roster(case: FileCase, rule: str, test_id: str, message: str, fix: str) -> Finding:
    return Finding(
        rule=f"roster/{rule}",
        kind=Kind.ROSTER,
        message=message,
        path=case.planned.path,
        test_id=test_id,
        fix=fix,
    )
