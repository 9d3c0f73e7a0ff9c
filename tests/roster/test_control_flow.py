"""scan, while_loop, fori_loop, cond, switch and map against plain Python and NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import signal

ROUNDING = 1e-12  # recurrences of at most a few dozen steps on numbers of order one


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def filter_by_scan(x: np.ndarray, decay: float, *, unroll: int = 1) -> jax.Array:
    def step(level: jax.Array, value: jax.Array) -> tuple[jax.Array, jax.Array]:
        level = decay * level + value
        return level, level

    return jax.lax.scan(step, 0.0, x, unroll=unroll)[1]


@pytest.mark.parametrize("unroll", [1, 3, 25, True], ids=["no", "three", "all", "true"])
def test_scan_is_a_recursive_filter_however_unrolled(unroll: int) -> None:
    x = np.random.default_rng(0).normal(size=25)
    expected = signal.lfilter([1.0], [1.0, -0.9], x)
    filtered = jax.jit(lambda values: filter_by_scan(values, 0.9, unroll=unroll))(x)
    np.testing.assert_allclose(filtered, expected, atol=ROUNDING)


def test_reverse_scan_sums_from_the_end() -> None:
    x = np.arange(1.0, 8.0)
    total, sums = jax.lax.scan(lambda c, v: (c + v, c + v), 0.0, x, reverse=True)
    np.testing.assert_array_equal(sums, np.cumsum(x[::-1])[::-1])
    assert float(total) == 28.0


def test_scan_carries_a_tree_and_counts_without_inputs() -> None:
    def step(carry: dict[str, Any], _: None) -> tuple[dict[str, Any], jax.Array]:
        a, b = carry["pair"]
        return {"pair": (b, a + b)}, a

    _, numbers = jax.lax.scan(step, {"pair": (0, 1)}, None, length=10)
    assert numbers.tolist() == [0, 1, 1, 2, 3, 5, 8, 13, 21, 34]


def test_scan_of_nothing_returns_the_start() -> None:
    carry, outputs = jax.lax.scan(lambda c, v: (c + v, c), 5.0, np.zeros((0,)))
    assert float(carry) == 5.0
    assert outputs.shape == (0,)


def test_scan_refuses_a_carry_that_changes_its_type() -> None:
    with pytest.raises(TypeError, match="carry"):
        jax.lax.scan(lambda c, v: (jnp.stack([c, c]), v), 0.0, np.zeros(3))


@pytest.mark.parametrize(("a", "b"), [(12, 18), (17, 5), (0, 9), (1071, 462), (2**40, 2**35)])
def test_while_loop_finds_the_greatest_common_divisor(a: int, b: int) -> None:
    result, _ = jax.lax.while_loop(lambda s: s[1] != 0, lambda s: (s[1], s[0] % s[1]), (a, b))
    assert int(result) == math.gcd(a, b)


def test_while_loop_may_run_no_step() -> None:
    assert float(jax.lax.while_loop(lambda x: x < 1.0, lambda x: x + 1.0, 3.0)) == 3.0


def collatz_steps(start: int) -> int:
    steps = 0
    while start != 1:
        start = 3 * start + 1 if start % 2 else start // 2
        steps += 1
    return steps


def test_a_batched_while_loop_stops_each_element_by_itself() -> None:
    def steps(start: jax.Array) -> jax.Array:
        def step(state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            n, count = state
            return jnp.where(n % 2 == 1, 3 * n + 1, n // 2), count + 1

        return jax.lax.while_loop(lambda state: state[0] != 1, step, (start, 0))[1]

    starts = np.arange(1, 40)
    counts = jax.jit(jax.vmap(steps))(starts)
    assert counts.tolist() == [collatz_steps(int(n)) for n in starts]


@pytest.mark.parametrize("traced", [False, True], ids=["static-bounds", "traced-bounds"])
@pytest.mark.parametrize("n", [0, 1, 5, 20])
def test_fori_loop_computes_factorials(n: int, traced: bool) -> None:
    def factorial(upper: int) -> jax.Array:
        return jax.lax.fori_loop(1, upper + 1, lambda i, product: product * i, 1)

    result = jax.jit(factorial)(n) if traced else factorial(n)
    assert int(result) == math.factorial(n)


def test_fori_loop_with_reversed_bounds_does_nothing() -> None:
    assert int(jax.lax.fori_loop(5, 2, lambda i, s: s + i, 7)) == 7


def test_nested_loops_fill_a_matrix_power() -> None:
    matrix = np.array([[1, 1], [1, 0]])
    power = jax.lax.fori_loop(0, 30, lambda _, m: m @ matrix, jnp.eye(2, dtype=jnp.int64))
    assert power.tolist() == np.linalg.matrix_power(matrix, 30).tolist()


@pytest.mark.parametrize("flag", [True, False])
def test_cond_takes_the_branch_that_is_asked_for(flag: bool) -> None:
    result = jax.jit(lambda p, x: jax.lax.cond(p, jnp.sin, jnp.cos, x))(flag, 0.5)
    expected = math.sin(0.5) if flag else math.cos(0.5)
    assert float(result) == pytest.approx(expected, rel=ROUNDING)


def test_cond_runs_only_one_branch() -> None:
    ran: list[str] = []

    def branch(name: str) -> Callable[[jax.Array], jax.Array]:
        def body(x: jax.Array) -> jax.Array:
            jax.debug.callback(lambda: ran.append(name))
            return x

        return body

    jax.jit(lambda p, x: jax.lax.cond(p, branch("yes"), branch("no"), x))(True, 1.0)
    jax.effects_barrier()
    assert ran == ["yes"]


def test_a_batched_cond_selects_element_by_element() -> None:
    x = np.linspace(-2.0, 2.0, 9)
    result = jax.vmap(lambda v: jax.lax.cond(v > 0, jnp.exp, lambda u: -u, v))(x)
    np.testing.assert_allclose(result, np.where(x > 0, np.exp(x), -x), rtol=ROUNDING)


def test_cond_refuses_branches_of_different_types() -> None:
    with pytest.raises(TypeError, match="output types"):
        jax.lax.cond(True, lambda x: x, lambda x: x.astype("float32"), jnp.zeros(2))


@pytest.mark.parametrize(("index", "expected"), [(-3, 1), (0, 1), (1, 10), (2, 100), (9, 100)])
def test_switch_clamps_its_index(index: int, expected: int) -> None:
    branches = [lambda x: x, lambda x: 10 * x, lambda x: 100 * x]
    assert int(jax.jit(lambda i: jax.lax.switch(i, branches, 1))(index)) == expected


@pytest.mark.parametrize("batch_size", [None, 1, 4, 5, 13, 64])
def test_map_gives_the_same_rows_for_every_batch_size(batch_size: int | None) -> None:
    rows = np.random.default_rng(1).normal(size=(13, 3, 3))
    traces = jax.lax.map(lambda m: jnp.trace(m @ m), rows, batch_size=batch_size)
    np.testing.assert_allclose(traces, np.einsum("nij,nji->n", rows, rows), atol=ROUNDING)


@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
@pytest.mark.parametrize("length", [1, 2, 7, 16])
def test_associative_scan_multiplies_matrices_in_order(length: int, reverse: bool) -> None:
    generator = np.random.default_rng(2)
    matrices = np.eye(3) + 0.1 * generator.normal(size=(length, 3, 3))
    scan = jax.jit(lambda m: jax.lax.associative_scan(jnp.matmul, m, reverse=reverse))
    products = scan(matrices)
    order = matrices[::-1] if reverse else matrices
    running, expected = np.eye(3), []
    for matrix in order:
        running = running @ matrix
        expected.append(running)
    if reverse:
        expected.reverse()
    np.testing.assert_allclose(products, expected, atol=ROUNDING)
