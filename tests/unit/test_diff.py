"""What moved between two locks, and when a removal is explained."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_tools.roster.diff import check_removals, diff_locks, find_trailers, render_diff
from ci_tools.roster.lock import Lane, LockLine, RosterLock

GATE, EXCLUDED = Lane.GATE, Lane.EXCLUDED
lanes = st.dictionaries(st.sampled_from("abcdef"), st.sampled_from(Lane))


def make(entries: dict[str, Lane]) -> RosterLock:
    return RosterLock(tuple(LockLine(lane, test_id) for test_id, lane in entries.items()))


BASE = make({"a": GATE, "b": GATE, "c": EXCLUDED, "d": EXCLUDED, "e": GATE})
HEAD = make({"a": GATE, "b": EXCLUDED, "c": GATE, "f": GATE, "g": EXCLUDED})
REMOVED = diff_locks(make({"t.py::a": GATE, "t.py::b": EXCLUDED}), make({}))


def test_what_moved() -> None:
    diff = diff_locks(BASE, HEAD)
    assert diff.added == ((GATE, "f"), (EXCLUDED, "g"))
    assert diff.removed == ((EXCLUDED, "d"), (GATE, "e"))
    assert (diff.excluded, diff.promoted) == (("b",), ("c",))
    assert render_diff(diff).splitlines() == [
        "+ gate f",
        "+ excluded g",
        "- excluded d",
        "- gate e",
        "> excluded b",
        "< gate c",
    ]


@given(lanes, lanes)
def test_the_diff_turns_one_lock_into_the_other(
    base: dict[str, Lane], head: dict[str, Lane]
) -> None:
    diff = diff_locks(make(base), make(head))
    result = dict(base)
    for _, test_id in diff.removed:
        del result[test_id]
    result |= {test_id: lane for lane, test_id in diff.added}
    result |= dict.fromkeys(diff.excluded, EXCLUDED) | dict.fromkeys(diff.promoted, GATE)
    assert result == head


def test_nothing_moved() -> None:
    assert render_diff(diff_locks(BASE, BASE)) == "the roster did not move"


WHY = "the model is gone"


@pytest.mark.parametrize(
    "message",
    [
        f"remove a\n\nRoster-Removed: {WHY}",
        f"remove a\n\nRoster-Removed: {WHY}\nSigned-off-by: A <a@example.org>",
        f"squashed (#1)\n\n* one\n\nRoster-Removed: {WHY}\n\n* two",
        f"remove a\r\n\r\nRoster-Removed: {WHY}\r\n",
        f"Roster-Removed:{WHY}",
        f"Roster-Removed: short\nRoster-Removed: {WHY}",
    ],
)
def test_a_trailer_explains_a_removal(message: str) -> None:
    assert find_trailers(["other", message]) == (WHY,)
    assert check_removals(REMOVED, ["other", message], "roster.lock") == []


@pytest.mark.parametrize(
    "message",
    [
        "",
        "remove a because the model is gone",
        "Roster-Removed:",
        "Roster-Removed: short",
        "Roster-Removed:             ",
        "Roster-Removed:\nthe model is gone",
        f"roster-removed: {WHY}",
        f"see Roster-Removed: {WHY}",
        f"  Roster-Removed: {WHY}",
        f"Roster-Removed {WHY}",
    ],
)
def test_anything_else_does_not(message: str) -> None:
    found = check_removals(REMOVED, [message], "roster.lock")
    assert [(f.rule, f.test_id) for f in found] == [
        ("roster/unexplained-removal", "t.py::a"),
        ("roster/unexplained-removal", "t.py::b"),
    ]
    assert all("Roster-Removed" in finding.fix for finding in found)


def test_what_did_not_leave_needs_no_reason() -> None:
    diff = diff_locks(make({"a": GATE, "b": EXCLUDED}), make({"a": EXCLUDED, "b": GATE, "c": GATE}))
    assert check_removals(diff, [], "roster.lock") == []
