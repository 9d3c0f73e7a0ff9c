"""Judges one planned file: its journal against its planned ids and against how its process ended.

Every planned id gets exactly one result here; everything that is not as planned is a finding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ci_tools.findings import Finding, Kind
from ci_tools.records.lines import SCHEMA
from ci_tools.verdict.case import Events, FileCase, death_finding, record_finding
from ci_tools.verdict.collection import check_selection, check_unrun
from ci_tools.verdict.deaths import check_end
from ci_tools.verdict.outcomes import Outcome, TestResult, find_outcomes


@dataclass(frozen=True, kw_only=True)
class FileVerdict:
    """The result of every planned id of a file, and what is wrong with the file as a whole."""

    results: Mapping[str, TestResult]
    findings: tuple[Finding, ...]


def judge_file(case: FileCase) -> FileVerdict:
    """Return the verdict on one planned file."""
    events = case.journal.events if case.journal is not None else ()
    found = find_outcomes(events)
    findings = [*_check_record(case), *check_end(case, events), *_check_events(case, events)]
    results = {
        test_id: found.get(test_id) or TestResult(outcome=Outcome.UNACCOUNTED)
        for test_id in case.planned.ids
    }
    findings += check_selection(case, events, found, is_explained=bool(findings))
    findings += check_unrun(case, results, is_explained=bool(findings))
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
        yield record_finding(case, "missing-journal", how)
        return
    for problem in case.journal.problems:
        yield record_finding(case, "broken-journal", f"journal of {path}: {problem}")
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
        yield record_finding(
            case,
            "foreign-journal",
            f"journal of {path} is not of this plan: {', '.join(wrong)} differ",
        )


def _check_events(case: FileCase, events: Events) -> Iterator[Finding]:
    """What pytest itself reported besides tests."""
    for event in events:
        name = event["event"]
        message = str(event.get("message", ""))[:500]
        if name == "refused":
            yield record_finding(case, "foreign-package", message)
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


def _internal_error(case: FileCase, events: Events, detail: str) -> Finding:
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
    return death_finding(
        case, Kind.CRASH, f"pytest failed in itself on {case.planned.path}: {last}", None
    )


def _check_exit(case: FileCase, events: Events, *, is_explained: bool) -> Iterator[Finding]:
    """Every outcome is green and pytest, or a plugin or hook of it, still says that it failed."""
    status = events[-1].get("exit_status") if events else None
    if status != 0 and not is_explained:
        yield record_finding(
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
    Outcome.HOLLOW: (
        "roster/hollow",
        Kind.ROSTER,
        "was reported as passed and its function was never entered",
        "find what replaces the call: pytest_pyfunc_call or runtest in a conftest or plugin, or a "
        "coroutine that nobody awaits",
    ),
    Outcome.CHANGED: (
        "record/changed-outcome",
        Kind.INFRASTRUCTURE,
        "had its outcome changed after it ran",
        "remove the hook that rewrites reports (pytest_runtest_makereport in a conftest or plugin)",
    ),
    Outcome.DOUBLED: (
        "record/doubled-outcome",
        Kind.INFRASTRUCTURE,
        "has more than one outcome",
        "remove what runs tests twice (a rerun plugin), or run the lane again",
    ),
}
