"""The trend helpers: they decide above the floor, and refuse to put rounding errors in an order."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special

from tests.roster.support.trends import (
    TrendUndecided,
    assert_below,
    assert_decreases,
    assert_order,
)

EPSILON = float(np.finfo(np.float64).eps)

# Two errors that were 1.8e-2 and small when an ordering of them was written down, and that later
# both came to lie at the noise floor of the computation.
RECORDED = 1.8e-2
LEFT, RIGHT = 7.1e-14, 4.2e-10
FLOOR = 1e-9


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize(("smaller", "larger"), [(LEFT, RIGHT), (RIGHT, LEFT)])
def test_two_errors_at_the_floor_are_refused_in_both_orders(smaller: float, larger: float) -> None:
    with pytest.raises(TrendUndecided) as caught:
        assert_below(smaller, larger, floor=FLOOR, what="method A beats method B")
    assert caught.value.values == (smaller, larger)
    assert caught.value.floor == FLOOR
    for part in ("method A beats method B", "7.1e-14", "4.2e-10", "floor 1e-09"):
        assert part in str(caught.value)


def test_the_recorded_error_against_one_at_the_floor_is_decided() -> None:
    assert_below(LEFT, RECORDED, floor=FLOOR, what="method A beats method B")


@pytest.mark.parametrize("small", [LEFT, RIGHT])
def test_the_recorded_error_in_the_wrong_place_fails(small: float) -> None:
    with pytest.raises(AssertionError, match="is not below"):
        assert_below(RECORDED, small, floor=FLOOR, what="method A beats method B")


def test_a_refusal_is_not_an_assertion_error() -> None:
    assert not issubclass(TrendUndecided, AssertionError)


@pytest.mark.parametrize(
    ("smaller", "larger"),
    [(0.3, 0.3), (0.3, 0.3 + FLOOR / 2), (0.3 + FLOOR / 2, 0.3), (0.9 * FLOOR, 1.1 * FLOOR)],
    ids=["equal", "just-below", "just-above", "across-the-floor"],
)
def test_large_errors_that_differ_by_less_than_the_floor_are_refused(
    smaller: float, larger: float
) -> None:
    with pytest.raises(TrendUndecided, match="differ by less than the floor"):
        assert_below(smaller, larger, floor=FLOOR, what="A beats B")


@pytest.mark.parametrize("floor", [0.0, -1e-9, math.inf, math.nan])
def test_a_floor_that_decides_nothing_is_refused(floor: float) -> None:
    with pytest.raises(ValueError, match="floor must be positive"):
        assert_below(1e-3, 1e-2, floor=floor, what="A beats B")


@pytest.mark.parametrize("broken", [math.nan, math.inf])
def test_a_value_that_is_not_finite_fails(broken: float) -> None:
    with pytest.raises(AssertionError, match="not finite"):
        assert_below(1e-3, broken, floor=FLOOR, what="A beats B")


def test_a_negative_error_is_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        assert_below(-1e-3, 1e-2, floor=FLOOR, what="A beats B")


@pytest.mark.parametrize(
    ("errors", "decided"),
    [
        ([1e-1, 1e-3, 1e-5], 2),
        ([1e-1, 1e-3, LEFT, RIGHT], 2),
        ([1e-1, RIGHT, LEFT, RIGHT], 1),
    ],
    ids=["above", "into-the-floor", "straight-to-the-floor"],
)
def test_a_decrease_is_accepted_as_far_as_the_floor(errors: list[float], decided: int) -> None:
    assert assert_decreases(errors, floor=FLOOR, what="refinement helps", by=5.0) == decided


@pytest.mark.parametrize(
    "errors",
    [[1e-1, 1e-3, 1e-2], [1e-1, 0.9e-1, 1e-3], [1e-1, LEFT, 1e-3]],
    ids=["rises", "stagnates", "leaves-the-floor"],
)
def test_a_decrease_that_breaks_above_the_floor_fails(errors: list[float]) -> None:
    with pytest.raises(AssertionError, match="is not below"):
        assert_decreases(errors, floor=FLOOR, what="refinement helps", by=2.0)


def test_a_decrease_among_rounding_errors_is_refused() -> None:
    with pytest.raises(TrendUndecided, match="all lie at the floor"):
        assert_decreases([RIGHT, 1e-11, LEFT], floor=FLOOR, what="refinement helps")


def test_an_order_is_measured_only_clear_of_the_floor() -> None:
    sizes = [0.5**k for k in range(8)]
    errors = [max(size**4, 1e-3) + 1e-6 * (-1) ** k for k, size in enumerate(sizes)]
    observed = assert_order(
        errors[:3], sizes[:3], order=4.0, tolerance=0.1, floor=1e-6, what="order"
    )
    assert len(observed) == 2
    with pytest.raises(AssertionError, match="observed orders"):
        assert_order(errors, sizes, order=4.0, tolerance=0.1, floor=1e-6, what="order")
    with pytest.raises(TrendUndecided, match="stand clear"):
        assert_order(errors, sizes, order=4.0, tolerance=0.1, floor=1e-2, what="order")


def difference_errors(step: float) -> tuple[float, float, float]:
    """Errors of the forward and the central difference of sin at 1, and their rounding floor.

    A value of sin is good to two units in the last place and the step to half a unit of the
    point: 8 * eps / step bounds the error from rounding of either formula.
    """
    sine: Callable[[float], jax.Array] = jax.jit(jnp.sin)
    forward = (sine(1.0 + step) - sine(1.0)) / step
    central = (sine(1.0 + step) - sine(1.0 - step)) / (2.0 * step)
    truth = math.cos(1.0)
    return abs(float(forward) - truth), abs(float(central) - truth), 8.0 * EPSILON / step


@pytest.mark.parametrize("step", [1e-1, 1e-3, 1e-5])
def test_central_differences_beat_forward_ones_at_a_sensible_step(step: float) -> None:
    forward, central, floor = difference_errors(step)
    assert_below(central, forward, floor=floor, what=f"central beats forward at {step}")


@pytest.mark.parametrize("step", [1e-10, 1e-12])
def test_at_a_tiny_step_the_two_differences_cannot_be_ordered(step: float) -> None:
    forward, central, floor = difference_errors(step)
    with pytest.raises(TrendUndecided, match="both lie at the floor"):
        assert_below(central, forward, floor=floor, what=f"central beats forward at {step}")


def test_the_trapezoid_rule_converges_geometrically_on_a_period_until_rounding() -> None:
    """The mean of exp(cos t) over a period is I_0(1) (DLMF 10.32.1)."""
    counts = (2, 4, 8, 16, 32, 64)
    means = [jnp.mean(jnp.exp(jnp.cos(2.0 * np.pi * np.arange(n) / n))) for n in counts]
    errors = [abs(float(mean) - special.i0(1.0)) for mean in means]
    floor = 32.0 * EPSILON  # pairwise or plain, 64 terms below e, and a reference good to an ulp
    assert assert_decreases(errors, floor=floor, what="more nodes help", by=10.0) == 3
    with pytest.raises(TrendUndecided):
        assert_below(errors[-1], errors[-2], floor=floor, what="64 nodes beat 32")
