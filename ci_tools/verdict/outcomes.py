"""The final outcome of each test in one file's journal."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Outcome(StrEnum):
    """How a test ended; only `PASSED` and `XFAILED` are green."""

    PASSED = "passed"
    XFAILED = "xfailed"
    FAILED = "failed"
    ERROR = "error"
    SKIPPED = "skipped"
    XFAILED_LOOSE = "xfailed-loose"
    XPASSED = "xpassed"
    HOLLOW = "hollow"
    CHANGED = "changed"
    DOUBLED = "doubled"
    UNACCOUNTED = "unaccounted"

    @property
    def is_green(self) -> bool:
        """Whether the outcome counts as passed."""
        return self in (Outcome.PASSED, Outcome.XFAILED)


@dataclass(kw_only=True, slots=True)
class TestResult:
    """What a journal says of one test.

    Attributes:
        outcome: The final outcome.
        seconds: Time of all phases together.
        message: One line: why it is not green.
        detail: The traceback, as far as it was kept.
        path: The file to annotate.
        line: The 1-based line to annotate.
    """

    __test__ = False

    outcome: Outcome
    seconds: float = 0.0
    message: str = ""
    detail: str = ""
    path: str | None = None
    line: int | None = None


@dataclass(slots=True)
class _Phases:
    """The phases of one test as they were reported."""

    reported: dict[str, str] = field(default_factory=dict)
    is_doubled: bool = False
    worst: Mapping[str, Any] | None = None
    rank: int = 0
    outcome: Outcome = Outcome.PASSED
    seconds: float = 0.0


_RANKS = {
    Outcome.PASSED: 0,
    Outcome.XFAILED: 1,
    Outcome.XPASSED: 2,
    Outcome.XFAILED_LOOSE: 3,
    Outcome.SKIPPED: 4,
    Outcome.ERROR: 5,
    Outcome.FAILED: 6,
    Outcome.HOLLOW: 7,
    Outcome.CHANGED: 8,
}
_PLAIN = frozenset({"expected", "changed_from", "hollow"})  # a plain pass has none of these


def find_outcomes(events: Iterable[Mapping[str, Any]]) -> dict[str, TestResult]:
    """Return the result of every test that the events name, by id.

    A test needs a start, a setup, a call if the setup passed, and a teardown, each once; a failed
    or skipped subtest counts against its test.
    """
    phases: dict[str, _Phases] = {}
    for event in events:
        add = _ADDERS.get(event["event"])
        if add is None:
            continue
        test_id = str(event.get("id"))
        found = phases.get(test_id)
        if found is None:
            found = phases[test_id] = _Phases()
        add(found, event)
    return {test_id: _conclude(found) for test_id, found in phases.items()}


def find_unfinished(events: Iterable[Mapping[str, Any]]) -> str | None:
    """Return the last test that started and did not tear down: the culprit of a death."""
    last = None
    for event in events:
        if event["event"] == "test-start":
            last = str(event.get("id"))
        elif event["event"] == "phase" and event.get("when") == "teardown":
            last = None
    return last


def _add_start(found: _Phases, event: Mapping[str, Any]) -> None:
    found.is_doubled |= "start" in found.reported
    found.reported["start"] = "passed"


def _add_phase(found: _Phases, event: Mapping[str, Any]) -> None:
    when, outcome, seconds = str(event.get("when")), event.get("outcome"), event.get("seconds")
    found.is_doubled |= when in found.reported
    found.reported[when] = str(outcome)
    if type(seconds) is float and math.isfinite(seconds):
        found.seconds += seconds
    if outcome != "passed" or not _PLAIN.isdisjoint(event):
        _raise(found, event, _outcome_of(event))


def _add_subtest(found: _Phases, event: Mapping[str, Any]) -> None:
    _raise(found, event, _outcome_of(event))


_ADDERS: Mapping[str, Callable[[_Phases, Mapping[str, Any]], None]] = {
    "test-start": _add_start,
    "phase": _add_phase,
    "subtest": _add_subtest,
}


def _raise(found: _Phases, event: Mapping[str, Any], outcome: Outcome) -> None:
    if _RANKS[outcome] > found.rank:
        found.rank, found.outcome, found.worst = _RANKS[outcome], outcome, event


def _outcome_of(event: Mapping[str, Any]) -> Outcome:
    reported, expected = event.get("outcome"), event.get("expected")
    is_call = event.get("when", "call") == "call"
    if "changed_from" in event:
        return Outcome.CHANGED
    if "hollow" in event:
        return Outcome.HOLLOW
    if reported == "skipped":
        if expected is None or expected == "not-run":
            return Outcome.SKIPPED
        return Outcome.XFAILED if expected == "strict" else Outcome.XFAILED_LOOSE
    if reported == "passed":
        return Outcome.PASSED if expected is None else Outcome.XPASSED
    return Outcome.FAILED if is_call else Outcome.ERROR


def _conclude(found: _Phases) -> TestResult:
    if found.worst is None and not found.is_doubled and _is_whole(found.reported):
        return TestResult(outcome=Outcome.PASSED, seconds=found.seconds)
    worst = found.worst or {}
    result = TestResult(
        outcome=found.outcome,
        seconds=found.seconds,
        message=str(worst.get("message", "")),
        detail=str(worst.get("detail", "")),
        path=worst.get("path") if isinstance(worst.get("path"), str) else None,
        line=worst.get("line") if isinstance(worst.get("line"), int) else None,
    )
    if "subtest" in worst:
        result.message = f"subtest {worst['subtest']}: {result.message}"
    if found.outcome is Outcome.HOLLOW:
        result.message = "a hook or plugin answered for it"
    if found.outcome is Outcome.CHANGED:
        result.message = f"from {worst['changed_from']!r} to {worst.get('outcome')!r}"
    if found.is_doubled:
        result.outcome, result.message = Outcome.DOUBLED, "a phase was reported twice"
    elif not _is_whole(found.reported):
        result.outcome, result.message = Outcome.UNACCOUNTED, "it started and did not finish"
    return result


def _is_whole(reported: Mapping[str, str]) -> bool:
    needed = _WITH_CALL if reported.get("setup") == "passed" else _WITHOUT_CALL
    return reported.keys() == needed


_WITHOUT_CALL = frozenset({"start", "setup", "teardown"})
_WITH_CALL = _WITHOUT_CALL | {"call"}
