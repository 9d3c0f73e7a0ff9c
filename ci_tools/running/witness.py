"""Sees whether a test function was really entered, whatever the hooks around it report.

A plugin that swallows the call, or that never awaits a coroutine, leaves a pass without a test.
The interpreter's own monitoring tells (Python 3.12 and later); it costs nothing outside the one
function that is watched.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from types import CodeType

_TOOL = "ci_tools"
_IDS = (4, 3, 5, 0)  # the numbers that debuggers, coverage and profilers do not reserve come first


class Witness:
    """Watches one function at a time; `is_here` is False where the interpreter cannot tell."""

    def __init__(self) -> None:
        self._tool = _claim()
        self._entered: CodeType | None = None

    @property
    def is_here(self) -> bool:
        """Whether this interpreter can tell."""
        return self._tool is not None

    @contextlib.contextmanager
    def watch(self, function: object) -> Iterator[None]:
        """Watch a function for the length of the block; `was_entered` answers afterwards."""
        code = code_of(function)
        self._entered = None
        if code is None or self._tool is None or sys.version_info < (3, 12):
            yield
            return
        events = sys.monitoring.events
        sys.monitoring.register_callback(self._tool, events.PY_START, self._on_start)
        sys.monitoring.set_local_events(self._tool, code, events.PY_START)
        try:
            yield
        finally:
            sys.monitoring.set_local_events(self._tool, code, events.NO_EVENTS)

    def was_entered(self, function: object) -> bool | None:
        """Return whether the function was entered while it was watched; None: cannot tell."""
        code = code_of(function)
        if code is None or self._tool is None:
            return None
        return self._entered is code

    def _on_start(self, code: CodeType, offset: int) -> None:
        self._entered = code


def code_of(function: object) -> CodeType | None:
    """Return the code of a plain function or method; None for every other callable."""
    code = getattr(function, "__code__", None)
    return code if isinstance(code, CodeType) else None


def _claim() -> int | None:
    """A free number among the interpreter's monitoring tools, now ours."""
    if sys.version_info < (3, 12):
        return None
    for number in _IDS:
        with contextlib.suppress(ValueError):
            sys.monitoring.use_tool_id(number, _TOOL)
            return number
    return None
