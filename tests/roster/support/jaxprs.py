"""Sizes of traced programs: equations and intermediate arrays, through every sub-program."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import jax


def trace(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return the program that `function` becomes for arguments of these shapes."""
    return jax.make_jaxpr(function)(*arguments)


def count_equations(program: Any) -> int:
    """Return the number of equations, those of loop bodies and branches counted once each."""
    return sum(1 for _ in walk(program))


def count_primitive(program: Any, name: str) -> int:
    """Return how many equations apply the primitive called `name`."""
    return sum(equation.primitive.name == name for equation in walk(program))


def largest_intermediate(program: Any) -> int:
    """Return the number of elements of the largest array that any equation produces."""
    sizes = (
        math.prod(variable.aval.shape)
        for equation in walk(program)
        for variable in equation.outvars
        if hasattr(variable.aval, "shape")
    )
    return max(sizes, default=0)


def walk(program: Any) -> Iterator[Any]:
    """Yield the equations of a program and of all programs in their parameters."""
    for equation in getattr(program, "jaxpr", program).eqns:
        yield equation
        for parameter in equation.params.values():
            for inner in _programs(parameter):
                yield from walk(inner)


def _programs(parameter: Any) -> Iterator[Any]:
    if hasattr(parameter, "eqns") or hasattr(getattr(parameter, "jaxpr", None), "eqns"):
        yield parameter
    elif isinstance(parameter, list | tuple):
        for item in parameter:
            yield from _programs(item)
