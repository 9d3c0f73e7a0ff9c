"""Costs decide when a file runs, never whether: whatever a history holds, every file is there."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_tools.planning.costs import (
    KEPT,
    Cost,
    add_observations,
    forecast,
    lower_bound,
    makespan,
    order_files,
    parse_history,
    render_history,
)

DEFAULT = Cost(0.0, 100)
costs = st.builds(
    Cost, st.floats(0, 1e6, allow_nan=False).map(lambda s: round(s, 3)), st.integers(1, 1 << 40)
)


def history(text: Any) -> dict[str, list[Cost]]:
    return parse_history(json.dumps({"schema": 1, "files": text}))


@given(st.dictionaries(st.text(max_size=9), st.lists(costs, min_size=1, max_size=KEPT)))
def test_what_is_written_is_read(found: dict[str, list[Cost]]) -> None:
    assert parse_history(render_history(found)) == found


@pytest.mark.parametrize(
    "row",
    [[float("nan"), 1], [-1, 1], [float("inf"), 1], [1, 0], [1, -5], [1, 1.5], [1, 1 << 61],
     ["1", 1], [1], [1, 2, 3], None, {}, True, [True, 1], [1e9, 1]],
)  # fmt: skip
def test_an_absurd_observation_is_left_out(row: object) -> None:
    assert history({"a": [row], "b": [row, [2, 3]]}) == {"b": [Cost(2.0, 3)]}


@pytest.mark.parametrize(
    "text", ["", "[", "[]", "null", "{}", '{"schema": 2, "files": {"a": [[1, 1]]}}',
             '{"schema": 1, "files": []}', '{"schema": 1, "files": {"a": 1}}', "[" * 100_000],
)  # fmt: skip
def test_a_damaged_history_remembers_nothing(text: str) -> None:
    assert parse_history(text) == {}


def test_the_oldest_observations_give_way() -> None:
    found: dict[str, list[Cost]] = {}
    for number in range(1, KEPT + 4):
        found = add_observations(found, {"a": Cost(float(number), number)})
    assert [cost.peak_bytes for cost in found["a"]] == list(range(4, KEPT + 4))


def test_a_median_is_not_moved_by_one_bad_run() -> None:
    seen = {"a": [Cost(1.0, 10), Cost(100.0, 1000), Cost(2.0, 20)]}
    assert forecast(seen, ["a"], DEFAULT).costs == {"a": Cost(2.0, 20)}


def test_an_unseen_file_counts_as_the_upper_quartile() -> None:
    seen = {name: [Cost(float(n), n)] for n, name in enumerate("abcd", start=1)}
    found = forecast(seen, [*"abcd", "new"], DEFAULT)
    assert (found.costs["new"], found.unseen) == (Cost(3.0, 3), ("new",))
    assert order_files(found) == ["d", "new", "c", "b", "a"]


def test_without_any_history_everything_is_the_default() -> None:
    found = forecast({}, ["b", "a"], DEFAULT)
    assert (found.costs, found.unseen) == ({"b": DEFAULT, "a": DEFAULT}, ("b", "a"))
    assert order_files(found) == ["a", "b"]


paths = st.lists(st.text(min_size=1, max_size=4), unique=True, max_size=12)


@given(paths, st.dictionaries(st.text(min_size=1, max_size=4), st.lists(costs, max_size=3)))
def test_every_file_is_ordered_once(asked: list[str], seen: dict[str, list[Cost]]) -> None:
    found = forecast(seen, asked, DEFAULT)
    assert sorted(order_files(found)) == sorted(asked)
    assert order_files(found) == order_files(forecast(seen, asked[::-1], DEFAULT))


@given(st.lists(costs, max_size=40), st.integers(1, 8))
def test_longest_first_is_within_four_thirds_of_the_bound(rows: list[Cost], workers: int) -> None:
    seconds = sorted((cost.seconds for cost in rows), reverse=True)
    bound = lower_bound(rows, workers, 1 << 62)
    assert bound <= makespan(seconds, workers) * (1 + 1e-9)
    two_longest = sum(seconds[workers - 1 : workers + 1]) if len(seconds) > workers else 0.0
    assert makespan(seconds, workers) <= 4 / 3 * max(bound, two_longest) * (1 + 1e-9)


def test_memory_bounds_the_time_too() -> None:
    rows = [Cost(10.0, 60), Cost(10.0, 60)]
    assert lower_bound(rows, 2, 1000) == 10.0
    assert lower_bound(rows, 2, 60) == 20.0
    assert lower_bound([], 2, 60) == 0.0
