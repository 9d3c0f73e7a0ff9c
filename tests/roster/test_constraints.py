"""Constraints: which points they admit, and the arguments that distributions refuse by them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import numpyro.distributions as dist
import pytest
from numpyro.distributions import constraints

from tests.roster.support.compiled import compiled

SEED = 61
NAN, INF = float("nan"), float("inf")


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def rotation(angle: float) -> list[list[float]]:
    return [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]


# Name, how to build, points that belong and points that do not; an end of an interval that
# belongs stands in the first list.
MEMBERSHIP = [
    ("real", lambda: constraints.real, [-1e300, 0.0, 2.5], [NAN, INF, -INF]),
    ("positive", lambda: constraints.positive, [5e-324, 1.0, INF], [0.0, -1.0, NAN]),
    ("nonnegative", lambda: constraints.nonnegative, [0.0, 1.0], [-5e-324, NAN]),
    ("greater-than", lambda: constraints.greater_than(2.0), [2.1, 9.0], [2.0, 1.9, NAN]),
    ("greater-than-eq", lambda: constraints.greater_than_eq(2.0), [2.0, 9.0], [1.9, NAN]),
    ("less-than", lambda: constraints.less_than(2.0), [-9.0, 1.9], [2.0, 2.1, NAN]),
    ("less-than-eq", lambda: constraints.less_than_eq(2.0), [-9.0, 2.0], [2.1, NAN]),
    ("interval", lambda: constraints.interval(-1.0, 3.0), [-1.0, 0.0, 3.0], [-1.1, 3.1, NAN]),
    ("open-interval", lambda: constraints.open_interval(-1.0, 3.0), [0.0, 2.9], [-1.0, 3.0, NAN]),
    ("unit-interval", lambda: constraints.unit_interval, [0.0, 0.5, 1.0], [-0.1, 1.1, NAN]),
    ("circular", lambda: constraints.circular, [-3.1, 0.0, 3.1], [3.2, -3.2]),
    ("boolean", lambda: constraints.boolean, [0, 1], [-1, 2, 0.5]),
    (
        "integer-interval",
        lambda: constraints.integer_interval(2, 5),
        [2, 3, 5],
        [1, 6, 2.5],
    ),
    (
        "nonnegative-integer",
        lambda: constraints.nonnegative_integer,
        [0, 7],
        [-1, 0.5],
    ),
    ("positive-integer", lambda: constraints.positive_integer, [1, 7], [0, 1.5]),
    (
        "simplex",
        lambda: constraints.simplex,
        [[0.2, 0.3, 0.5], [0.0, 0.0, 1.0]],
        [[0.2, 0.3, 0.4], [-0.1, 0.6, 0.5], [NAN, 0.5, 0.5]],
    ),
    (
        "l1-ball",
        lambda: constraints.l1_ball,
        [[0.2, -0.3, 0.5], [0.0, 0.0, 0.0]],
        [[0.6, -0.3, 0.2], [NAN, 0.0, 0.0]],
    ),
    (
        "sphere",
        lambda: constraints.sphere,
        [[0.6, 0.8], [-1.0, 0.0]],
        [[0.6, 0.7], [0.0, 0.0], [NAN, 0.0]],
    ),
    (
        "zero-sum",
        lambda: constraints.zero_sum(1),
        [[1.0, -3.0, 2.0], [0.0, 0.0, 0.0]],
        [[1.0, -3.0, 2.1], [1e-6, 0.0, 0.0]],
    ),
    (
        "ordered",
        lambda: constraints.ordered_vector,
        [[-1.0, 0.0, 3.0]],
        [[-1.0, 3.0, 0.0], [0.0, 0.0, 1.0], [NAN, 0.0, 1.0]],
    ),
    (
        "positive-ordered",
        lambda: constraints.positive_ordered_vector,
        [[0.1, 0.2, 3.0]],
        [[-1.0, 0.0, 3.0], [0.1, 0.1, 3.0]],
    ),
    (
        "multinomial",
        lambda: constraints.multinomial(4),
        [[1, 0, 3], [0, 4, 0]],
        [[1, 1, 1], [-1, 2, 3]],
    ),
    (
        "lower-cholesky",
        lambda: constraints.lower_cholesky,
        [[[1.0, 0.0], [5.0, 0.1]]],
        [[[1.0, 0.1], [5.0, 0.1]], [[-1.0, 0.0], [5.0, 0.1]], [[0.0, 0.0], [1.0, 1.0]]],
    ),
    (
        "corr-cholesky",
        lambda: constraints.corr_cholesky,
        [[[1.0, 0.0], [0.6, 0.8]]],
        [[[1.0, 0.0], [0.6, 0.7]], [[1.0, 0.0], [0.6, -0.8]]],
    ),
    (
        "corr-matrix",
        lambda: constraints.corr_matrix,
        [[[1.0, 0.9], [0.9, 1.0]]],
        [[[1.0, 1.1], [1.1, 1.0]], [[1.0, 0.5], [0.4, 1.0]], [[2.0, 0.5], [0.5, 1.0]]],
    ),
    (
        "positive-definite",
        lambda: constraints.positive_definite,
        [[[2.0, 0.9], [0.9, 1.0]]],
        [[[1.0, 2.0], [2.0, 1.0]], [[1.0, 0.5], [0.4, 1.0]]],
    ),
    (
        "positive-semidefinite",
        lambda: constraints.positive_semidefinite,
        [[[2.0, 0.0], [0.0, 0.0]]],
        [[[2.0, 0.0], [0.0, -0.1]], rotation(0.3)],
    ),
]


@pytest.mark.parametrize(
    ("build", "inside", "outside"), [pytest.param(*case[1:], id=case[0]) for case in MEMBERSHIP]
)
def test_admits_its_members_and_nothing_else(
    build: Callable[[], constraints.Constraint], inside: list[Any], outside: list[Any]
) -> None:
    constraint = build()
    assert [bool(constraint.check(np.array(point))) for point in inside] == [True] * len(inside)
    assert [bool(constraint.check(np.array(point))) for point in outside] == [False] * len(outside)


@pytest.mark.parametrize(
    ("build", "shape"),
    [
        pytest.param(lambda: constraints.greater_than(2.0), (), id="greater-than"),
        pytest.param(lambda: constraints.interval(-1.0, 3.0), (), id="interval"),
        pytest.param(lambda: constraints.simplex, (3,), id="simplex"),
        pytest.param(lambda: constraints.sphere, (3,), id="sphere"),
        pytest.param(lambda: constraints.zero_sum(1), (3,), id="zero-sum"),
        pytest.param(lambda: constraints.positive_ordered_vector, (3,), id="positive-ordered"),
        pytest.param(lambda: constraints.corr_cholesky, (2, 2), id="corr-cholesky"),
        pytest.param(lambda: constraints.positive_definite, (2, 2), id="positive-definite"),
    ],
)
def test_its_feasible_value_is_a_member(
    build: Callable[[], constraints.Constraint], shape: tuple[int, ...]
) -> None:
    value = build().feasible_like(np.zeros(shape))
    assert np.shape(value) == shape
    assert bool(build().check(np.asarray(value)))


def test_checks_a_batch_event_by_event() -> None:
    batch = np.array([[[0.2, 0.8], [0.5, 0.4]], [[1.0, 0.0], [-0.5, 1.5]]])
    np.testing.assert_array_equal(constraints.simplex.check(batch), [[True, False], [True, False]])


def test_independent_needs_every_coordinate() -> None:
    constraint = constraints.independent(constraints.positive, 1)
    batch = np.array([[1.0, 2.0], [1.0, -2.0]])
    np.testing.assert_array_equal(constraint.check(batch), [True, False])


@pytest.mark.parametrize(
    "build",
    [
        pytest.param(lambda: dist.Normal(0.0, -1.0, validate_args=True), id="negative-scale"),
        pytest.param(lambda: dist.Gamma(0.0, 1.0, validate_args=True), id="zero-concentration"),
        pytest.param(lambda: dist.Bernoulli(probs=1.1, validate_args=True), id="probability"),
        pytest.param(
            lambda: dist.Categorical(probs=np.array([0.5, 0.6]), validate_args=True),
            id="unnormalised",
        ),
        pytest.param(
            lambda: dist.MultivariateNormal(
                np.zeros(2), np.array([[1.0, 2.0], [2.0, 1.0]]), validate_args=True
            ),
            id="indefinite",
        ),
    ],
)
def test_invalid_parameters_are_refused(build: Callable[[], dist.Distribution]) -> None:
    with pytest.raises(ValueError, match=r"invalid .* parameter"):
        build()


@pytest.mark.parametrize(
    ("build", "value"),
    [
        pytest.param(lambda: dist.Exponential(1.0, validate_args=True), -0.5, id="exponential"),
        pytest.param(lambda: dist.Uniform(0.0, 1.0, validate_args=True), 1.5, id="uniform"),
        pytest.param(
            lambda: dist.Dirichlet(np.ones(2), validate_args=True), [0.5, 0.6], id="dirichlet"
        ),
    ],
)
def test_a_value_outside_the_support_is_warned_about(
    build: Callable[[], dist.Distribution], value: Any
) -> None:
    with pytest.warns(UserWarning, match="Out-of-support"):
        build().log_prob(np.array(value))


@pytest.mark.parametrize(
    "build",
    [
        pytest.param(lambda: dist.TruncatedNormal(0.0, 1.0, low=1.0, high=1.5), id="truncated"),
        pytest.param(lambda: dist.ProjectedNormal(np.array([1.0, 2.0, 0.0])), id="sphere"),
        pytest.param(lambda: dist.LKJCholesky(2, 1.5), id="lkj-cholesky"),
        pytest.param(lambda: dist.Multinomial(5, probs=np.array([0.2, 0.8])), id="multinomial"),
        pytest.param(lambda: dist.VonMises(3.0, 0.5), id="von-mises"),
    ],
)
def test_draws_lie_in_the_support(build: Callable[[], dist.Distribution]) -> None:
    draws = compiled(lambda key: build().sample(key, (200,)), jax.random.key(SEED))
    assert bool(np.all(build().support.check(draws)))
