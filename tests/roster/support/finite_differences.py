"""Derivatives by finite differences at a stated step, from function values in NumPy alone.

The five-point stencil has truncation error step**4 / 30 * f'''''(x) and rounding error about
1.5 * eps * |f| / step (Abramowitz and Stegun, table 25.2). At the default step and with fifth
derivatives of order 10 both stay below 1e-12 * 10**1.5, hence `TOLERANCE`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

STEP = 1e-3
TOLERANCE = 1e-9

Function = Callable[[NDArray[np.float64]], ArrayLike]


def directional(
    function: Function, point: ArrayLike, direction: ArrayLike, *, step: float = STEP
) -> NDArray[np.float64]:
    """Return the derivative of `function` at `point` along `direction`, in the output's shape.

    `function` must compute in double precision.
    """
    centre = np.asarray(point, dtype=np.float64)
    offset = step * np.asarray(direction, dtype=np.float64)

    def value(multiple: int) -> NDArray[np.float64]:
        return np.asarray(function(centre + multiple * offset), dtype=np.float64)

    return (8.0 * (value(1) - value(-1)) - (value(2) - value(-2))) / (12.0 * step)


def jacobian(function: Function, point: ArrayLike, *, step: float = STEP) -> NDArray[np.float64]:
    """Return all first derivatives, with the shape of the output followed by that of the point."""
    centre = np.asarray(point, dtype=np.float64)
    columns = [
        directional(function, centre, unit.reshape(centre.shape), step=step)
        for unit in np.eye(centre.size)
    ]
    stacked = np.stack(columns, axis=-1)
    return stacked.reshape(*stacked.shape[:-1], *centre.shape)
