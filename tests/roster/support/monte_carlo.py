"""How far an average of correlated draws may lie from its expectation, from NumPy alone.

Tests compare `z_score` with a bound of at least 5: a correct sampler leaves it with a probability
under 1e-6, whatever the last bits of the arithmetic do to a trajectory.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

Z_BOUND = 5.0


def effective_sample_size(draws: ArrayLike) -> float:
    """Return the effective size of `draws`, shape (chains, draws a chain) or (draws,).

    Autocovariances are averaged over chains about the common mean and summed by Geyer's initial
    monotone sequence (Statistical Science 7, 1992). The result is capped at the number of draws:
    antithetic chains can do better, and claiming so would only narrow a tolerance.

    Raises:
        ValueError: Fewer than 4 draws a chain, or draws that do not vary.
    """
    chains = np.atleast_2d(np.asarray(draws, dtype=np.float64))
    length = chains.shape[1]
    if length < 4:
        raise ValueError("at least 4 draws a chain are needed")
    centred = chains - chains.mean()
    padded = np.fft.rfft(centred, n=2 * length, axis=1)
    covariance = np.fft.irfft(np.abs(padded) ** 2, axis=1)[:, :length].mean(axis=0) / length
    if covariance[0] <= 0.0:
        raise ValueError("the draws do not vary")
    pairs = covariance[: length // 2 * 2].reshape(-1, 2).sum(axis=1) / covariance[0]
    negative = np.flatnonzero(pairs < 0.0)
    kept = pairs[: negative[0]] if negative.size else pairs
    time = 2.0 * np.minimum.accumulate(kept).sum() - 1.0
    return float(chains.size / max(time, 1.0))


def standard_error(draws: ArrayLike) -> float:
    """Return the standard error of the mean of `draws`, with their correlation counted."""
    values = np.asarray(draws, dtype=np.float64)
    return float(np.sqrt(values.var() / effective_sample_size(values)))


def z_score(draws: ArrayLike, expected: float) -> float:
    """Return the distance of the mean of `draws` from `expected`, in standard errors."""
    return float((np.mean(draws) - expected) / standard_error(draws))
