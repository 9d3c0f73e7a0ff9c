"""Derivatives through loops and branches: closed forms, finite differences, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.roster.support import finite_differences

ROUNDING = 1e-11  # a few dozen chained steps, with derivatives of order one to a hundred


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def power_by_scan(a: jax.Array, *, count: int, wrap: Callable = lambda step: step) -> jax.Array:
    """a ** count, one factor a step."""
    step = wrap(lambda product, _: (product * a, None))
    return jax.lax.scan(step, 1.0, None, length=count)[0]


def power_by_fori(a: jax.Array, *, count: int) -> jax.Array:
    return jax.lax.fori_loop(0, count, lambda _, product: product * a, 1.0)


def power_by_while(a: jax.Array, *, count: int) -> jax.Array:
    def step(state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        return state[0] + 1, state[1] * a

    return jax.lax.while_loop(lambda state: state[0] < count, step, (0, 1.0))[1]


def power_by_associative_scan(a: jax.Array, *, count: int) -> jax.Array:
    return jax.lax.associative_scan(jnp.multiply, jnp.full(count, a))[-1]


POWERS: dict[str, Callable[..., jax.Array]] = {
    "scan": power_by_scan,
    "checkpointed-scan": partial(power_by_scan, wrap=jax.checkpoint),
    "fori": power_by_fori,
    "associative-scan": power_by_associative_scan,
}


@pytest.mark.parametrize("count", [1, 9])
@pytest.mark.parametrize("name", sorted(POWERS))
def test_the_slope_of_a_looped_power_is_its_closed_form(name: str, count: int) -> None:
    slope = jax.jit(jax.grad(partial(POWERS[name], count=count)))(1.1)
    assert float(slope) == pytest.approx(count * 1.1 ** (count - 1), rel=ROUNDING)


@pytest.mark.parametrize("name", ["scan", "fori"])
def test_the_curvature_of_a_looped_power_is_its_closed_form(name: str) -> None:
    curvature = jax.hessian(partial(POWERS[name], count=9))(1.1)
    assert float(curvature) == pytest.approx(72 * 1.1**7, rel=ROUNDING)


def test_a_while_loop_is_differentiated_forwards() -> None:
    _, slope = jax.jvp(partial(power_by_while, count=9), (1.1,), (1.0,))
    assert float(slope) == pytest.approx(9 * 1.1**8, rel=ROUNDING)


def test_a_while_loop_refuses_reverse_mode() -> None:
    with pytest.raises(ValueError, match="Reverse-mode differentiation"):
        jax.grad(partial(power_by_while, count=9))(1.1)


def test_a_fori_loop_with_traced_bounds_refuses_reverse_mode() -> None:
    with pytest.raises(ValueError, match="Reverse-mode differentiation"):
        jax.jit(lambda a, n: jax.grad(lambda b: power_by_fori(b, count=n))(a))(1.1, 9)


def recurrent(parameters: jax.Array, inputs: jax.Array) -> jax.Array:
    """A small recurrent network, with outputs at each step and a final state."""
    matrix = parameters[:9].reshape(3, 3)
    bias = parameters[9:]

    def step(state: jax.Array, value: jax.Array) -> tuple[jax.Array, jax.Array]:
        state = jnp.tanh(matrix @ state + bias + value)
        return state, jnp.sum(state**2)

    last, outputs = jax.lax.scan(step, jnp.zeros(3), inputs)
    return jnp.sum(last) + jnp.sum(jnp.sin(outputs))


def recurrent_problem() -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(3)
    return 0.4 * generator.normal(size=12), generator.normal(size=15)


def test_the_gradient_of_a_recurrent_network_matches_finite_differences() -> None:
    parameters, inputs = recurrent_problem()
    function = jax.jit(partial(recurrent, inputs=inputs))
    expected = finite_differences.jacobian(function, parameters)
    tolerance = 100 * finite_differences.TOLERANCE  # fifth derivatives grow with the chain
    np.testing.assert_allclose(jax.grad(function)(parameters), expected, atol=tolerance)


def test_forward_and_reverse_mode_agree_through_a_scan() -> None:
    parameters, inputs = recurrent_problem()
    function = partial(recurrent, inputs=inputs)
    forward, reverse = (jax.jit(mode(function))(parameters) for mode in (jax.jacfwd, jax.jacrev))
    np.testing.assert_allclose(forward, reverse, atol=ROUNDING)


def test_the_gradient_of_a_reverse_scan_discounts_from_the_end() -> None:
    """The return sum_t d^t x_t has gradient d^t."""

    def discounted(x: jax.Array) -> jax.Array:
        return jax.lax.scan(lambda c, v: (0.9 * c + v, None), 0.0, x, reverse=True)[0]

    gradient = jax.grad(discounted)(np.ones(12))
    np.testing.assert_allclose(gradient, 0.9 ** np.arange(12), rtol=ROUNDING)


def test_the_sensitivity_of_an_integrated_equation_is_its_closed_form() -> None:
    """y' = -k y by fourth-order Runge-Kutta: y(1) = p(-k h)^n with p the Taylor polynomial."""
    steps = 20
    h = 1.0 / steps

    def solve(rate: jax.Array) -> jax.Array:
        def step(y: jax.Array, _: None) -> tuple[jax.Array, None]:
            k1 = -rate * y
            k2 = -rate * (y + 0.5 * h * k1)
            k3 = -rate * (y + 0.5 * h * k2)
            k4 = -rate * (y + h * k3)
            return y + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4), None

        return jax.lax.scan(step, 1.0, None, length=steps)[0]

    z = -1.5 * h
    growth = sum(z**n / math.factorial(n) for n in range(5))
    slope = -h * sum(z**n / math.factorial(n) for n in range(4))
    expected = steps * growth ** (steps - 1) * slope
    assert float(jax.grad(solve)(1.5)) == pytest.approx(expected, rel=ROUNDING)


@pytest.mark.parametrize(("x", "expected"), [(2.0, 12.0), (-2.0, -1.0), (0.0, -1.0)])
def test_cond_has_the_slope_of_the_branch_taken(x: float, expected: float) -> None:
    def piecewise(v: jax.Array) -> jax.Array:
        return jax.lax.cond(v > 0, lambda u: u**3, lambda u: -u, v)

    assert float(jax.grad(piecewise)(x)) == expected
    assert float(jax.vmap(jax.grad(piecewise))(np.array([x]))[0]) == expected


@pytest.mark.parametrize("index", [0, 1, 2])
def test_switch_has_the_slope_of_the_branch_taken(index: int) -> None:
    branches = [jnp.sin, jnp.exp, jnp.square]
    slopes = [math.cos(0.4), math.exp(0.4), 0.8]
    slope = jax.grad(lambda x: jax.lax.switch(index, branches, x))(0.4)
    assert float(slope) == pytest.approx(slopes[index], rel=ROUNDING)


def test_an_unsafe_branch_poisons_where_but_not_cond() -> None:
    """The slope of sqrt at zero is infinite, and zero times infinity is not a number."""
    with_where = jax.grad(lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0))(0.0)
    with_cond = jax.grad(lambda x: jax.lax.cond(x > 0, jnp.sqrt, jnp.zeros_like, x))(0.0)
    guarded = jax.grad(lambda x: jnp.where(x > 0, jnp.sqrt(jnp.where(x > 0, x, 1.0)), 0.0))(0.0)
    assert math.isnan(float(with_where))
    assert float(with_cond) == 0.0
    assert float(guarded) == 0.0


@pytest.mark.parametrize("batch_size", [None, 3])
def test_map_has_a_diagonal_jacobian(batch_size: int | None) -> None:
    x = np.linspace(0.1, 1.0, 7)
    jacobian = jax.jacrev(lambda v: jax.lax.map(jnp.sin, v, batch_size=batch_size))(x)
    np.testing.assert_allclose(jacobian, np.diag(np.cos(x)), atol=ROUNDING)


def test_integers_carried_along_do_not_hinder_a_gradient() -> None:
    def weighted(x: jax.Array) -> jax.Array:
        def step(carry: tuple[jax.Array, jax.Array], v: jax.Array) -> tuple[tuple, None]:
            index, total = carry
            return (index + 1, total + index * v), None

        return jax.lax.scan(step, (0, 0.0), x)[0][1]

    np.testing.assert_array_equal(jax.grad(weighted)(np.ones(6)), np.arange(6.0))
