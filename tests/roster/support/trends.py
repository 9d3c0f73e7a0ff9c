"""Assert a trend between measured errors only where the numbers can carry one.

Every assertion takes a floor: the size below which a difference is rounding. An ordering of two
numbers that differ by no more is decided by the processor's kernels, so it is refused with
`TrendUndecided`, which is neither a pass nor an ordinary failure. What the floor is for a given
computation (machine epsilon times a condition number, say) is for the test to state.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

ORDER_MARGIN = 100.0


class TrendUndecided(Exception):
    """The numbers are too close to the floor to be put in an order.

    Attributes:
        values: What was to be compared.
        floor: The stated size of rounding, in the unit of the values.
    """

    def __init__(self, what: str, values: Sequence[float], floor: float, reason: str) -> None:
        self.values = tuple(values)
        self.floor = floor
        listed = ", ".join(f"{value:.3g}" for value in self.values)
        super().__init__(
            f"{what}: {reason} (values {listed}; floor {floor:.3g}). The order of such numbers "
            "changes with the processor: assert a bound on each, or compare where they are larger."
        )


def assert_below(smaller: float, larger: float, *, floor: float, what: str) -> None:
    """Assert that one error is smaller than another by more than `floor`.

    Args:
        smaller: The error that should be the smaller one, not negative.
        larger: The error that should be the larger one, not negative.
        floor: Size below which a difference is rounding, positive, in the unit of the errors.
        what: The claim in words, for the message.

    Raises:
        AssertionError: The order is the opposite one, or a value is not finite.
        TrendUndecided: The values differ by no more than the floor.
        ValueError: The floor is not positive and finite, or an error is negative.
    """
    first, second = _checked([smaller, larger], floor, what)
    if max(first, second) <= floor:
        raise TrendUndecided(what, (first, second), floor, "both lie at the floor")
    if abs(first - second) <= floor:
        raise TrendUndecided(what, (first, second), floor, "they differ by less than the floor")
    assert first < second, f"{what}: {first:.3g} is not below {second:.3g} (floor {floor:.3g})"


def assert_decreases(errors: Sequence[float], *, floor: float, what: str, by: float = 1.0) -> int:
    """Assert that each error is smaller than the one before it, until they reach the floor.

    Once two neighbours both lie at the floor nothing is said about their order; an error that
    leaves the floor again is a failure.

    Args:
        errors: In the order of refinement, at least two, not negative.
        floor: Size below which a difference is rounding, positive, in the unit of the errors.
        what: The claim in words, for the message.
        by: Factor by which each step must at least shrink the error, at least 1.

    Returns:
        The number of steps whose order was decided, at least 1.

    Raises:
        AssertionError: A step did not shrink the error, or a value is not finite.
        TrendUndecided: No step can be decided, or one above the floor cannot.
        ValueError: Fewer than two errors, a negative one, or a bad floor or factor.
    """
    if by < 1.0 or len(errors) < 2:
        raise ValueError("a decrease needs two errors and a factor of at least 1")
    values = _checked(errors, floor, what)
    decided = 0
    for step, (before, after) in enumerate(itertools.pairwise(values), start=1):
        if max(before, after) > floor:
            assert_below(after, before / by, floor=floor, what=f"{what}, step {step}")
            decided += 1
    if not decided:
        raise TrendUndecided(what, values, floor, "all lie at the floor")
    return decided


def assert_order(
    errors: Sequence[float],
    sizes: Sequence[float],
    *,
    order: float,
    tolerance: float,
    floor: float,
    what: str,
) -> list[float]:
    """Assert that errors fall like `sizes ** order`, as far as the floor lets that be measured.

    Only errors above `ORDER_MARGIN` floors take part: there rounding moves an observed order
    between neighbours by at most 2 / ORDER_MARGIN / log(ratio of sizes).

    Args:
        errors: One error a size, not negative.
        sizes: Step sizes, strictly decreasing and positive.
        order: The order that theory gives.
        tolerance: Largest accepted distance of an observed order from it.
        floor: Size of rounding in an error, positive, in the unit of the errors.
        what: The claim in words, for the message.

    Returns:
        The observed orders, at least one.

    Raises:
        AssertionError: An observed order is too far off, or a value is not finite.
        TrendUndecided: Fewer than two leading errors stand clear of the floor.
        ValueError: Sizes that do not decrease or do not match, a negative error, a bad floor.
    """
    values = _checked(errors, floor, what)
    shrinking = all(a > b > 0.0 for a, b in itertools.pairwise(sizes))
    if len(sizes) != len(values) or not shrinking:
        raise ValueError("one positive size an error is needed, in decreasing order")
    clear = next((i for i, v in enumerate(values) if v <= ORDER_MARGIN * floor), len(values))
    if clear < 2:
        raise TrendUndecided(what, values, floor, "fewer than two errors stand clear of it")
    observed = [
        math.log(values[i] / values[i + 1]) / math.log(sizes[i] / sizes[i + 1])
        for i in range(clear - 1)
    ]
    off = [value for value in observed if abs(value - order) > tolerance]
    assert not off, f"{what}: observed orders {observed}, expected {order} within {tolerance}"
    return observed


def _checked(errors: Sequence[float], floor: float, what: str) -> list[float]:
    """Return the errors as plain floats, after refusing what cannot be compared."""
    if not (math.isfinite(floor) and floor > 0.0):
        raise ValueError(f"{what}: the floor must be positive and finite, not {floor}")
    values = [float(value) for value in errors]
    assert all(math.isfinite(value) for value in values), f"{what}: not finite: {values}"
    if any(value < 0.0 for value in values):
        raise ValueError(f"{what}: an error cannot be negative: {values}")
    return values
