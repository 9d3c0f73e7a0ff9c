"""Files start while they fit, and none is ever left out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_tools.running.schedule import Schedule
from ci_tools.running.worklist import WorkFile, Worklist, make_schedule


def test_files_start_in_order_while_workers_are_free() -> None:
    schedule = Schedule([2, 0, 1], {0: 1, 1: 1, 2: 1}, workers=2, budget_bytes=10)
    assert [schedule.take([]), schedule.take([2]), schedule.take([2, 0])] == [2, 0, None]
    assert schedule.waiting == [1]
    assert (schedule.take([0]), schedule.take([0])) == (1, None)


def test_a_file_that_does_not_fit_waits_and_a_smaller_one_goes_first() -> None:
    schedule = Schedule([0, 1, 2], {0: 6, 1: 6, 2: 3}, workers=3, budget_bytes=10)
    assert [schedule.take([]), schedule.take([0]), schedule.take([0, 2])] == [0, 2, None]
    assert schedule.take([2]) == 1


def test_a_file_over_the_budget_runs_alone() -> None:
    schedule = Schedule([0, 1], {0: 99, 1: 1}, workers=2, budget_bytes=10)
    assert schedule.take([]) == 0
    assert schedule.take([0]) is None
    assert schedule.take([]) == 1


@given(
    st.lists(st.integers(0, 20), min_size=1, max_size=12),
    st.integers(1, 4),
    st.integers(0, 20),
    st.data(),
)
def test_every_file_starts_once_and_the_budget_holds(
    needs: list[int], workers: int, budget: int, data: st.DataObject
) -> None:
    order = data.draw(st.permutations(range(len(needs))))
    peaks = dict(enumerate(needs))
    schedule = Schedule(order, peaks, workers, budget)
    running: list[int] = []
    started: list[int] = []
    while schedule.waiting or running:
        place = schedule.take(running)
        if place is None:
            running.remove(data.draw(st.sampled_from(running)))
            continue
        running.append(place)
        started.append(place)
        assert len(running) <= workers
        assert len(running) == 1 or sum(peaks[n] for n in running) <= budget
    assert sorted(started) == list(range(len(needs)))


def worklist(order: tuple[int, ...], peaks: tuple[int, ...]) -> Worklist:
    return Worklist(
        plan="",
        chunk=1,
        lane="gate",
        files=tuple(WorkFile(path=name, ids=None) for name in "abc"),
        packages=(),
        lock="",
        timeout_seconds=1.0,
        file_memory_bytes=5,
        order=order,
        peaks=peaks,
    )


@pytest.mark.parametrize("order", [(), (0, 1), (0, 1, 1), (0, 1, 3), (0, 1, 2, 2)])
def test_an_order_that_is_not_of_these_files_is_left_out(order: tuple[int, ...]) -> None:
    schedule = make_schedule(worklist(order=order, peaks=(1,)), workers=3, budget_bytes=10)
    assert [schedule.take([]), schedule.take([0]), schedule.take([0, 1])] == [0, 1, None]


def test_a_forecast_gives_order_and_needs() -> None:
    given_list = worklist(order=(2, 1, 0), peaks=(9, 1, 1))
    schedule = make_schedule(given_list, workers=3, budget_bytes=10)
    assert [schedule.take([]), schedule.take([2]), schedule.take([2, 1])] == [2, 1, None]
