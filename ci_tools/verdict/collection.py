"""What one file collected, against the ids that were planned for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ci_tools.findings import Finding
from ci_tools.verdict.case import Events, FileCase, record_finding, roster_finding
from ci_tools.verdict.outcomes import Outcome, TestResult

LOCK_FIX = "make roster-lock, and commit the lock with the tests"


def check_selection(
    case: FileCase,
    events: Events,
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
                yield roster_finding(
                    case,
                    "missing-id",
                    test_id,
                    f"{test_id} is locked and was not collected: the test vanished",
                    "restore it, or `make roster-lock` and commit with `Roster-Removed: <why>`",
                )
    elif not is_explained:
        yield record_finding(
            case, "broken-journal", f"journal of {case.planned.path} lists no tests"
        )
    for test_id in sorted(reported - planned):
        yield roster_finding(
            case, "unlocked-id", test_id, f"{test_id} was collected and is not planned", LOCK_FIX
        )


def _check_excluded(case: FileCase, excluded: Sequence[str]) -> Iterator[Finding]:
    locked = set(case.planned.excluded) - {case.planned.path}
    for test_id in sorted(set(excluded) ^ locked):
        where = "not locked as excluded" if test_id in excluded else "locked as excluded and gone"
        yield roster_finding(case, "excluded-differs", test_id, f"{test_id} is {where}", LOCK_FIX)


def check_unrun(
    case: FileCase, results: Mapping[str, TestResult], *, is_explained: bool
) -> Iterator[Finding]:
    """Planned, collected, and without an outcome although the process ended well."""
    unrun = [i for i, result in results.items() if result.outcome is Outcome.UNACCOUNTED]
    if unrun and not is_explained:
        more = f" and {len(unrun) - 1} more" if len(unrun) > 1 else ""
        yield roster_finding(
            case,
            "not-run",
            unrun[0],
            f"{unrun[0]}{more} did not run to the end although the file ended as if it had",
            "look for pytest.exit(), a stop at the first failure, or a plugin that drops tests",
        )


def _strings(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
