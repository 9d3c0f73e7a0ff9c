"""The final outcome of a test, from the phases and subtests that were reported."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_tools.verdict.outcomes import Outcome, TestResult, find_outcomes, find_unfinished
from tests.unit.builders import Event, passed, phase

START = passed("t")[0]
SETUP, CALL, TEARDOWN = (phase("t", when) for when in ("setup", "call", "teardown"))


def subtest(outcome: str, **fields: object) -> Event:
    return {"event": "subtest", "id": "t", "outcome": outcome, **fields}


def outcome_of(*events: Event) -> TestResult:
    found = find_outcomes(events)
    assert list(found) == ["t"]
    return found["t"]


FAIL = phase("t", "call", "failed", message="boom", path="t.py", line=3, detail="trace")
XFAIL = phase("t", "call", "skipped", expected="strict", message="bug")


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([START, SETUP, CALL, TEARDOWN], Outcome.PASSED),
        ([START, SETUP, FAIL, TEARDOWN], Outcome.FAILED),
        ([START, phase("t", "setup", "failed"), TEARDOWN], Outcome.ERROR),
        ([START, SETUP, CALL, phase("t", "teardown", "failed")], Outcome.ERROR),
        ([START, SETUP, FAIL, phase("t", "teardown", "failed")], Outcome.FAILED),
        ([START, phase("t", "setup", "skipped"), TEARDOWN], Outcome.SKIPPED),
        ([START, SETUP, phase("t", "call", "skipped"), TEARDOWN], Outcome.SKIPPED),
        ([START, SETUP, XFAIL, TEARDOWN], Outcome.XFAILED),
        ([START, SETUP, XFAIL | {"expected": "loose"}, TEARDOWN], Outcome.XFAILED_LOOSE),
        ([START, SETUP, XFAIL | {"outcome": "passed"}, TEARDOWN], Outcome.XPASSED),
        ([START, SETUP, XFAIL, phase("t", "teardown", "failed")], Outcome.ERROR),
        ([START, SETUP, subtest("passed"), CALL, TEARDOWN], Outcome.PASSED),
        ([START, SETUP, subtest("failed"), CALL, TEARDOWN], Outcome.FAILED),
        ([START, SETUP, subtest("failed"), subtest("passed"), CALL, TEARDOWN], Outcome.FAILED),
        ([START, SETUP, subtest("skipped"), CALL, TEARDOWN], Outcome.SKIPPED),
        ([START, SETUP, CALL, TEARDOWN, subtest("failed")], Outcome.FAILED),
        ([START, SETUP, phase("t", "call", "rerun"), TEARDOWN], Outcome.FAILED),
        ([START, SETUP, phase("t", "call", "PASSED"), TEARDOWN], Outcome.FAILED),
        ([START, START, SETUP, CALL, TEARDOWN], Outcome.DOUBLED),
        ([START, SETUP, CALL, CALL, TEARDOWN], Outcome.DOUBLED),
        ([START, SETUP, FAIL, TEARDOWN, START, SETUP, CALL, TEARDOWN], Outcome.DOUBLED),
        ([START], Outcome.UNACCOUNTED),
        ([START, SETUP], Outcome.UNACCOUNTED),
        ([START, SETUP, CALL], Outcome.UNACCOUNTED),
        ([START, SETUP, FAIL], Outcome.UNACCOUNTED),
        ([SETUP, CALL, TEARDOWN], Outcome.UNACCOUNTED),
        ([START, CALL, TEARDOWN], Outcome.UNACCOUNTED),
        ([START, SETUP, TEARDOWN], Outcome.UNACCOUNTED),
        ([START, phase("t", "setup", "failed"), CALL, TEARDOWN], Outcome.UNACCOUNTED),
        ([START, SETUP, CALL, TEARDOWN, phase("t", "other")], Outcome.UNACCOUNTED),
        ([subtest("passed")], Outcome.UNACCOUNTED),
    ],
)
def test_the_final_outcome(events: Sequence[Event], expected: Outcome) -> None:
    assert outcome_of(*events).outcome is expected


def test_a_failure_carries_its_message_place_and_time() -> None:
    result = outcome_of(START, SETUP, FAIL, TEARDOWN)
    assert (result.message, result.detail, result.path, result.line) == ("boom", "trace", "t.py", 3)
    assert result.seconds == 0.75


def test_a_subtest_says_which() -> None:
    event = subtest("failed", subtest="i=3", message="boom")
    assert outcome_of(START, SETUP, event, CALL, TEARDOWN).message == "subtest i=3: boom"


def test_what_has_no_end_says_so() -> None:
    assert outcome_of(START, SETUP).message == "it started and did not finish"


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), "1", None, [], 10**400])
def test_a_time_that_is_none_counts_nothing(seconds: object) -> None:
    call = CALL | {"seconds": seconds}
    assert outcome_of(START, SETUP, call, TEARDOWN).seconds == 0.5


steps = st.sampled_from([START, SETUP, CALL, TEARDOWN, FAIL, XFAIL, subtest("failed"),
                         subtest("passed"), phase("t", "setup", "skipped")])  # fmt: skip


@given(st.lists(steps, min_size=1, max_size=6))
def test_green_means_every_phase_once_and_none_of_them_bad(events: list[Event]) -> None:
    result = outcome_of(*events)
    kept = [event for event in events if event != subtest("passed")]
    starts = sum(event is START for event in kept)
    calls = [event for event in kept if event.get("when") == "call"]
    rest = [event for event in kept if event is SETUP or event is TEARDOWN]
    is_whole = (
        starts == 1 and len(calls) == 1 and {id(e) for e in rest} == {id(SETUP), id(TEARDOWN)}
    )
    is_good = is_whole and len(kept) == 4 and calls[0] in (CALL, XFAIL)
    assert result.outcome.is_green is is_good


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([], None),
        (passed("a"), None),
        (passed("a")[:1], "a"),
        (passed("a")[:3], "a"),
        ([*passed("a"), *passed("b")[:2]], "b"),
        ([*passed("a")[:2], *passed("b")], None),
    ],
)
def test_the_culprit_is_the_last_test_that_began(events: list[Event], expected: str | None) -> None:
    assert find_unfinished(events) == expected


def test_only_two_outcomes_are_green() -> None:
    assert [outcome for outcome in Outcome if outcome.is_green] == ["passed", "xfailed"]
