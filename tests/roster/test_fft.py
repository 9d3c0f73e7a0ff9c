"""Fourier transforms and band-limited interpolation, exact below the Nyquist frequency."""

from __future__ import annotations

import math
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.roster.support import finite_differences, fourier

ROUNDING = 1e-12  # eps * log2(n) operations on sums of a few dozen terms of order one
SIZES = [1, 2, 7, 16, 30, 31]

Array = NDArray[np.float64]


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def signal(count: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=count)


def grid(count: int) -> Array:
    return 2.0 * np.pi * np.arange(count) / count


class TrigonometricPolynomial:
    """Random coefficients up to a degree; values, derivative and mean square in closed form."""

    def __init__(self, degree: int) -> None:
        generator = np.random.default_rng(degree)
        self.orders = np.arange(degree + 1)
        self.cosines = generator.normal(size=degree + 1)
        self.sines = generator.normal(size=degree + 1) * (self.orders > 0)

    def __call__(self, x: Array) -> Array:
        angles = np.outer(x, self.orders)
        return np.cos(angles) @ self.cosines + np.sin(angles) @ self.sines

    def derivative(self, x: Array) -> Array:
        angles = np.outer(x, self.orders)
        return np.cos(angles) @ (self.orders * self.sines) - np.sin(angles) @ (
            self.orders * self.cosines
        )

    def mean_square(self) -> float:
        rest = np.sum(self.cosines[1:] ** 2 + self.sines[1:] ** 2)
        return float(self.cosines[0] ** 2 + 0.5 * rest)


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "hfft"])
def test_transforms_match_numpy(name: str, count: int) -> None:
    x = signal(count)
    if name == "hfft":
        x = signal(count + 1)
    expected = getattr(np.fft, name)(x)
    np.testing.assert_allclose(getattr(jnp.fft, name)(x), expected, atol=ROUNDING * 10)


@pytest.mark.parametrize("count", SIZES)
def test_real_transforms_return_for_even_and_odd_sizes(count: int) -> None:
    x = signal(count)
    back = jnp.fft.irfft(jnp.fft.rfft(x), n=count)
    np.testing.assert_allclose(back, x, atol=ROUNDING)


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_norms_match_numpy(norm: str) -> None:
    x = signal(12)
    np.testing.assert_allclose(
        jnp.fft.fft(x, norm=norm), np.fft.fft(x, norm=norm), atol=ROUNDING * 10
    )


def test_two_dimensional_transform_is_one_a_axis() -> None:
    x = signal(60).reshape(6, 10)
    expected = np.fft.fft(np.fft.fft(x, axis=0), axis=1)
    np.testing.assert_allclose(jnp.fft.fft2(x), expected, atol=ROUNDING * 10)


@pytest.mark.parametrize("count", SIZES)
def test_parsevals_identity(count: int) -> None:
    x = signal(count)
    spectrum = jnp.fft.fft(x)
    energy = float(jnp.sum(jnp.abs(spectrum) ** 2)) / count
    assert energy == pytest.approx(float(np.sum(x**2)), rel=ROUNDING)


@pytest.mark.parametrize("shift", [0, 1, 5, -3])
@pytest.mark.parametrize("count", [15, 16])
def test_a_shift_in_time_is_a_phase_in_frequency(count: int, shift: int) -> None:
    x = signal(count)
    phases = np.exp(-2j * np.pi * np.arange(count) * shift / count)
    shifted = jnp.fft.ifft(jnp.fft.fft(x) * phases)
    np.testing.assert_allclose(shifted, np.roll(x, shift), atol=ROUNDING)


def test_a_product_of_spectra_is_a_circular_convolution() -> None:
    x, y = signal(9, seed=1), signal(9, seed=2)
    expected = [sum(x[k] * y[(j - k) % 9] for k in range(9)) for j in range(9)]
    convolved = jnp.fft.ifft(jnp.fft.fft(x) * jnp.fft.fft(y))
    np.testing.assert_allclose(convolved, expected, atol=ROUNDING)


@pytest.mark.parametrize("count", [7, 8])
def test_frequencies_and_their_shifts_match_numpy(count: int) -> None:
    frequencies = jnp.fft.fftfreq(count, d=0.25)
    np.testing.assert_array_equal(frequencies, np.fft.fftfreq(count, d=0.25))
    centred = jnp.fft.fftshift(frequencies)
    np.testing.assert_array_equal(centred, np.fft.fftshift(np.fft.fftfreq(count, d=0.25)))
    np.testing.assert_array_equal(jnp.fft.ifftshift(centred), frequencies)


@pytest.mark.parametrize(("count", "degree"), [(9, 4), (16, 7), (31, 15), (32, 15)])
def test_interpolation_is_exact_below_the_nyquist_frequency(count: int, degree: int) -> None:
    polynomial = TrigonometricPolynomial(degree)
    points = np.random.default_rng(3).uniform(0.0, 2.0 * np.pi, size=40)
    samples = jnp.asarray(polynomial(grid(count)))
    values = fourier.evaluate(samples, points)
    np.testing.assert_allclose(values, polynomial(points), atol=ROUNDING * 10)


@pytest.mark.parametrize("finer", [16, 17, 48, 64])
@pytest.mark.parametrize(("count", "degree"), [(15, 7), (16, 7)])
def test_resampling_is_exact_below_the_nyquist_frequency(
    count: int, degree: int, finer: int
) -> None:
    polynomial = TrigonometricPolynomial(degree)
    values = fourier.resample(jnp.asarray(polynomial(grid(count))), finer)
    np.testing.assert_allclose(values, polynomial(grid(finer)), atol=ROUNDING * 10)


@pytest.mark.parametrize("count", [9, 16])
def test_differentiation_is_exact_below_the_nyquist_frequency(count: int) -> None:
    polynomial = TrigonometricPolynomial((count - 1) // 2)
    slopes = fourier.differentiate(jnp.asarray(polynomial(grid(count))))
    np.testing.assert_allclose(slopes, polynomial.derivative(grid(count)), atol=ROUNDING * 100)


@pytest.mark.parametrize("distance", [0.0, 0.123, math.pi, -5.0])
@pytest.mark.parametrize("count", [9, 16])
def test_translation_by_any_distance_is_exact(count: int, distance: float) -> None:
    polynomial = TrigonometricPolynomial((count - 1) // 2)
    moved = fourier.translate(jnp.asarray(polynomial(grid(count))), distance)
    np.testing.assert_allclose(moved, polynomial(grid(count) - distance), atol=ROUNDING * 10)


@pytest.mark.parametrize("count", [9, 16])
def test_the_mean_square_of_samples_is_that_of_the_function(count: int) -> None:
    polynomial = TrigonometricPolynomial((count - 1) // 2)
    spectrum = jnp.fft.fft(polynomial(grid(count))) / count
    energy = float(jnp.sum(jnp.abs(spectrum) ** 2))
    assert energy == pytest.approx(polynomial.mean_square(), rel=ROUNDING)


@pytest.mark.parametrize(("frequency", "alias"), [(9, 3), (11, 1), (12, 0), (14, 2)])
def test_a_frequency_above_nyquist_appears_as_its_alias(frequency: int, alias: int) -> None:
    """On 12 points cos(f x) and cos((12 - f) x) are the same numbers."""
    samples = jnp.asarray(np.cos(frequency * grid(12)))
    points = np.linspace(0.1, 6.0, 17)
    values = fourier.evaluate(samples, points)
    np.testing.assert_allclose(values, np.cos(alias * points), atol=ROUNDING * 10)


def test_the_nyquist_mode_keeps_its_cosine_and_loses_its_sine() -> None:
    points = np.linspace(0.0, 6.0, 13)
    cosine = fourier.evaluate(jnp.asarray(np.cos(8 * grid(16))), points)
    np.testing.assert_allclose(cosine, np.cos(8 * points), atol=ROUNDING * 10)
    sine = fourier.evaluate(jnp.asarray(np.sin(8 * grid(16))), points)
    np.testing.assert_allclose(sine, np.zeros(13), atol=ROUNDING * 10)


def test_the_gradient_of_spectral_energy_follows_parseval() -> None:
    """The sum of |X_k|^2 is n times the sum of x_j^2."""
    x = signal(14)
    gradient = jax.grad(lambda v: jnp.sum(jnp.abs(jnp.fft.fft(v)) ** 2))(x)
    np.testing.assert_allclose(gradient, 2.0 * 14 * x, atol=ROUNDING * 100)


def test_the_slope_of_a_translation_matches_the_moving_function() -> None:
    polynomial = TrigonometricPolynomial(4)
    samples = jnp.asarray(polynomial(grid(9)))
    _, slope = jax.jvp(lambda d: fourier.translate(samples, d), (0.4,), (1.0,))
    np.testing.assert_allclose(slope, -polynomial.derivative(grid(9) - 0.4), atol=ROUNDING * 100)
    stencil = finite_differences.directional(lambda d: fourier.translate(samples, d), 0.4, 1.0)
    # The fifth derivative of a degree-4 polynomial is up to a few thousand: 4**5 * amplitude.
    np.testing.assert_allclose(slope, stencil, atol=10 * finite_differences.TOLERANCE)


def test_transforms_of_a_batch_are_transforms_of_its_rows() -> None:
    rows = signal(24).reshape(4, 6)
    batched = jax.jit(jax.vmap(jnp.fft.rfft))(rows)
    np.testing.assert_allclose(batched, np.fft.rfft(rows, axis=-1), atol=ROUNDING)


def test_single_precision_gives_single_precision_spectra() -> None:
    x = signal(64).astype(np.float32)
    spectrum = jnp.fft.fft(x)
    assert spectrum.dtype == np.complex64
    tolerance = 20 * float(np.finfo(np.float32).eps) * float(np.linalg.norm(x))
    np.testing.assert_allclose(spectrum, np.fft.fft(x.astype(np.float64)), atol=tolerance)
