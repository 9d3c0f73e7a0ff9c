"""jit, grad, vmap, jvp and vjp: what each one computes, and that they agree with one another."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize, special

from tests.roster.support import finite_differences
from tests.roster.support.jaxprs import trace

# A few dozen operations on numbers of order 1 to 1000, in double precision.
ROUNDING = 1e-12

Array = NDArray[np.float64]


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def rosenbrock(x: jax.Array) -> jax.Array:
    return jnp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


POINT = np.array([-1.2, 1.0, 0.7, 1.3])
DIRECTION = np.array([0.3, -0.5, 1.1, 0.2])

# Functions from R^6 to R^n that are smooth near the points used: linear and not, with index
# shuffles, reductions and complex intermediates.
MATRIX = np.random.default_rng(3).normal(size=(4, 6))
FUNCTIONS: dict[str, Callable[[jax.Array], jax.Array]] = {
    "matmul": lambda x: MATRIX @ x,
    "cumulative-sum": lambda x: jnp.cumsum(jnp.sin(x)),
    "sort": lambda x: jnp.sort(x) ** 2,
    "gather": lambda x: x[jnp.array([5, 0, 0, 2])] * x[:4],
    "logsumexp": lambda x: jax.nn.logsumexp(x.reshape(2, 3), axis=1),
    "spectrum": lambda x: jnp.abs(jnp.fft.rfft(x)) ** 2,
    "outer": lambda x: jnp.outer(jnp.tanh(x), jnp.exp(x)).ravel(),
    "convolve": lambda x: jnp.convolve(x, x, mode="same"),
}
NAMES = sorted(FUNCTIONS)


def sample(seed: int) -> Array:
    return np.random.default_rng(seed).normal(size=6)


@pytest.mark.parametrize("name", NAMES)
def test_jit_changes_nothing_but_rounding(name: str) -> None:
    function, x = FUNCTIONS[name], jnp.asarray(sample(1))
    np.testing.assert_allclose(jax.jit(function)(x), function(x), rtol=ROUNDING, atol=ROUNDING)


@pytest.mark.parametrize("name", NAMES)
def test_jvp_matches_finite_differences(name: str) -> None:
    function, x, v = jax.jit(FUNCTIONS[name]), sample(1), sample(2)
    _, tangent = jax.jvp(function, (x,), (v,))
    expected = finite_differences.directional(function, x, v)
    scale = np.abs(expected).max() + 1.0
    np.testing.assert_allclose(tangent, expected, atol=finite_differences.TOLERANCE * scale)


@pytest.mark.parametrize("name", NAMES)
def test_vjp_is_the_adjoint_of_jvp(name: str) -> None:
    function, x, v = FUNCTIONS[name], sample(1), sample(2)
    value, tangent = jax.jvp(function, (x,), (v,))
    u = np.random.default_rng(4).normal(size=value.shape)
    (cotangent,) = jax.vjp(function, jnp.asarray(x))[1](u)
    scale = np.abs(u) @ np.abs(np.asarray(tangent)) + 1.0
    assert abs(float(u @ tangent - cotangent @ v)) < ROUNDING * scale


def test_gradient_of_rosenbrock_matches_its_closed_form() -> None:
    expected = optimize.rosen_der(POINT)
    np.testing.assert_allclose(jax.grad(rosenbrock)(POINT), expected, rtol=ROUNDING)


COMPOSITIONS: dict[str, Callable[..., Callable[[Array], jax.Array]]] = {
    "hessian": jax.hessian,
    "forward-over-reverse": lambda f: jax.jacfwd(jax.grad(f)),
    "reverse-over-forward": lambda f: jax.jacrev(jax.jacfwd(f)),
    "reverse-over-reverse": lambda f: jax.jacrev(jax.grad(f)),
    "forward-over-forward": lambda f: jax.jacfwd(jax.jacfwd(f)),
}


@pytest.mark.parametrize("name", sorted(COMPOSITIONS))
def test_every_hessian_of_rosenbrock_matches_its_closed_form(name: str) -> None:
    second = jax.jit(COMPOSITIONS[name](rosenbrock))(POINT)
    np.testing.assert_allclose(second, optimize.rosen_hess(POINT), rtol=ROUNDING, atol=1e-10)


def test_hessian_vector_product_needs_no_hessian() -> None:
    def product(x: Array, v: Array) -> jax.Array:
        return jax.jvp(jax.grad(rosenbrock), (x,), (v,))[1]

    expected = optimize.rosen_hess_prod(POINT, DIRECTION)
    np.testing.assert_allclose(product(POINT, DIRECTION), expected, rtol=ROUNDING)
    shapes = [v.aval.shape for e in trace(product, POINT, DIRECTION).eqns for v in e.outvars]
    assert (4, 4) not in shapes


@pytest.mark.parametrize("order", range(1, 6))
def test_nested_gradients_of_sine_cycle(order: int) -> None:
    function: Callable[..., jax.Array] = jnp.sin
    for _ in range(order):
        function = jax.grad(function)
    assert float(function(0.7)) == pytest.approx(math.sin(0.7 + order * math.pi / 2), rel=ROUNDING)


@pytest.mark.parametrize("mode", ["jacfwd", "jacrev"])
def test_jacobian_of_polar_coordinates_matches_its_closed_form(mode: str) -> None:
    def cartesian(polar: jax.Array) -> jax.Array:
        return polar[0] * jnp.stack([jnp.cos(polar[1]), jnp.sin(polar[1])])

    radius, angle = 2.5, 0.8
    jacobian = getattr(jax, mode)(cartesian)(np.array([radius, angle]))
    cosine, sine = math.cos(angle), math.sin(angle)
    expected = [[cosine, -radius * sine], [sine, radius * cosine]]
    np.testing.assert_allclose(jacobian, expected, rtol=ROUNDING)


def test_per_example_gradients_match_least_squares_theory() -> None:
    """The gradient of (x.w - y)^2 / 2 in w is (x.w - y) x."""
    generator = np.random.default_rng(5)
    rows, targets, w = generator.normal(size=(7, 3)), generator.normal(size=7), np.ones(3)

    def loss(weights: jax.Array, row: jax.Array, target: jax.Array) -> jax.Array:
        return 0.5 * (row @ weights - target) ** 2

    each = jax.vmap(jax.grad(loss), in_axes=(None, 0, 0))(w, rows, targets)
    np.testing.assert_allclose(each, (rows @ w - targets)[:, None] * rows, rtol=ROUNDING)


@pytest.mark.parametrize("out_axis", [0, 1, -1])
@pytest.mark.parametrize("in_axis", [0, 1, 2])
def test_vmap_moves_the_mapped_axis(in_axis: int, out_axis: int) -> None:
    x = np.random.default_rng(6).normal(size=(3, 4, 5))
    mapped = jax.vmap(lambda a: a @ a.T, in_axes=in_axis, out_axes=out_axis)(x)
    slices = [part @ part.T for part in np.moveaxis(x, in_axis, 0)]
    np.testing.assert_allclose(mapped, np.stack(slices, axis=out_axis), rtol=ROUNDING)


def test_nested_vmap_makes_an_outer_product() -> None:
    a, b = np.arange(3.0), np.arange(4.0) + 1.0
    pairwise = jax.vmap(jax.vmap(jnp.hypot, in_axes=(None, 0)), in_axes=(0, None))(a, b)
    np.testing.assert_allclose(pairwise, np.hypot(a[:, None], b), rtol=ROUNDING)


def test_vmap_over_a_tree_maps_every_leaf() -> None:
    tree = {"a": np.arange(4.0), "b": (np.ones((4, 2)), 2.0)}
    axes = {"a": 0, "b": (0, None)}
    mapped = jax.vmap(lambda t: t["a"] + t["b"][1] * t["b"][0].sum(), in_axes=(axes,))(tree)
    np.testing.assert_array_equal(mapped, np.arange(4.0) + 4.0)


def test_sizes_that_disagree_are_refused_by_vmap() -> None:
    with pytest.raises(ValueError, match="inconsistent sizes"):
        jax.vmap(jnp.add)(np.ones(3), np.ones(4))


def test_a_named_axis_sums_over_the_batch() -> None:
    x = np.random.default_rng(7).normal(size=(5, 2))
    shares = jax.vmap(lambda row: row / jax.lax.psum(row, "batch"), axis_name="batch")(x)
    np.testing.assert_allclose(shares, x / x.sum(axis=0), rtol=ROUNDING)


def test_jit_traces_once_a_shape() -> None:
    traced: list[tuple[int, ...]] = []

    @jax.jit
    def double(x: jax.Array) -> jax.Array:
        traced.append(x.shape)
        return 2.0 * x

    for size in (3, 3, 4, 3, 4):
        np.testing.assert_array_equal(double(np.ones(size)), np.full(size, 2.0))
    assert traced == [(3,), (4,)]


def test_static_arguments_are_python_values_while_tracing() -> None:
    seen: list[int] = []

    @partial(jax.jit, static_argnames="power")
    def raise_to(x: jax.Array, *, power: int) -> jax.Array:
        seen.append(power)
        result = jnp.ones_like(x)
        for _ in range(power):
            result = result * x
        return result

    assert [float(raise_to(3.0, power=p)) for p in (2, 3, 2)] == [9.0, 27.0, 9.0]
    assert seen == [2, 3]


def test_python_branches_on_traced_values_are_refused() -> None:
    with pytest.raises(jax.errors.TracerBoolConversionError):
        jax.jit(lambda x: x if x > 0 else -x)(1.0)


def test_value_and_grad_carries_auxiliary_output() -> None:
    def loss(a: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
        return a**2 * b, a + b

    (value, extra), gradients = jax.value_and_grad(loss, argnums=(0, 1), has_aux=True)(3.0, 5.0)
    assert (float(value), float(extra)) == (45.0, 8.0)
    assert [float(g) for g in gradients] == [30.0, 9.0]


def test_stop_gradient_cuts_one_factor() -> None:
    gradient = jax.grad(lambda x: x * jax.lax.stop_gradient(x**2))(3.0)
    assert float(gradient) == 9.0


@pytest.mark.parametrize(
    ("function", "argument"),
    [(lambda x: x**2, 3), (lambda x: x, np.ones(2))],
    ids=["integer-input", "vector-output"],
)
def test_gradients_without_meaning_are_refused(
    function: Callable[..., jax.Array], argument: object
) -> None:
    with pytest.raises(TypeError, match=r"grad requires|Gradient only defined"):
        jax.grad(function)(argument)


def test_holomorphic_gradient_is_the_complex_derivative() -> None:
    point = 0.4 + 1.1j
    gradient = jax.grad(jnp.exp, holomorphic=True)(point)
    assert complex(gradient) == pytest.approx(np.exp(point), rel=ROUNDING)


def test_the_transpose_of_a_linear_function_is_the_transposed_matrix() -> None:
    transposed = jax.linear_transpose(FUNCTIONS["matmul"], np.ones(6))
    u = np.arange(4.0)
    np.testing.assert_allclose(transposed(u)[0], MATRIX.T @ u, rtol=ROUNDING)


def test_linearize_gives_the_whole_jacobian_of_one_evaluation() -> None:
    """The Jacobian of logsumexp is softmax."""
    x = sample(8)
    value, push = jax.linearize(jax.nn.logsumexp, x)
    assert float(value) == pytest.approx(special.logsumexp(x), rel=ROUNDING)
    np.testing.assert_allclose(jax.vmap(push)(np.eye(6)), special.softmax(x), rtol=ROUNDING)
