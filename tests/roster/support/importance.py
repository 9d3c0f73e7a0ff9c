"""Importance sampling with a Gaussian proposal, and the algebra to know its expectations.

The proposal is drawn through the Cholesky factor of `covariance + jitter * I`. That sum, and not
`covariance`, is the matrix of its density: `draw_proposal` hands it back with the draws, so that
a caller scores them under what they were drawn from.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from numpy.typing import NDArray


@partial(jax.jit, static_argnames="count")
def draw_proposal(
    key: jax.Array, covariance: jax.Array, jitter: float, count: int
) -> tuple[jax.Array, jax.Array]:
    """Return draws, shape (count, d), with mean zero, and the covariance they were drawn from."""
    used = covariance + jitter * jnp.eye(covariance.shape[0], dtype=covariance.dtype)
    noise = jax.random.normal(key, (count, covariance.shape[0]), dtype=covariance.dtype)
    return noise @ jnp.linalg.cholesky(used).T, used


@jax.jit
def gaussian_log_density(points: jax.Array, covariance: jax.Array) -> jax.Array:
    """Return log N(points; 0, covariance) for points of shape (n, d)."""
    factor = jnp.linalg.cholesky(covariance)
    whitened = jax.scipy.linalg.solve_triangular(factor, points.T, lower=True)
    log_determinant = 2.0 * jnp.sum(jnp.log(jnp.diagonal(factor)))
    constant = covariance.shape[0] * jnp.log(2.0 * jnp.pi)
    return -0.5 * (jnp.sum(whitened**2, axis=0) + log_determinant + constant)


def log_mean_weight(log_weights: jax.Array) -> jax.Array:
    """Return the log of the average weight: the estimate of a log evidence."""
    return logsumexp(log_weights) - jnp.log(log_weights.size)


def normalised_weights(log_weights: jax.Array) -> jax.Array:
    """Return weights that sum to one; their largest exponent is taken out first."""
    return jax.nn.softmax(log_weights)


def kish_effective_size(log_weights: jax.Array) -> jax.Array:
    """Return (sum w)^2 / sum w^2 (Kish 1965), between 1 and the number of weights."""
    return jnp.exp(2.0 * logsumexp(log_weights) - logsumexp(2.0 * log_weights))


def log_gaussian_product_integral(
    covariances: list[NDArray[np.float64]], powers: list[int]
) -> float:
    """Return log of the integral of prod_i N(x; 0, covariances[i]) ** powers[i] over x, in NumPy.

    Complete the square: the integrand is a Gaussian whose precision is the weighted sum.

    Raises:
        ValueError: The sum is not positive definite, so the integral diverges.
    """
    dimension = covariances[0].shape[0]
    precision = sum(
        power * np.linalg.inv(matrix) for matrix, power in zip(covariances, powers, strict=True)
    )
    if np.linalg.eigvalsh(precision).min() <= 0.0:
        raise ValueError("the integral diverges")
    total = 0.5 * dimension * np.log(2.0 * np.pi) * (1 - sum(powers))
    total -= 0.5 * np.linalg.slogdet(precision)[1]
    for matrix, power in zip(covariances, powers, strict=True):
        total -= 0.5 * power * np.linalg.slogdet(matrix)[1]
    return float(total)
