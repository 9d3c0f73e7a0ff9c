"""Run a function as one compiled program: quicker than compiling each small operation in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray


def compiled(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return `function(*arguments)` under `jax.jit`, with NumPy arrays for leaves."""
    return jax.tree.map(np.asarray, jax.jit(function)(*arguments))


def log_prob(build: Callable[[], Any], value: Any) -> NDArray[np.float64]:
    """Return the log density at `value` of the distribution that `build()` makes."""
    result: NDArray[np.float64] = compiled(lambda x: build().log_prob(x), value)
    return result


def moments(build: Callable[[], Any]) -> tuple[Any, Any]:
    """Return mean and variance of the distribution that `build()` makes."""

    def both() -> tuple[Any, Any]:
        distribution = build()
        return distribution.mean, distribution.variance

    mean, variance = compiled(both)
    return mean, variance
