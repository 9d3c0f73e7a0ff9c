"""Chunks: every file once, whole, under the limit, and the same for the same input."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_tools.planning.chunking import chunk_files

weights = st.dictionaries(st.text(max_size=4), st.integers(0, 30), max_size=40)
limits = st.integers(1, 40)


@given(weights, limits)
def test_every_file_is_in_exactly_one_chunk(files: dict[str, int], limit: int) -> None:
    chunks = chunk_files(files, limit)
    assert sorted(path for chunk in chunks for path in chunk) == sorted(files)
    assert all(chunks)


@given(weights, limits)
def test_the_limit_holds_for_all_but_a_single_large_file(files: dict[str, int], limit: int) -> None:
    for chunk in chunk_files(files, limit):
        assert sum(files[path] for path in chunk) <= limit or len(chunk) == 1


@given(weights, limits, st.randoms(use_true_random=False))
def test_the_same_input_in_any_order_gives_the_same_chunks(
    files: dict[str, int], limit: int, shuffle: random.Random
) -> None:
    items = list(files.items())
    shuffle.shuffle(items)
    assert chunk_files(dict(items), limit) == chunk_files(files, limit)


@given(weights, limits)
def test_heavy_files_start_first(files: dict[str, int], limit: int) -> None:
    for chunk in chunk_files(files, limit):
        assert [files[path] for path in chunk] == sorted(
            (files[path] for path in chunk), reverse=True
        )


@given(weights, limits)
def test_there_are_not_many_more_chunks_than_needed(files: dict[str, int], limit: int) -> None:
    shared = [weight for weight in files.values() if weight < limit]
    alone = len(files) - len(shared)
    assert len(chunk_files(files, limit)) <= alone + 2 * (sum(shared) // limit + 1)


@pytest.mark.parametrize(
    ("files", "limit", "expected"),
    [
        ({}, 5, []),
        ({"a": 0}, 1, [["a"]]),
        ({"a": 5}, 5, [["a"]]),
        ({"a": 6}, 5, [["a"]]),
        ({"a": 2, "b": 2}, 5, [["a", "b"]]),
        ({"b": 2, "a": 2}, 3, [["a"], ["b"]]),
        ({"a": 4, "b": 3, "c": 2, "d": 1}, 5, [["a", "d"], ["b", "c"]]),
        ({"a": 9, "b": 1, "c": 1}, 3, [["a"], ["b", "c"]]),
    ],
)
def test_small_cases(files: dict[str, int], limit: int, expected: list[list[str]]) -> None:
    assert chunk_files(files, limit) == expected


def test_a_limit_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        chunk_files({"a": 1}, 0)
