"""The rules one exclusion has to keep."""

from __future__ import annotations

import datetime
from dataclasses import replace

import pytest

from ci_tools.roster.exclusion import (
    MIN_REASON_LENGTH,
    Exclusion,
    ExclusionKind,
    find_problems,
    is_overdue,
    unmet_need,
)

WHOLE = Exclusion(
    kind="expensive", reason="x" * MIN_REASON_LENGTH, owner="@team", review_by="2030-06-15"
)
OPTIONAL = replace(WHOLE, kind="optional", needs=("flowmc",))


@pytest.mark.parametrize("kind", [kind for kind in ExclusionKind if kind != "optional"])
def test_a_whole_exclusion_has_no_problem(kind: str) -> None:
    assert find_problems(replace(WHOLE, kind=kind)) == []
    assert find_problems(OPTIONAL) == []


@pytest.mark.parametrize(
    ("exclusion", "words"),
    [
        (replace(WHOLE, kind="slow"), "unknown kind 'slow'; kinds are expensive"),
        (replace(WHOLE, kind=""), "unknown kind ''"),
        (replace(WHOLE, kind="Expensive"), "unknown kind"),
        (replace(WHOLE, reason="x" * (MIN_REASON_LENGTH - 1)), "under 12 characters"),
        (replace(WHOLE, reason=" " * 40), "under 12 characters"),
        (replace(WHOLE, reason="too short" + " " * 10), "under 12 characters"),
        (replace(WHOLE, owner=""), "no owner"),
        (replace(WHOLE, owner="  "), "no owner"),
        (replace(WHOLE, review_by=""), "is not a date"),
        (replace(WHOLE, review_by="2030-02-30"), "is not a date"),
        (replace(WHOLE, review_by="20300615"), "is not a date"),
        (replace(WHOLE, review_by="2030-06-15T00:00"), "is not a date"),
        (replace(WHOLE, review_by="next year"), "is not a date"),
        (replace(WHOLE, kind="optional"), "without needs="),
        (replace(OPTIONAL, needs=("flowmc>=1",)), "no package name"),
        (replace(OPTIONAL, needs=("",)), "no package name"),
        (replace(WHOLE, problems=("unreadable",)), "unreadable"),
    ],
)
def test_one_defect_is_one_problem(exclusion: Exclusion, words: str) -> None:
    problems = find_problems(exclusion)
    assert len(problems) == 1
    assert words in problems[0]


def test_defects_are_all_named() -> None:
    assert len(find_problems(Exclusion(kind="", reason="", owner="", review_by=""))) == 4


def test_review_is_overdue_the_day_after() -> None:
    due = datetime.date(2030, 6, 15)
    assert not is_overdue(WHOLE, due)
    assert is_overdue(WHOLE, due + datetime.timedelta(days=1))
    assert not is_overdue(replace(WHOLE, review_by="soon"), due)


@pytest.mark.parametrize(
    ("needs", "locked", "expected"),
    [
        (("flowmc",), ("jax", "numpy"), ()),
        (("flowmc",), ("jax", "flowMC"), ("flowmc",)),
        (("Flow_MC",), ("flow-mc",), ("Flow_MC",)),
        (("flow.mc",), ("flow--mc",), ("flow.mc",)),
        ((), ("jax",), ()),
    ],
)
def test_a_need_that_the_lock_installs(
    needs: tuple[str, ...], locked: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    assert unmet_need(needs, locked) == expected
