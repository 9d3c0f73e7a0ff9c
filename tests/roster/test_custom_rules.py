"""Derivative rules given by hand, and checkpointing, which must not change a derivative."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special

from tests.roster.support import finite_differences
from tests.roster.support.jaxprs import count_primitive, trace

ROUNDING = 1e-12  # a few dozen operations on numbers of order one, in double precision


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


@jax.custom_jvp
def softplus(x: jax.Array) -> jax.Array:
    return jnp.where(x > 30.0, x, jnp.log1p(jnp.exp(jnp.minimum(x, 30.0))))


@softplus.defjvp
def softplus_jvp(
    primals: tuple[jax.Array], tangents: tuple[jax.Array]
) -> tuple[jax.Array, jax.Array]:
    (x,), (tangent,) = primals, tangents
    return softplus(x), tangent * jax.nn.sigmoid(x)


@jax.custom_vjp
def newton_root(a: jax.Array) -> jax.Array:
    """Square root by a loop whose length depends on the values: no reverse rule of its own."""

    def unfinished(x: jax.Array) -> jax.Array:
        return jnp.abs(x * x - a) > 1e-13 * a

    return jax.lax.while_loop(unfinished, lambda x: 0.5 * (x + a / x), 1.0 + a)


def newton_root_forward(a: jax.Array) -> tuple[jax.Array, jax.Array]:
    root = newton_root(a)
    return root, root


def newton_root_backward(root: jax.Array, cotangent: jax.Array) -> tuple[jax.Array]:
    return (cotangent / (2.0 * root),)


newton_root.defvjp(newton_root_forward, newton_root_backward)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def clip_gradient(bound: float, x: jax.Array) -> jax.Array:
    return x


clip_gradient.defvjp(
    lambda bound, x: (x, None),
    lambda bound, _, cotangent: (jnp.clip(cotangent, -bound, bound),),
)


@pytest.mark.parametrize("x", [-800.0, -3.0, 0.0, 5.0, 40.0, 800.0])
def test_softplus_slope_is_the_logistic_function_everywhere(x: float) -> None:
    assert float(jax.grad(softplus)(x)) == pytest.approx(special.expit(x), rel=ROUNDING)


def test_the_rule_survives_jit_and_vmap() -> None:
    x = np.linspace(-5.0, 50.0, 23)
    slopes = jax.jit(jax.vmap(jax.grad(softplus)))(x)
    np.testing.assert_allclose(slopes, special.expit(x), rtol=ROUNDING)


@pytest.mark.parametrize("x", [-2.0, 0.3, 4.0])
def test_the_rule_is_differentiated_in_turn(x: float) -> None:
    logistic = special.expit(x)
    second = jax.grad(jax.grad(softplus))(x)
    assert float(second) == pytest.approx(logistic * (1.0 - logistic), rel=ROUNDING)


@pytest.mark.parametrize("x", [-2.0, 0.3, 4.0])
def test_the_rule_matches_finite_differences(x: float) -> None:
    slope = finite_differences.directional(softplus, x, 1.0)
    assert float(jax.grad(softplus)(x)) == pytest.approx(slope, abs=finite_differences.TOLERANCE)


def test_a_wrong_rule_is_told_apart_by_finite_differences() -> None:
    @jax.custom_jvp
    def cube(x: jax.Array) -> jax.Array:
        return x**3

    cube.defjvps(lambda tangent, _, x: 2.0 * x**2 * tangent)
    slope = float(finite_differences.directional(cube, 1.5, 1.0))
    assert slope == pytest.approx(6.75, abs=finite_differences.TOLERANCE)
    assert float(jax.grad(cube)(1.5)) == 4.5


def test_partial_rules_add_up_over_the_arguments() -> None:
    @jax.custom_jvp
    def product(x: jax.Array, y: jax.Array) -> jax.Array:
        return x * y

    product.defjvps(lambda tangent, _, x, y: tangent * y, None)
    _, tangent = jax.jvp(product, (3.0, 5.0), (1.0, 100.0))
    assert float(tangent) == 5.0


@pytest.mark.parametrize("a", [1e-3, 0.5, 2.0, 1e4])
def test_the_implicit_rule_of_an_iterated_root_is_exact(a: float) -> None:
    value, slope = jax.value_and_grad(newton_root)(a)
    assert float(value) == pytest.approx(math.sqrt(a), rel=ROUNDING)
    assert float(slope) == pytest.approx(0.5 / math.sqrt(a), rel=ROUNDING)


def test_the_implicit_rule_matches_finite_differences() -> None:
    slope = finite_differences.directional(newton_root, 2.0, 1.0)
    gradient = jax.grad(newton_root)(2.0)
    assert float(gradient) == pytest.approx(slope, abs=finite_differences.TOLERANCE)


def test_without_its_rule_the_loop_has_no_reverse_derivative() -> None:
    with pytest.raises(ValueError, match="Reverse-mode differentiation"):
        jax.grad(newton_root.fun)(2.0)


def test_a_reverse_rule_cannot_serve_forward_mode() -> None:
    with pytest.raises(TypeError, match="forward-mode"):
        jax.jvp(newton_root, (2.0,), (1.0,))


@pytest.mark.parametrize(("slope", "expected"), [(0.2, 0.2), (7.0, 0.5), (-7.0, -0.5)])
def test_a_clipped_cotangent_leaves_the_value_alone(slope: float, expected: float) -> None:
    value, gradient = jax.value_and_grad(lambda x: slope * clip_gradient(0.5, x))(2.0)
    assert float(value) == 2.0 * slope
    assert float(gradient) == expected


def test_custom_root_differentiates_through_the_equation() -> None:
    """For x exp(x) = a, Lambert's W: W' = W / (a (1 + W)) (DLMF 4.13.4)."""

    def lambert(a: jax.Array) -> jax.Array:
        def equation(x: jax.Array) -> jax.Array:
            return x * jnp.exp(x) - a

        def newton(f: Callable[[jax.Array], jax.Array], start: jax.Array) -> jax.Array:
            return jax.lax.fori_loop(0, 12, lambda _, x: x - f(x) / jax.grad(f)(x), start)

        def linear(g: Callable[[jax.Array], jax.Array], y: jax.Array) -> jax.Array:
            return y / g(1.0)

        return jax.lax.custom_root(equation, jnp.log1p(a), newton, linear)

    w = special.lambertw(2.0).real
    value, slope = jax.value_and_grad(lambert)(2.0)
    assert float(value) == pytest.approx(w, rel=ROUNDING)
    assert float(slope) == pytest.approx(w / (2.0 * (1.0 + w)), rel=ROUNDING)


def chain(x: jax.Array, *, wrap: Callable[..., Callable[..., jax.Array]]) -> jax.Array:
    """Ten layers of sin(matrix @ x), each passed through `wrap`."""
    matrix = np.random.default_rng(0).normal(size=(20, 20)) / 4.0

    def layer(y: jax.Array) -> jax.Array:
        return jnp.sin(matrix @ y)

    for _ in range(10):
        x = wrap(layer)(x)
    return jnp.sum(x**2)


POLICIES = [
    "plain",
    "nothing_saveable",
    "everything_saveable",
    "dots_saveable",
    "dots_with_no_batch_dims_saveable",
]


def wrapper(policy: str) -> Callable[..., Callable[..., jax.Array]]:
    if policy == "plain":
        return jax.checkpoint
    return partial(jax.checkpoint, policy=getattr(jax.checkpoint_policies, policy))


@pytest.mark.parametrize("policy", POLICIES)
def test_checkpointing_leaves_the_gradient_alone(policy: str) -> None:
    x = np.linspace(-1.0, 1.0, 20)
    expected = jax.grad(partial(chain, wrap=lambda layer: layer))(x)
    gradient = jax.grad(partial(chain, wrap=wrapper(policy)))(x)
    np.testing.assert_allclose(gradient, expected, rtol=0, atol=ROUNDING)


def test_the_checkpointed_gradient_matches_finite_differences() -> None:
    x, direction = np.linspace(-1.0, 1.0, 20), np.cos(np.arange(20.0))
    function = jax.jit(partial(chain, wrap=jax.checkpoint))
    expected = finite_differences.directional(function, x, direction)
    slope = float(jax.grad(function)(x) @ direction)
    assert slope == pytest.approx(expected, abs=10 * finite_differences.TOLERANCE)


def test_a_checkpointed_layer_is_computed_twice() -> None:
    """Ten products forward and ten back; with checkpoints the forward ones once more."""
    x = np.ones(20)
    plain = trace(jax.grad(partial(chain, wrap=lambda layer: layer)), x)
    saved = trace(jax.grad(partial(chain, wrap=jax.checkpoint)), x)
    assert count_primitive(plain, "dot_general") == 20
    assert count_primitive(saved, "dot_general") == 30


def test_a_checkpointed_layer_keeps_only_its_input() -> None:
    def stored(wrap: Callable[..., Callable[..., jax.Array]]) -> int:
        def steps(x: jax.Array) -> jax.Array:
            return jnp.sin(jnp.sin(jnp.sin(jnp.sin(x))))

        _, pull = jax.vjp(wrap(steps), jnp.ones(1000))
        return sum(leaf.size for leaf in jax.tree.leaves(pull) if hasattr(leaf, "size"))

    assert stored(lambda layer: layer) >= 4000
    assert stored(jax.checkpoint) <= 1010
