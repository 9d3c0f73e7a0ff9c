"""A function that was entered is told from one that was not, and from one that cannot be told."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator

import pytest

from ci_tools.running.witness import Witness, code_of


@pytest.fixture
def witness() -> Iterator[Witness]:
    made = Witness()
    yield made
    release("ci_tools")


def release(name: str) -> None:
    for number in range(6):
        if sys.monitoring.get_tool(number) == name:
            sys.monitoring.free_tool_id(number)


def function() -> None:
    return None


def test_a_call_is_seen_and_a_missing_one_too(witness: Witness) -> None:
    assert witness.is_here
    with witness.watch(function):
        pass
    assert witness.was_entered(function) is False
    with witness.watch(function):
        function()
    assert witness.was_entered(function) is True
    with witness.watch(function):
        pass
    assert witness.was_entered(function) is False


def test_a_coroutine_counts_when_it_is_awaited(witness: Witness) -> None:
    async def coroutine() -> None:
        return None

    with witness.watch(coroutine):
        made = coroutine()
    assert witness.was_entered(coroutine) is False
    with witness.watch(coroutine), pytest.raises(StopIteration):
        made.send(None)
    assert witness.was_entered(coroutine) is True


def test_another_function_does_not_count(witness: Witness) -> None:
    with witness.watch(function):
        release("nobody")
    assert witness.was_entered(function) is False


@pytest.mark.parametrize("other", [functools.partial(function), len, None, object()])
def test_what_has_no_code_cannot_be_told(witness: Witness, other: object) -> None:
    assert code_of(other) is None
    with witness.watch(other):
        pass
    assert witness.was_entered(other) is None


def test_where_every_tool_is_taken_it_cannot_tell() -> None:
    free = [number for number in range(6) if sys.monitoring.get_tool(number) is None]
    for number in free:
        sys.monitoring.use_tool_id(number, f"taken {number}")
    try:
        witness = Witness()
        assert not witness.is_here
        with witness.watch(function):
            function()
        assert witness.was_entered(function) is None
    finally:
        for number in free:
            sys.monitoring.free_tool_id(number)
