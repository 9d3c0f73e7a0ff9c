"""Bijections: they invert, land in their constraint, and know their Jacobian determinant."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro.distributions as dist
import pytest
from numpyro.distributions import biject_to, constraints, transforms
from scipy import special, stats

from tests.roster.support.compiled import compiled, log_prob

Build = Callable[[], Any]
# A few dozen operations on numbers of order one in float64, and a determinant of at most 6 x 6.
CLOSE = {"rtol": 1e-11, "atol": 1e-11}


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def whole(value: jax.Array) -> jax.Array:
    return value.ravel()


def without_last(value: jax.Array) -> jax.Array:
    """Free coordinates of a simplex: the last one is one minus the rest."""
    return value[..., :-1].ravel()


def lower_triangle(value: jax.Array) -> jax.Array:
    """Free coordinates of a symmetric or lower triangular matrix."""
    return value[jnp.tril_indices(value.shape[-1])]


def below_diagonal(value: jax.Array) -> jax.Array:
    """Free coordinates of a correlation matrix or of its Cholesky factor."""
    return value[jnp.tril_indices(value.shape[-1], -1)]


# Constraint, size of the unconstrained vector, and the coordinates in which the image has a
# density. A size of zero stands for a scalar.
BIJECTIONS = [
    ("real", lambda: constraints.real, 0, whole),
    ("positive", lambda: constraints.positive, 0, whole),
    ("softplus-positive", lambda: constraints.softplus_positive, 0, whole),
    ("greater-than", lambda: constraints.greater_than(-2.0), 0, whole),
    ("less-than", lambda: constraints.less_than(3.0), 0, whole),
    ("unit-interval", lambda: constraints.unit_interval, 0, whole),
    ("interval", lambda: constraints.interval(-1.0, 4.0), 0, whole),
    ("circular", lambda: constraints.circular, 0, whole),
    ("positive-vector", lambda: constraints.independent(constraints.positive, 1), 3, whole),
    ("ordered", lambda: constraints.ordered_vector, 4, whole),
    ("positive-ordered", lambda: constraints.positive_ordered_vector, 4, whole),
    ("simplex", lambda: constraints.simplex, 3, without_last),
    ("lower-cholesky", lambda: constraints.lower_cholesky, 6, lower_triangle),
    ("softplus-lower-cholesky", lambda: constraints.softplus_lower_cholesky, 6, lower_triangle),
    ("scaled-unit-cholesky", lambda: constraints.scaled_unit_lower_cholesky, 6, lower_triangle),
    ("positive-definite", lambda: constraints.positive_definite, 6, lower_triangle),
    ("corr-cholesky", lambda: constraints.corr_cholesky, 3, below_diagonal),
    ("corr-matrix", lambda: constraints.corr_matrix, 3, below_diagonal),
]
BUILD_AND_SIZE = [pytest.param(*case[1:3], id=case[0]) for case in BIJECTIONS]


def unconstrained(size: int) -> np.ndarray:
    """A point with coordinates of both signs, away from zero."""
    values = np.array([0.7, -1.1, 0.4, 1.3, -0.6, -0.2])
    return values[:size] if size else values[0]


@pytest.mark.parametrize(("build", "size"), BUILD_AND_SIZE)
def test_maps_into_its_constraint_and_back(build: Build, size: int) -> None:
    start = unconstrained(size)

    def there_and_back(point: jax.Array) -> tuple[jax.Array, jax.Array]:
        transform = biject_to(build())
        value = transform(point)
        return value, transform.inv(value)

    value, back = compiled(there_and_back, start)
    assert bool(build().check(value))
    np.testing.assert_allclose(back, start, **CLOSE)
    assert biject_to(build()).forward_shape(np.shape(start)) == value.shape
    assert biject_to(build()).inverse_shape(value.shape) == np.shape(start)


@pytest.mark.parametrize(
    ("build", "size", "coordinates"), [pytest.param(*case[1:], id=case[0]) for case in BIJECTIONS]
)
def test_log_determinant_is_that_of_the_automatic_jacobian(
    build: Build, size: int, coordinates: Callable[[jax.Array], jax.Array]
) -> None:
    def both(point: jax.Array) -> tuple[jax.Array, jax.Array]:
        transform = biject_to(build())
        jacobian = jax.jacfwd(lambda x: coordinates(transform(x)))(point)
        square = jacobian.reshape(max(size, 1), max(size, 1))
        stated = transform.log_abs_det_jacobian(point, transform(point))
        return jnp.linalg.slogdet(square)[1], stated

    automatic, stated = compiled(both, unconstrained(size))
    np.testing.assert_allclose(stated, automatic, **CLOSE)


@pytest.mark.parametrize(
    ("build", "closed_form"),
    [
        pytest.param(lambda: constraints.positive, lambda x: x, id="exp"),
        pytest.param(
            lambda: constraints.unit_interval,
            lambda x: special.log_expit(x) + special.log_expit(-x),
            id="sigmoid",
        ),
        pytest.param(
            lambda: constraints.interval(-1.0, 4.0),
            lambda x: np.log(5.0) + special.log_expit(x) + special.log_expit(-x),
            id="interval",
        ),
        pytest.param(lambda: constraints.softplus_positive, special.log_expit, id="softplus"),
    ],
)
def test_log_determinant_has_its_closed_form_far_out(
    build: Build, closed_form: Callable[[np.ndarray], np.ndarray]
) -> None:
    points = np.array([-30.0, -3.0, 0.0, 2.0, 30.0])

    def stated(point: jax.Array) -> jax.Array:
        transform = biject_to(build())
        return transform.log_abs_det_jacobian(point, transform(point))

    np.testing.assert_allclose(compiled(stated, points), closed_form(points), **CLOSE)


def test_stick_breaking_has_its_closed_form() -> None:
    """Sum of log z(1 - z) times the stick that is left (Stan reference manual, simplex)."""
    start = unconstrained(3)
    shares = special.expit(start - np.log([3.0, 2.0, 1.0]))
    left = np.concatenate([[1.0], np.cumprod(1.0 - shares)])
    expected = np.append(shares * left[:-1], left[-1])
    transform = biject_to(constraints.simplex)
    value = np.asarray(transform(start))
    np.testing.assert_allclose(value, expected, **CLOSE)
    log_determinant = np.sum(np.log(shares * (1.0 - shares) * left[:-1]))
    stated = transform.log_abs_det_jacobian(start, value)
    np.testing.assert_allclose(stated, log_determinant, **CLOSE)


def test_zero_sum_is_an_isometry() -> None:
    """The image spans a subspace on which lengths are kept, so that no volume is gained."""
    transform, start = biject_to(constraints.zero_sum(1)), unconstrained(4)

    def both(point: jax.Array) -> tuple[jax.Array, jax.Array]:
        return transform(point), jax.jacfwd(lambda x: transform(x))(point)

    value, jacobian = compiled(both, start)
    assert value.shape == (5,)
    np.testing.assert_allclose(value.sum(), 0.0, atol=1e-14)
    np.testing.assert_allclose(jacobian.T @ jacobian, np.eye(4), **CLOSE)
    assert float(transform.log_abs_det_jacobian(start, value)) == 0.0


@pytest.mark.parametrize(
    ("build", "start"),
    [
        pytest.param(lambda: transforms.AffineTransform(2.0, -3.0), 0.7, id="affine"),
        pytest.param(lambda: transforms.PowerTransform(2.5), 0.7, id="power"),
        pytest.param(lambda: transforms.SigmoidTransform(), 0.7, id="sigmoid"),
        pytest.param(
            lambda: transforms.LowerCholeskyAffine(
                jnp.array([1.0, -1.0]), jnp.array([[2.0, 0.0], [0.5, 3.0]])
            ),
            [0.7, -1.1],
            id="cholesky-affine",
        ),
        pytest.param(
            lambda: transforms.PermuteTransform(jnp.array([2, 0, 1])),
            [0.7, -1.1, 0.4],
            id="permute",
        ),
        pytest.param(
            lambda: transforms.ComposeTransform(
                [transforms.AffineTransform(1.0, 2.0), transforms.ExpTransform()]
            ),
            0.7,
            id="compose",
        ),
        pytest.param(
            lambda: transforms.RecursiveLinearTransform(jnp.array([[0.5, 0.1], [-0.2, 0.8]])),
            [[0.7, -1.1], [0.4, 1.3], [-0.6, -0.2]],
            id="recursive-linear",
        ),
        pytest.param(
            lambda: transforms.DiscreteCosineTransform(), [0.7, -1.1, 0.4, 1.3], id="cosine"
        ),
    ],
)
def test_named_transform_inverts_and_knows_its_determinant(build: Build, start: Any) -> None:
    point = np.array(start)

    def everything(x: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        transform = build()
        value = transform(x)
        square = jax.jacfwd(transform)(x).reshape(point.size, point.size)
        stated = jnp.sum(transform.log_abs_det_jacobian(x, value))
        return transform.inv(value), jnp.linalg.slogdet(square)[1], stated

    back, automatic, stated = compiled(everything, point)
    np.testing.assert_allclose(back, point, **CLOSE)
    np.testing.assert_allclose(stated, automatic, **CLOSE)


@pytest.mark.parametrize(
    ("base", "transform", "reference"),
    [
        pytest.param(
            lambda: dist.Normal(0.5, 0.7),
            lambda: transforms.ExpTransform(),
            lambda: stats.lognorm(0.7, scale=np.exp(0.5)),
            id="log-normal",
        ),
        pytest.param(
            lambda: dist.Logistic(0.0, 1.0),
            lambda: transforms.SigmoidTransform(),
            lambda: stats.uniform(),
            id="logistic-to-uniform",
        ),
        pytest.param(
            lambda: dist.Exponential(1.0),
            lambda: transforms.PowerTransform(1.0 / 2.2),
            lambda: stats.weibull_min(2.2),
            id="exponential-to-weibull",
        ),
    ],
)
def test_transformed_density_is_the_known_one(
    base: Build, transform: Build, reference: Build
) -> None:
    points = reference().ppf(np.array([0.01, 0.3, 0.5, 0.9, 0.999]))
    density = log_prob(lambda: dist.TransformedDistribution(base(), transform()), points)
    np.testing.assert_allclose(density, reference().logpdf(points), **CLOSE)


def test_pullback_of_a_uniform_simplex_integrates_to_one() -> None:
    """The density that a sampler sees over R for a flat Dirichlet of two is logistic."""
    points = np.linspace(-6.0, 6.0, 7)

    def pulled_back(point: jax.Array) -> jax.Array:
        transform = biject_to(constraints.simplex)
        value = transform(point)
        flat = dist.Dirichlet(jnp.ones(2)).log_prob(value)
        return flat + transform.log_abs_det_jacobian(point, value)

    density = compiled(pulled_back, points[:, None])
    np.testing.assert_allclose(density, stats.logistic.logpdf(points), **CLOSE)
