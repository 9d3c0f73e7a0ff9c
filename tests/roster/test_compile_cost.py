"""Ceilings on compile cost: a traced program must not grow with the grid it runs over.

The cost of tracing and compiling follows the number of equations. Loops and batches are written
with scan and vmap so that this number stays the same; a Python loop shows what it is not to be.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.roster.support.jaxprs import count_equations, count_primitive, trace, walk

SIZES = (4, 40, 400)


def grid(count: int) -> np.ndarray:
    return np.linspace(0.1, 1.0, count)


def integrand(x: jax.Array) -> jax.Array:
    return jnp.exp(-x) * jnp.sin(3.0 * x)


def by_scan(x: jax.Array) -> jax.Array:
    return jax.lax.scan(lambda total, v: (total + integrand(v), None), 0.0, x)[0]


def by_vmap(x: jax.Array) -> jax.Array:
    return jnp.sum(jax.vmap(integrand)(x))


def by_map(x: jax.Array) -> jax.Array:
    return jnp.sum(jax.lax.map(integrand, x))


def by_fori(x: jax.Array) -> jax.Array:
    return jax.lax.fori_loop(0, x.size, lambda i, total: total + integrand(x[i]), 0.0)


def by_while(x: jax.Array) -> jax.Array:
    def step(state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        return state[0] + 1, state[1] + integrand(x[state[0]])

    return jax.lax.while_loop(lambda state: state[0] < x.size, step, (0, 0.0))[1]


def by_nested_scan(x: jax.Array) -> jax.Array:
    def row(total: jax.Array, v: jax.Array) -> tuple[jax.Array, None]:
        inner, _ = jax.lax.scan(lambda c, w: (c + integrand(v * w), None), 0.0, x)
        return total + inner, None

    return jax.lax.scan(row, 0.0, x)[0]


def by_python(x: jax.Array) -> jax.Array:
    return sum(integrand(x[i]) for i in range(x.size))


COMPACT: dict[str, Callable[[jax.Array], jax.Array]] = {
    "scan": by_scan,
    "vmap": by_vmap,
    "map": by_map,
    "fori": by_fori,
    "while": by_while,
    "nested-scan": by_nested_scan,
}
REVERSIBLE = sorted(COMPACT.keys() - {"while"})

TRANSFORMS: dict[str, Callable[[Callable], Callable]] = {
    "value": lambda f: f,
    "gradient": jax.grad,
    "checkpointed-gradient": lambda f: jax.grad(jax.checkpoint(f)),
    "jitted-gradient": lambda f: jax.jit(jax.grad(f)),
}


def equations(function: Callable, *arguments: object) -> int:
    return count_equations(trace(function, *arguments))


def test_sub_programs_are_counted() -> None:
    """A sine inside a scan inside a jit inside a cond: a count of the outermost level sees one."""

    @jax.jit
    def looped(x: jax.Array) -> jax.Array:
        return jax.lax.scan(lambda c, _: (jnp.sin(c), None), x, None, length=3)[0]

    program = trace(lambda x: jax.lax.cond(x > 0, looped, jnp.cos, x), 1.0)
    assert count_primitive(program, "sin") == 1
    assert count_primitive(program, "cos") == 1
    names = {equation.primitive.name for equation in walk(program)}
    assert {"cond", "scan", "sin", "cos", "gt"} <= names


@pytest.mark.parametrize("name", COMPACT)
def test_the_value_costs_the_same_on_every_grid(name: str) -> None:
    counts = [equations(COMPACT[name], grid(n)) for n in SIZES]
    assert len(set(counts)) == 1
    assert counts[0] <= 60


@pytest.mark.parametrize("transform", sorted(TRANSFORMS.keys() - {"value"}))
@pytest.mark.parametrize("name", REVERSIBLE)
def test_the_gradient_costs_the_same_on_every_grid(name: str, transform: str) -> None:
    counts = [equations(TRANSFORMS[transform](COMPACT[name]), grid(n)) for n in SIZES]
    assert len(set(counts)) == 1
    assert counts[0] <= 200


def test_a_python_loop_grows_with_the_grid() -> None:
    """The control: without it a counter that sees nothing would pass every test above."""
    few, many = (equations(by_python, grid(n)) for n in (4, 40))
    assert many - few >= 36 * 4


def test_all_forms_compute_the_same_sum() -> None:
    x = grid(40)
    expected = np.sum(np.exp(-x) * np.sin(3.0 * x))
    for name in sorted(COMPACT.keys() - {"nested-scan"}):
        # Forty additions in single precision.
        assert float(COMPACT[name](jnp.asarray(x))) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("size", SIZES)
def test_a_batched_gradient_costs_as_much_as_one_gradient_and_its_bookkeeping(size: int) -> None:
    one = equations(jax.grad(integrand), 0.5)
    batch = equations(jax.vmap(jax.grad(integrand)), grid(size))
    assert batch <= 2 * one + 5


def test_a_reverse_gradient_costs_a_small_multiple_of_the_value() -> None:
    """Griewank and Walther: at most five times the operations; program size follows suit."""

    def chain(x: jax.Array) -> jax.Array:
        for _ in range(50):
            x = jnp.sin(x) * jnp.exp(-x)
        return x

    assert equations(jax.grad(chain), 0.5) <= 5 * equations(chain, 0.5)


def test_unrolling_is_what_multiplies_the_compiled_loop_body() -> None:
    """Trace size ignores `unroll`; the lowered program repeats the body."""

    def sines(unroll: int) -> int:
        def loop(x: jax.Array) -> jax.Array:
            return jax.lax.scan(lambda c, _: (jnp.sin(c), None), x, length=64, unroll=unroll)[0]

        return jax.jit(loop).lower(1.0).as_text().count("stablehlo.sine")

    assert [sines(1), sines(8)] == [1, 8]


@pytest.mark.parametrize("layers", [2, 20, 200])
def test_a_deep_network_by_scan_over_its_layers_has_a_fixed_cost(layers: int) -> None:
    def forward(weights: jax.Array, x: jax.Array) -> jax.Array:
        return jax.lax.scan(lambda y, w: (jnp.tanh(w @ y), None), x, weights)[0].sum()

    weights, x = np.zeros((layers, 5, 5), np.float32), np.ones(5, np.float32)
    assert equations(jax.grad(forward), weights, x) <= 60
    assert count_primitive(trace(forward, weights, x), "tanh") == 1


@pytest.mark.parametrize("size", SIZES)
def test_the_lowered_text_of_a_scan_does_not_grow_with_its_length(size: int) -> None:
    text = jax.jit(jax.grad(by_scan)).lower(grid(size)).as_text()
    assert len(text.splitlines()) <= 150
