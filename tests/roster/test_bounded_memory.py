"""Batched loops and checkpoints bound memory: temporaries of compiled programs, in bytes.

The compiler's own plan is measured, not a process: it is the same on a busy machine. A bound is
the arrays that must live at once, times `SLACK` for copies and alignment.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.roster.support.jaxprs import largest_intermediate, trace

SLACK = 2.0

ROWS, WIDTH = 256, 32
MATRIX_BYTES = 4 * WIDTH * WIDTH

LENGTH, STATE = 64, 5000
STATE_BYTES = 4 * STATE

Wrap = Callable[[Callable], Callable]


def temporary_bytes(function: Callable[..., Any], *shapes: tuple[int, ...]) -> int:
    """Bytes of scratch space in the compiled program for single-precision arguments."""
    arguments = [jax.ShapeDtypeStruct(shape, np.float32) for shape in shapes]
    analysis = jax.jit(function).lower(*arguments).compile().memory_analysis()
    return int(analysis.temp_size_in_bytes)


def heavy(row: jax.Array) -> jax.Array:
    """The median of all products within a row: a sort needs its matrix in memory."""
    return jnp.sort(jnp.outer(row, row).ravel())[WIDTH * WIDTH // 2]


def by_vmap(rows: jax.Array) -> jax.Array:
    return jax.vmap(heavy)(rows)


def by_map(batch_size: int | None) -> Callable[[jax.Array], jax.Array]:
    return lambda rows: jax.lax.map(heavy, rows, batch_size=batch_size)


def by_scan(rows: jax.Array) -> jax.Array:
    return jax.lax.scan(lambda best, row: (jnp.maximum(best, heavy(row)), None), 0.0, rows)[0]


def test_vmap_needs_the_matrices_of_all_rows_at_once() -> None:
    """The control: if this needed little, the bounds below would bound nothing."""
    assert temporary_bytes(by_vmap, (ROWS, WIDTH)) >= ROWS * MATRIX_BYTES


@pytest.mark.parametrize("batch_size", [None, 1, 8, 32, 48])
def test_map_needs_the_matrices_of_one_batch(batch_size: int | None) -> None:
    """One matrix for each row of a batch and of the remainder, and the results of all rows."""
    batch = batch_size or 1
    used = temporary_bytes(by_map(batch_size), (ROWS, WIDTH))
    matrices = batch + ROWS % batch
    assert batch * MATRIX_BYTES <= used <= SLACK * (matrices * MATRIX_BYTES + 4 * ROWS)


@pytest.mark.parametrize("rows", [64, 256, 1024])
def test_scan_needs_the_same_for_any_number_of_rows(rows: int) -> None:
    assert temporary_bytes(by_scan, (rows, WIDTH)) <= SLACK * MATRIX_BYTES


@pytest.mark.parametrize("batch_size", [1, 8, 32])
def test_the_trace_of_a_map_holds_one_batch(batch_size: int) -> None:
    """In the traced program the largest array is a batch of matrices, or the argument."""
    program = trace(by_map(batch_size), np.zeros((ROWS, WIDTH), np.float32))
    assert largest_intermediate(program) == max(batch_size * WIDTH * WIDTH, ROWS * WIDTH)
    whole = trace(by_vmap, np.zeros((ROWS, WIDTH), np.float32))
    assert largest_intermediate(whole) == ROWS * WIDTH * WIDTH


@pytest.mark.parametrize("batch_size", [None, 8, 48])
def test_bounding_memory_does_not_change_the_values(batch_size: int | None) -> None:
    rows = np.random.default_rng(0).normal(size=(100, WIDTH)).astype(np.float32)
    products = np.sort((rows[:, :, None] * rows[:, None, :]).reshape(len(rows), -1), axis=1)
    # A product of two single-precision numbers is rounded once, on either side.
    expected = products[:, WIDTH * WIDTH // 2]
    np.testing.assert_array_equal(jax.jit(by_map(batch_size))(rows), expected)


def step(state: jax.Array, _: None) -> tuple[jax.Array, None]:
    """Three nonlinear stages: reverse mode wants what went into each of them."""
    return jnp.sin(jnp.cos(1.1 * jnp.tanh(state))), None


def chain(wrap: Wrap, length: int = LENGTH) -> Callable[[jax.Array], jax.Array]:
    return lambda x: jnp.sum(jax.lax.scan(wrap(step), x, None, length=length)[0])


def nested(length: int = LENGTH) -> Callable[[jax.Array], jax.Array]:
    """Checkpoint blocks of sqrt(length) steps, and each step in a block."""
    size = math.isqrt(length)

    def block(state: jax.Array, _: None) -> tuple[jax.Array, None]:
        return jax.lax.scan(jax.checkpoint(step), state, None, length=size)[0], None

    return lambda x: jnp.sum(jax.lax.scan(jax.checkpoint(block), x, None, length=length // size)[0])


def plain(function: Callable) -> Callable:
    return function


def test_a_plain_gradient_keeps_several_arrays_a_step() -> None:
    used = temporary_bytes(jax.grad(chain(plain)), (STATE,))
    assert used >= 3 * LENGTH * STATE_BYTES


def test_a_checkpointed_gradient_keeps_one_array_a_step() -> None:
    """The state before each step, and a few more for the step at hand."""
    used = temporary_bytes(jax.grad(chain(jax.checkpoint)), (STATE,))
    assert LENGTH * STATE_BYTES <= used <= (1.5 * LENGTH + 16) * STATE_BYTES


@pytest.mark.parametrize("length", [16, 64, 256])
def test_nested_checkpoints_keep_two_square_roots_of_the_steps(length: int) -> None:
    """States between blocks and states within one (Griewank 1992 gives the logarithmic limit)."""
    used = temporary_bytes(jax.grad(nested(length)), (STATE,))
    assert used <= (1.5 * 2 * math.isqrt(length) + 16) * STATE_BYTES


@pytest.mark.parametrize("length", [16, 256])
def test_the_value_alone_needs_a_few_states(length: int) -> None:
    assert temporary_bytes(chain(plain, length), (STATE,)) <= 2 * SLACK * STATE_BYTES


@pytest.mark.parametrize("name", ["checkpoint", "nested"])
def test_checkpoints_do_not_change_the_gradient(name: str) -> None:
    """The chain rule written out in NumPy, in double precision."""
    x = np.linspace(-1.0, 1.0, 11)
    state, slope = x, np.ones_like(x)
    for _ in range(16):
        inner = 1.1 * np.tanh(state)
        slope = slope * np.cos(np.cos(inner)) * -np.sin(inner) * 1.1 / np.cosh(state) ** 2
        state = np.sin(np.cos(inner))
    function = chain(jax.checkpoint, 16) if name == "checkpoint" else nested(16)
    with jax.enable_x64(True):
        gradient = jax.jit(jax.grad(function))(x)
    np.testing.assert_allclose(gradient, slope, rtol=1e-11)


def test_a_donated_argument_is_reused_for_the_result() -> None:
    shape = jax.ShapeDtypeStruct((STATE,), np.float32)
    kept = jax.jit(lambda x: x + 1.0).lower(shape).compile().memory_analysis()
    donated = jax.jit(lambda x: x + 1.0, donate_argnums=0).lower(shape).compile().memory_analysis()
    assert kept.alias_size_in_bytes == 0
    assert donated.alias_size_in_bytes == STATE_BYTES
