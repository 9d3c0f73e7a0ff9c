"""Piecewise polynomial interpolation in JAX: cubic splines and Lagrange interpolation.

A spline is kept by its values and second derivatives at the knots (de Boor, A Practical Guide to
Splines, chapter IV). Outside the knots the end pieces are continued.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp


class CubicSpline(NamedTuple):
    """Knots in increasing order, with values and second derivatives there, each of shape (n,)."""

    knots: jax.Array
    values: jax.Array
    curvatures: jax.Array


@jax.jit
def natural_spline(knots: jax.Array, values: jax.Array) -> CubicSpline:
    """Return the spline through at least 3 points whose second derivative vanishes at the ends."""
    return _solve(knots, values, 0.0, 0.0, jnp.array([1.0, 0.0]))


@jax.jit
def clamped_spline(
    knots: jax.Array, values: jax.Array, first_slope: float, last_slope: float
) -> CubicSpline:
    """Return the spline through at least 3 points with given first derivatives at the ends."""
    gaps, slopes = _differences(knots, values)
    first = 6.0 * (slopes[0] - first_slope) / gaps[0]
    last = 6.0 * (last_slope - slopes[-1]) / gaps[-1]
    return _solve(knots, values, first, last, jnp.array([2.0, 1.0]))


@jax.jit
def evaluate(spline: CubicSpline, points: jax.Array) -> jax.Array:
    """Return the values of a spline at `points`, of any shape."""
    knots, values, curvatures = spline
    piece = jnp.clip(jnp.searchsorted(knots, points, side="right") - 1, 0, knots.size - 2)
    gap = knots[piece + 1] - knots[piece]
    b = (points - knots[piece]) / gap
    a = 1.0 - b
    bend = (a**3 - a) * curvatures[piece] + (b**3 - b) * curvatures[piece + 1]
    return a * values[piece] + b * values[piece + 1] + bend * gap**2 / 6.0


@jax.jit
def barycentric(nodes: jax.Array, values: jax.Array, points: jax.Array) -> jax.Array:
    """Return the polynomial through all points, evaluated at `points` that are not nodes.

    The second barycentric formula (Berrut and Trefethen, SIAM Review 46, 2004).
    """
    differences = nodes[:, None] - nodes + jnp.eye(nodes.size)
    weights = 1.0 / jnp.prod(differences, axis=1)
    terms = weights / (points[:, None] - nodes)
    return terms @ values / terms.sum(axis=1)


def _differences(knots: jax.Array, values: jax.Array) -> tuple[jax.Array, jax.Array]:
    gaps = jnp.diff(knots)
    return gaps, jnp.diff(values) / gaps


def _solve(
    knots: jax.Array, values: jax.Array, first: float, last: float, ends: jax.Array
) -> CubicSpline:
    """Solve the tridiagonal equations of the second derivatives.

    `ends` holds the diagonal and the off-diagonal entry of the first and last equation.
    """
    gaps, slopes = _differences(knots, values)
    diagonal = 2.0 * (gaps[1:] + gaps[:-1])
    matrix = jnp.diag(jnp.concatenate([ends[:1], diagonal, ends[:1]]))
    matrix += jnp.diag(jnp.concatenate([ends[1:], gaps[1:]]), 1)
    matrix += jnp.diag(jnp.concatenate([gaps[:-1], ends[1:]]), -1)
    right = jnp.concatenate([jnp.reshape(first, 1), 6.0 * jnp.diff(slopes), jnp.reshape(last, 1)])
    return CubicSpline(knots, values, jnp.linalg.solve(matrix, right))
