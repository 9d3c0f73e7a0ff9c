"""Quadrature rules: exact for polynomials, and of their order where that can be measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special

from tests.roster.support import quadrature
from tests.roster.support.quadrature import Rule, integrate
from tests.roster.support.trends import TrendUndecided, assert_decreases, assert_order

EPSILON = float(np.finfo(np.float64).eps)
ROUNDING = 1e-13  # a few hundred epsilons: nodes from an eigenproblem of up to 20 rows, then a sum


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def monomial_integral(degree: int) -> float:
    """Integral of x**degree over [-1, 1]."""
    return 0.0 if degree % 2 else 2.0 / (degree + 1)


def apply(rule: Rule, degree: int) -> float:
    nodes, weights = np.asarray(rule[0]), np.asarray(rule[1])
    return float(np.sum(weights * nodes**degree))


@pytest.mark.parametrize("count", [1, 2, 5, 20])
def test_gauss_legendre_matches_scipy(count: int) -> None:
    nodes, weights = quadrature.gauss_legendre(count)
    expected_nodes, expected_weights = special.roots_legendre(count)
    np.testing.assert_allclose(nodes, expected_nodes, atol=ROUNDING)
    np.testing.assert_allclose(weights, expected_weights, atol=ROUNDING)


@pytest.mark.parametrize("count", [1, 2, 5, 9])
def test_gauss_hermite_matches_scipy(count: int) -> None:
    nodes, weights = quadrature.gauss_hermite(count)
    expected_nodes, expected_weights = special.roots_hermitenorm(count)
    np.testing.assert_allclose(nodes, expected_nodes, atol=ROUNDING * 10)
    np.testing.assert_allclose(weights, expected_weights / math.sqrt(2 * math.pi), atol=ROUNDING)


RULES: dict[str, tuple[Callable[[], Rule], int]] = {
    "gauss-legendre-5": (lambda: quadrature.gauss_legendre(5), 9),
    "gauss-legendre-9": (lambda: quadrature.gauss_legendre(9), 17),
    "clenshaw-curtis-6": (lambda: quadrature.clenshaw_curtis(6), 5),
    "clenshaw-curtis-9": (lambda: quadrature.clenshaw_curtis(9), 9),
    "trapezoid-4": (lambda: quadrature.trapezoid(4), 1),
    "simpson-4": (lambda: quadrature.simpson(4), 3),
}


@pytest.mark.parametrize("name", RULES)
def test_a_rule_is_exact_up_to_its_degree(name: str) -> None:
    rule, degree = RULES[name][0](), RULES[name][1]
    for power in range(degree + 1):
        assert apply(rule, power) == pytest.approx(monomial_integral(power), abs=ROUNDING)


@pytest.mark.parametrize("name", RULES)
def test_a_rule_is_not_exact_beyond_its_degree(name: str) -> None:
    """The next even power is missed by far more than rounding."""
    rule, degree = RULES[name][0](), RULES[name][1]
    even = degree + 1 + (degree + 1) % 2
    assert abs(apply(rule, even) - monomial_integral(even)) > 1e-6


@pytest.mark.parametrize("name", RULES)
def test_weights_are_positive_and_sum_to_the_length(name: str) -> None:
    _, weights = RULES[name][0]()
    assert bool((weights > 0.0).all())
    assert float(weights.sum()) == pytest.approx(2.0, abs=ROUNDING)


@pytest.mark.parametrize("order", [0, 1, 2, 3, 4, 8])
def test_gauss_hermite_gives_the_moments_of_a_normal_variable(order: int) -> None:
    expected = 0.0 if order % 2 else float(special.factorial2(order - 1)) if order else 1.0
    value = apply(quadrature.gauss_hermite(5), order)
    assert value == pytest.approx(expected, abs=ROUNDING * 1000, rel=ROUNDING * 10)


COMPOSITE: dict[str, tuple[Callable[[int], Rule], float]] = {
    "trapezoid": (quadrature.trapezoid, 2.0),
    "simpson": (quadrature.simpson, 4.0),
}


def exponential_errors(rule: Callable[[int], Rule], counts: list[int]) -> list[float]:
    truth = math.e - 1.0
    return [abs(float(integrate(jnp.exp, rule(n), 0.0, 1.0)) - truth) for n in counts]


@pytest.mark.parametrize("name", COMPOSITE)
def test_composite_rules_converge_with_their_order_above_the_floor(name: str) -> None:
    """Sums of at most 65 terms below 3: rounding stays under 100 epsilons."""
    rule, order = COMPOSITE[name]
    counts = [4, 8, 16, 32, 64]
    assert_order(
        exponential_errors(rule, counts),
        [1.0 / n for n in counts],
        order=order,
        tolerance=0.05,
        floor=100 * EPSILON,
        what=f"{name} on exp",
    )


def test_an_order_below_the_floor_is_not_claimed() -> None:
    """Simpson's error on exp with 4096 intervals is 2e-17: nothing but rounding is left."""
    counts = [4096, 8192]
    errors = exponential_errors(quadrature.simpson, counts)
    with pytest.raises(TrendUndecided):
        assert_order(
            errors,
            [1.0 / n for n in counts],
            order=4.0,
            tolerance=0.05,
            floor=100 * EPSILON,
            what="Simpson far below rounding",
        )


def test_gauss_legendre_converges_geometrically_on_runges_function() -> None:
    """The poles of 1 / (1 + 4 x^2) at i/2 make each two nodes gain a factor of 6.9."""
    counts = (2, 4, 8, 12)
    errors = [
        abs(float(integrate(runge, quadrature.gauss_legendre(n))) - math.atan(2.0)) for n in counts
    ]
    steps = assert_decreases(errors, floor=100 * EPSILON, what="more Gauss nodes", by=4.0)
    assert steps == len(counts) - 1


def runge(x: jax.Array) -> jax.Array:
    return 1.0 / (1.0 + 4.0 * x * x)


def test_tanh_sinh_integrates_an_end_point_singularity() -> None:
    """The integral of (1 - x)^(-1/4) is 2^(3/4) * 4/3; the last node lies 1e-13 from the end."""
    value = integrate(lambda x: (1.0 - x) ** -0.25, quadrature.tanh_sinh(40, reach=2.9))
    # What lies beyond the last node is (1e-12)^(3/4) = 1e-9; nodes near 1 round by eps / 1e-13.
    assert float(value) == pytest.approx(2.0**0.75 * 4.0 / 3.0, abs=1e-7)


@pytest.mark.parametrize("scale", [0.3, 1.0, 2.0])
def test_the_derivative_of_an_integral_is_the_integral_of_the_derivative(scale: float) -> None:
    """d/ds of the integral of exp(s x) over [-1, 1], which is 2 sinh(s) / s."""
    rule = quadrature.gauss_legendre(12)
    slope = jax.jit(jax.grad(lambda s: jnp.sum(rule[1] * jnp.exp(s * rule[0]))))(scale)
    expected = 2.0 * (math.cosh(scale) / scale - math.sinh(scale) / scale**2)
    assert float(slope) == pytest.approx(expected, abs=ROUNDING)


def test_the_derivative_in_a_limit_is_the_integrand_there() -> None:
    rule = quadrature.gauss_legendre(12)
    slopes = jax.grad(lambda a, b: integrate(jnp.cos, rule, a, b), argnums=(0, 1))(0.2, 1.1)
    assert float(slopes[0]) == pytest.approx(-math.cos(0.2), abs=ROUNDING)
    assert float(slopes[1]) == pytest.approx(math.cos(1.1), abs=ROUNDING)


def test_a_product_rule_integrates_over_a_square() -> None:
    """x^4 y^2 over the square: 2/5 * 2/3."""
    nodes, weights = quadrature.gauss_legendre(4)
    values = jax.vmap(lambda x: jax.vmap(lambda y: x**4 * y**2)(nodes))(nodes)
    assert float(weights @ values @ weights) == pytest.approx(4.0 / 15.0, abs=ROUNDING)
