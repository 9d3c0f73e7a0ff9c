"""Interpolation: jnp.interp, grids and cubic splines against NumPy and SciPy, and their orders."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import interpolate, ndimage

from tests.roster.support import finite_differences, splines
from tests.roster.support.trends import assert_order

EPSILON = float(np.finfo(np.float64).eps)
ROUNDING = 1e-12  # a well-conditioned tridiagonal solve and a cubic, on numbers of order one

Array = NDArray[np.float64]


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def knots(count: int = 9) -> Array:
    return np.cumsum(np.random.default_rng(0).uniform(0.3, 1.0, size=count))


def ordinates(count: int = 9) -> Array:
    return np.random.default_rng(1).normal(size=count)


def inside(count: int = 50) -> Array:
    x = knots()
    return np.random.default_rng(2).uniform(x[0], x[-1], size=count)


def test_interp_matches_numpy_within_and_beyond_the_knots() -> None:
    points = np.concatenate([inside(), knots(), [-3.0, 30.0]])
    values = jnp.interp(points, knots(), ordinates())
    np.testing.assert_allclose(values, np.interp(points, knots(), ordinates()), atol=ROUNDING)


def test_interp_takes_the_values_asked_for_outside() -> None:
    values = jnp.interp(np.array([-3.0, 30.0]), knots(), ordinates(), left=-7.0, right=9.0)
    assert values.tolist() == [-7.0, 9.0]


@pytest.mark.parametrize("period", [6.0, 10.0])
def test_interp_on_a_period_matches_numpy(period: float) -> None:
    points = np.linspace(-12.0, 20.0, 41)
    values = jax.jit(lambda p: jnp.interp(p, knots(), ordinates(), period=period))(points)
    expected = np.interp(points, knots(), ordinates(), period=period)
    np.testing.assert_allclose(values, expected, atol=ROUNDING)


def test_interp_reproduces_a_straight_line() -> None:
    values = jnp.interp(inside(), knots(), 3.0 - 2.0 * knots())
    np.testing.assert_allclose(values, 3.0 - 2.0 * inside(), atol=ROUNDING)


def test_the_slope_of_interp_is_that_of_its_piece() -> None:
    x, y = knots(), ordinates()
    points = 0.5 * (x[1:] + x[:-1])
    slopes = jax.jit(jax.vmap(jax.grad(lambda p: jnp.interp(p, x, y))))(points)
    np.testing.assert_allclose(slopes, np.diff(y) / np.diff(x), atol=ROUNDING)


def test_the_gradient_of_interp_in_the_ordinates_is_the_hat_functions() -> None:
    x, point = knots(), float(knots()[3] + 0.1)
    gradient = jax.jit(jax.grad(lambda y: jnp.interp(point, x, y)))(ordinates())
    hats = [np.interp(point, x, unit) for unit in np.eye(x.size)]
    np.testing.assert_allclose(gradient, hats, atol=ROUNDING)


@pytest.mark.parametrize("method", ["linear", "nearest"])
def test_a_regular_grid_matches_scipy(method: str) -> None:
    axes = (np.array([0.0, 1.0, 2.5]), np.linspace(-1.0, 1.0, 5))
    table = np.random.default_rng(3).normal(size=(3, 5))
    points = np.random.default_rng(4).uniform([0.0, -1.0], [2.5, 1.0], size=(30, 2))
    ours = jax.scipy.interpolate.RegularGridInterpolator(axes, table, method=method)(points)
    theirs = interpolate.RegularGridInterpolator(axes, table, method=method)(points)
    np.testing.assert_allclose(ours, theirs, atol=ROUNDING)


@pytest.mark.parametrize("order", [0, 1])
def test_map_coordinates_matches_scipy(order: int) -> None:
    table = np.random.default_rng(5).normal(size=(6, 7))
    where = np.random.default_rng(6).uniform(0.0, 5.0, size=(2, 40))
    ours = jax.scipy.ndimage.map_coordinates(table, list(where), order=order)
    theirs = ndimage.map_coordinates(table, where, order=order)
    np.testing.assert_allclose(ours, theirs, atol=ROUNDING)


def test_a_natural_spline_matches_scipy() -> None:
    spline = splines.natural_spline(jnp.asarray(knots()), jnp.asarray(ordinates()))
    expected = interpolate.CubicSpline(knots(), ordinates(), bc_type="natural")
    np.testing.assert_allclose(spline.curvatures, expected(knots(), 2), atol=10 * ROUNDING)
    np.testing.assert_allclose(
        splines.evaluate(spline, inside()), expected(inside()), atol=ROUNDING
    )


@pytest.mark.parametrize("slopes", [(0.0, 0.0), (1.5, -2.0)], ids=["flat", "steep"])
def test_a_clamped_spline_matches_scipy(slopes: tuple[float, float]) -> None:
    spline = splines.clamped_spline(jnp.asarray(knots()), jnp.asarray(ordinates()), *slopes)
    ends = ((1, slopes[0]), (1, slopes[1]))
    expected = interpolate.CubicSpline(knots(), ordinates(), bc_type=ends)
    values = splines.evaluate(spline, inside())
    np.testing.assert_allclose(values, expected(inside()), atol=ROUNDING)


@pytest.mark.parametrize("degree", [0, 1, 2, 3])
def test_a_clamped_spline_reproduces_cubics(degree: int) -> None:
    x = knots() / 4.0
    polynomial = np.polynomial.Polynomial(np.arange(1.0, degree + 2.0))
    slopes = polynomial.deriv()(x[[0, -1]])
    spline = splines.clamped_spline(jnp.asarray(x), jnp.asarray(polynomial(x)), *slopes)
    points = inside() / 4.0
    # The cubic reaches 30 on this interval.
    np.testing.assert_allclose(
        splines.evaluate(spline, points), polynomial(points), atol=30 * ROUNDING
    )


def test_the_slope_of_a_spline_matches_scipy_and_finite_differences() -> None:
    spline = splines.natural_spline(jnp.asarray(knots()), jnp.asarray(ordinates()))
    expected = interpolate.CubicSpline(knots(), ordinates(), bc_type="natural")
    middles = 0.5 * (knots()[1:] + knots()[:-1])
    slopes = jax.jit(jax.vmap(jax.grad(lambda p: splines.evaluate(spline, p))))(middles)
    np.testing.assert_allclose(slopes, expected(middles, 1), atol=10 * ROUNDING)
    # The stencil is exact for cubics and stays within one piece: only rounding is left.
    stencil = finite_differences.directional(
        lambda p: splines.evaluate(spline, p), middles, np.ones(middles.size)
    )
    np.testing.assert_allclose(slopes, stencil, atol=finite_differences.TOLERANCE)


def test_the_gradient_of_a_spline_in_the_ordinates_is_the_cardinal_splines() -> None:
    x, point = jnp.asarray(knots()), float(inside()[0])
    gradient = jax.jit(jax.grad(lambda y: splines.evaluate(splines.natural_spline(x, y), point)))
    cardinal = [
        float(interpolate.CubicSpline(knots(), unit, bc_type="natural")(point))
        for unit in np.eye(knots().size)
    ]
    np.testing.assert_allclose(gradient(jnp.asarray(ordinates())), cardinal, atol=ROUNDING)


@jax.jit
def linear_error(x: jax.Array, points: jax.Array) -> jax.Array:
    return jnp.max(jnp.abs(jnp.interp(points, x, jnp.sin(x)) - jnp.sin(points)))


@jax.jit
def spline_error(x: jax.Array, points: jax.Array) -> jax.Array:
    spline = splines.clamped_spline(x, jnp.sin(x), jnp.cos(x[0]), jnp.cos(x[-1]))
    return jnp.max(jnp.abs(splines.evaluate(spline, points) - jnp.sin(points)))


@pytest.mark.parametrize(
    ("measure", "order"), [(linear_error, 2.0), (spline_error, 4.0)], ids=["linear", "cubic"]
)
def test_errors_fall_with_the_order_above_the_floor(
    measure: Callable[..., jax.Array], order: float
) -> None:
    """Values of order one: rounding in an interpolated value stays below 100 epsilons."""
    counts = [8, 16, 32]
    points = np.linspace(0.0, 3.0, 961)
    errors = [float(measure(np.linspace(0.0, 3.0, n + 1), points)) for n in counts]
    assert_order(
        errors,
        [3.0 / n for n in counts],
        order=order,
        tolerance=0.15,
        floor=100 * EPSILON,
        what="interpolation of the sine",
    )


def test_the_error_of_linear_interpolation_keeps_its_bound() -> None:
    """At most h^2 / 8 times the largest second derivative, and nearly that for a parabola."""
    x = np.linspace(-1.0, 1.0, 9)
    points = np.linspace(-1.0, 1.0, 401)
    error = np.abs(np.asarray(jnp.interp(points, x, x**2)) - points**2).max()
    assert error == pytest.approx(0.25**2 / 8.0 * 2.0, rel=1e-6)


@pytest.mark.parametrize("count", [6, 12])
def test_a_polynomial_through_chebyshev_nodes_keeps_its_bound(count: int) -> None:
    """For exp on [-1, 1]: at most e / (2^(n-1) n!)."""
    nodes = np.cos(np.pi * (np.arange(count) + 0.5) / count)
    points = np.linspace(-0.999, 0.9995, 77)
    values = splines.barycentric(jnp.asarray(nodes), jnp.exp(nodes), points)
    bound = math.e / (2.0 ** (count - 1) * math.factorial(count))
    assert float(jnp.max(jnp.abs(values - np.exp(points)))) < bound + ROUNDING
