"""Band-limited interpolation and differentiation of periodic samples, by FFT in JAX.

Samples stand at x_j = 2 pi j / n. For even n the Nyquist coefficient stands for both signs of its
frequency at once: it is halved, which makes the interpolant of real samples real (Trefethen,
Spectral Methods in MATLAB, chapter 3).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray


def wavenumbers(count: int) -> NDArray[np.float64]:
    """Return the signed integer frequencies of `count` samples, in FFT order."""
    return np.fft.fftfreq(count, 1.0 / count)


def resample(samples: jax.Array, count: int) -> jax.Array:
    """Return the interpolant of n real samples at `count` >= n equispaced points, from x = 0."""
    size = samples.shape[0]
    spectrum = jnp.fft.rfft(samples)
    if size % 2 == 0 and count > size:
        spectrum = spectrum.at[-1].multiply(0.5)
    return jnp.fft.irfft(spectrum, n=count) * (count / size)


def evaluate(samples: jax.Array, points: jax.Array) -> jax.Array:
    """Return the interpolant of real samples at arbitrary `points`, shape (m,)."""
    size = samples.shape[0]
    spectrum = jnp.fft.rfft(samples) / size
    k = np.arange(spectrum.shape[0])
    doubled = (k > 0) & (2 * k < size)
    phases = jnp.exp(1j * points[:, None] * k)
    return jnp.real(phases @ (spectrum * np.where(doubled, 2.0, 1.0)))


def differentiate(samples: jax.Array) -> jax.Array:
    """Return the interpolant's derivative at the points of the real samples."""
    size = samples.shape[0]
    k = wavenumbers(size)
    if size % 2 == 0:
        k[size // 2] = 0.0
    return jnp.real(jnp.fft.ifft(1j * k * jnp.fft.fft(samples)))


def translate(samples: jax.Array, distance: jax.Array) -> jax.Array:
    """Return the interpolant of real samples moved to the right by `distance`.

    The Nyquist mode of an even number of samples is multiplied by cos(n distance / 2).
    """
    size = samples.shape[0]
    k = wavenumbers(size)
    factor = jnp.exp(-1j * k * distance)
    if size % 2 == 0:
        factor = factor.at[size // 2].set(jnp.cos(0.5 * size * distance))
    return jnp.real(jnp.fft.ifft(factor * jnp.fft.fft(samples)))
