"""`ONLY=`: what a word selects, and that a word which selects nothing is an error."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_tools.errors import UsageError
from ci_tools.roster.selection import select_ids

A, B = "tests/roster/test_a.py", "tests/roster/deep/test_b.py"
IDS = (
    f"{B}::test_one",
    f"{A}::TestC::test_x",
    f"{A}::TestC::test_xy",
    f"{A}::test_one",
    f"{A}::test_one[a b]",
    f"{A}::test_one[c]",
    f"{A}::test_one_more",
)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        (f"{A}::test_one[c]", [5]),
        (f"{A}::test_one[a b]", [4]),
        (f"{A}::test_one", [3, 4, 5]),
        (f"./{A}::test_one", [3, 4, 5]),
        (f"{A}::TestC", [1, 2]),
        (f"{A}::TestC::test_x", [1]),
        (A, [1, 2, 3, 4, 5, 6]),
        ("tests/roster/deep", [0]),
        ("tests/roster/deep/", [0]),
        ("tests/roster", [0, 1, 2, 3, 4, 5, 6]),
        ("tests", [0, 1, 2, 3, 4, 5, 6]),
    ],
)
def test_what_a_word_selects_in_the_order_of_the_lane(word: str, expected: list[int]) -> None:
    assert select_ids(IDS, [word]) == tuple(IDS[index] for index in expected)


def test_words_add_up_and_select_once() -> None:
    words = [f"{A}::test_one[c]", f"{A}::test_one", B]
    assert select_ids(IDS, words) == (IDS[0], IDS[3], IDS[4], IDS[5])


@pytest.mark.parametrize(
    "word",
    ["", ".", "/", "test_one", f"{A}::test_on", f"{A}::test_one[", f"{A}::TestC::", "tests/rost",
     f"{A}::test_one[d]", "tests/roster/test_a", f"/{A}", "-k", f"{A} {B}"],
)  # fmt: skip
def test_a_word_that_selects_nothing_is_an_error(word: str) -> None:
    with pytest.raises(UsageError, match="matches no id") as caught:
        select_ids(IDS, [A, word])
    assert "roster explain" in caught.value.fix


@given(st.sampled_from(IDS))
def test_every_id_selects_itself(test_id: str) -> None:
    assert test_id in select_ids(IDS, [test_id])
