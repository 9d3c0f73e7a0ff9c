"""A small Laplace approximation in JAX: the mode by damped Newton steps, then a Gaussian there."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp

LogDensity = Callable[[jax.Array], jax.Array]


class Laplace(NamedTuple):
    """The approximation.

    Attributes:
        mode: Where the log density is largest, shape (d,).
        precision: Minus the Hessian there, shape (d, d).
        log_evidence: Approximate log of the integral of the density.
    """

    mode: jax.Array
    precision: jax.Array
    log_evidence: jax.Array


def find_mode(log_density: LogDensity, start: jax.Array, *, steps: int = 30) -> jax.Array:
    """Return the mode of a log-concave `log_density`, searched from `start`, shape (d,).

    A Newton step that would lower the density is halved until it does not, at most 20 times.
    """
    gradient, hessian = jax.grad(log_density), jax.hessian(log_density)

    def newton(_: int, point: jax.Array) -> jax.Array:
        step = -jnp.linalg.solve(hessian(point), gradient(point))
        height = log_density(point)

        def falls(state: tuple[jax.Array, int]) -> jax.Array:
            return (log_density(point + state[0]) < height) & (state[1] < 20)

        step, _ = jax.lax.while_loop(falls, lambda state: (state[0] / 2, state[1] + 1), (step, 0))
        return point + step

    return jax.lax.fori_loop(0, steps, newton, start)


@partial(jax.jit, static_argnums=0)
def approximate(log_density: LogDensity, start: jax.Array) -> Laplace:
    """Return the Laplace approximation of an unnormalised `log_density` over R^d."""
    mode = find_mode(log_density, start)
    precision = -jax.hessian(log_density)(mode)
    log_determinant = jnp.linalg.slogdet(precision)[1]
    gaussian = 0.5 * (mode.size * jnp.log(2.0 * jnp.pi) - log_determinant)
    return Laplace(mode, precision, log_density(mode) + gaussian)
