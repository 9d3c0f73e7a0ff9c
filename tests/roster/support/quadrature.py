"""Quadrature rules in JAX: nodes and weights, each for the interval its docstring names."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp

Rule = tuple[jax.Array, jax.Array]


@partial(jax.jit, static_argnums=0)
def gauss_legendre(count: int) -> Rule:
    """Return the rule on [-1, 1] that is exact up to degree 2 * count - 1 (Golub and Welsch)."""
    k = jnp.arange(1.0, count)
    return _golub_welsch(k / jnp.sqrt(4.0 * k * k - 1.0), 2.0)


@partial(jax.jit, static_argnums=0)
def gauss_hermite(count: int) -> Rule:
    """Return the rule for the standard normal density, exact up to degree 2 * count - 1."""
    return _golub_welsch(jnp.sqrt(jnp.arange(1.0, count)), 1.0)


@partial(jax.jit, static_argnums=0)
def clenshaw_curtis(count: int) -> Rule:
    """Return the rule on [-1, 1] on `count` >= 2 Chebyshev points, exact up to degree count - 1.

    The weights solve the moment equations of the Chebyshev polynomials: the integral of T_k is
    2 / (1 - k**2) for even k and 0 for odd k.
    """
    angles = jnp.pi * jnp.arange(count) / (count - 1)
    k = jnp.arange(count)
    moments = jnp.where(k % 2 == 0, 2.0 / (1.0 - (k - k % 2) ** 2.0), 0.0)
    weights = jnp.linalg.solve(jnp.cos(jnp.outer(k, angles)), moments)
    return jnp.cos(angles), weights


@partial(jax.jit, static_argnums=0)
def trapezoid(count: int) -> Rule:
    """Return the composite rule on [-1, 1] with `count` intervals: order 2."""
    nodes = jnp.linspace(-1.0, 1.0, count + 1)
    weights = jnp.full(count + 1, 2.0 / count).at[jnp.array([0, -1])].multiply(0.5)
    return nodes, weights


@partial(jax.jit, static_argnums=0)
def simpson(count: int) -> Rule:
    """Return the composite rule on [-1, 1] with `count` intervals, an even number: order 4."""
    index = jnp.arange(count + 1)
    weights = jnp.where(index % 2 == 1, 4.0, 2.0).at[jnp.array([0, -1])].set(1.0)
    return jnp.linspace(-1.0, 1.0, count + 1), weights * (2.0 / (3.0 * count))


@partial(jax.jit, static_argnums=0)
def tanh_sinh(count: int, *, reach: float = 3.0) -> Rule:
    """Return the double-exponential rule on [-1, 1] with 2 * count + 1 nodes.

    Args:
        count: Nodes on each side of the middle.
        reach: Largest transformed coordinate; 3 puts the last node 1e-13 from the end.
    """
    step = reach / count
    t = step * jnp.arange(-count, count + 1.0)
    inner = 0.5 * jnp.pi * jnp.sinh(t)
    return jnp.tanh(inner), 0.5 * jnp.pi * step * jnp.cosh(t) / jnp.cosh(inner) ** 2


@partial(jax.jit, static_argnums=0)
def integrate(
    function: Callable[[jax.Array], jax.Array], rule: Rule, low: float = -1.0, high: float = 1.0
) -> jax.Array:
    """Return the integral of a vectorised `function` over [low, high], by a rule on [-1, 1]."""
    nodes, weights = rule
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    return half * jnp.sum(weights * function(middle + half * nodes))


def _golub_welsch(off_diagonal: jax.Array, mass: float) -> Rule:
    """Return nodes and weights from the off-diagonal of a Jacobi matrix with zero diagonal."""
    nodes, vectors = jnp.linalg.eigh(jnp.diag(off_diagonal, 1) + jnp.diag(off_diagonal, -1))
    return nodes, mass * vectors[0] ** 2
