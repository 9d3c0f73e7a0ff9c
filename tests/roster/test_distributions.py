"""Densities and moments of continuous NumPyro distributions against SciPy, far tails included."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import special, stats

from tests.roster.support.compiled import compiled, log_prob, moments
from tests.roster.support.distribution_cases import CASES, CLOSE, PROBABILITIES


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def interior_points(reference: Any) -> np.ndarray:
    """Quantiles out to 1e-100 on both sides, less those that round to an end of the support."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SciPy's root finders give up on some of the tails.
        tails = [reference.ppf([1e-100, 1e-30]), reference.isf([1e-30, 1e-100])]
    points = np.concatenate([tails[0], reference.ppf(PROBABILITIES), tails[1]])
    low, high = reference.support()
    return points[(points > low) & (points < high)]


@pytest.mark.parametrize("name", CASES)
def test_log_prob_agrees_with_scipy_into_the_far_tails(name: str) -> None:
    reference = CASES[name].scipy()
    points = interior_points(reference)
    density = log_prob(CASES[name].numpyro, points)
    np.testing.assert_allclose(density, reference.logpdf(points), **CLOSE)


@pytest.mark.parametrize(
    "name",
    [
        *("normal", "log-normal", "exponential", "gamma", "chi-squared", "inverse-gamma", "beta"),
        *("beta-proportion", "student-t", "half-normal", "laplace", "asymmetric-laplace"),
        *("soft-laplace", "logistic", "gumbel", "uniform", "log-uniform", "pareto", "weibull"),
        *("dagum", "truncated-normal"),
    ],
)
def test_mean_and_variance_agree_with_scipy(name: str) -> None:
    mean, variance = moments(CASES[name].numpyro)
    np.testing.assert_allclose(mean, CASES[name].scipy().mean(), **CLOSE)
    np.testing.assert_allclose(variance, CASES[name].scipy().var(), **CLOSE)


@pytest.mark.parametrize("name", ["cauchy", "half-cauchy", "levy"])
def test_heavy_tails_own_up_to_having_no_moments(name: str) -> None:
    distribution = CASES[name].numpyro()
    assert not np.isfinite(distribution.mean)
    assert not np.isfinite(distribution.variance)


@pytest.mark.parametrize(
    "name", ["normal", "gamma", "inverse-gamma", "beta", "student-t", "pareto", "weibull"]
)
def test_entropy_agrees_with_scipy(name: str) -> None:
    expected = float(CASES[name].scipy().entropy())
    # SciPy integrates some of these numerically, to 1.5e-8 by default.
    entropy = compiled(lambda: CASES[name].numpyro().entropy())
    assert float(entropy) == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("low", [-8.0, -1.0, 2.0, 5.0, 20.0])
def test_truncated_normal_keeps_its_normaliser_far_out(low: float) -> None:
    points = low + np.array([0.01, 0.1, 1.0])
    density = log_prob(lambda: dist.TruncatedNormal(0.0, 1.0, low=low), points)
    np.testing.assert_allclose(density, stats.truncnorm(low, np.inf).logpdf(points), rtol=1e-10)


@pytest.mark.excluded(
    "broken",
    reason="the mass beyond 40 deviations underflows float64 before its logarithm is taken",
    owner="@jax-gate/maintainers",
    review_by="2027-06-01",
)
def test_truncated_normal_survives_forty_deviations() -> None:
    density = log_prob(lambda: dist.TruncatedNormal(0.0, 1.0, low=40.0), 40.5)
    expected = stats.truncnorm(40.0, np.inf).logpdf(40.5)
    np.testing.assert_allclose(density, expected, rtol=1e-10)


def test_von_mises_density_and_circular_moments() -> None:
    """Mardia and Jupp, Directional Statistics, 3.5.4: circular variance 1 - I1(k) / I0(k)."""
    distribution = dist.VonMises(0.5, 2.0)
    angles = np.linspace(-3.1, 3.1, 9)
    reference = stats.vonmises(2.0, 0.5)
    np.testing.assert_allclose(distribution.log_prob(angles), reference.logpdf(angles), rtol=1e-11)
    np.testing.assert_allclose(distribution.mean, 0.5, rtol=1e-14)
    expected = 1.0 - special.iv(1, 2.0) / special.iv(0, 2.0)
    np.testing.assert_allclose(distribution.variance, expected, rtol=1e-11)


def test_kumaraswamy_density_and_mean() -> None:
    """Jones, Statistical Methodology 6 (2009): mean b B(1 + 1/a, b)."""
    distribution = dist.Kumaraswamy(2.5, 3.5)
    points = np.linspace(0.02, 0.98, 9)
    expected = 2.5 * 3.5 * points**1.5 * (1.0 - points**2.5) ** 2.5
    np.testing.assert_allclose(distribution.log_prob(points), np.log(expected), **CLOSE)
    np.testing.assert_allclose(distribution.mean, 3.5 * special.beta(1.4, 3.5), rtol=1e-11)


def test_truncated_cauchy_divides_by_the_mass_that_is_left() -> None:
    reference = stats.cauchy(0.5, 2.0)
    mass = reference.cdf(3.0) - reference.cdf(-1.0)
    points = np.linspace(-0.9, 2.9, 7)
    density = log_prob(lambda: dist.TruncatedCauchy(0.5, 2.0, low=-1.0, high=3.0), points)
    np.testing.assert_allclose(density, reference.logpdf(points) - np.log(mass), **CLOSE)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param("normal", "laplace", id="normal-laplace"),
        pytest.param("exponential", "gamma", id="exponential-gamma"),
    ],
)
def test_mixture_density_is_the_weighted_sum(first: str, second: str) -> None:
    weights = np.array([0.3, 0.7])
    parts = [CASES[first], CASES[second]]
    mixture = dist.MixtureGeneral(
        dist.Categorical(probs=weights), [part.numpyro() for part in parts]
    )
    points = np.array([0.1, 0.9, 2.0, 5.0])
    densities = [part.scipy().logpdf(points) for part in parts]
    expected = special.logsumexp(densities, axis=0, b=weights[:, None])
    np.testing.assert_allclose(mixture.log_prob(points), expected, **CLOSE)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(lambda: dist.Normal(0.0, 1.0), lambda: dist.Normal(1.0, 2.0), id="normal"),
        pytest.param(lambda: dist.Gamma(2.0, 1.0), lambda: dist.Gamma(3.0, 2.0), id="gamma"),
        pytest.param(lambda: dist.Beta(2.0, 3.0), lambda: dist.Beta(4.0, 1.5), id="beta"),
    ],
)
def test_divergence_is_the_integral_of_the_log_ratio(
    first: Callable[[], dist.Distribution], second: Callable[[], dist.Distribution]
) -> None:
    low, high = {"Normal": (-20.0, 20.0), "Gamma": (1e-12, 60.0), "Beta": (0.0, 1.0)}[
        type(first()).__name__
    ]
    nodes, weights = np.polynomial.legendre.leggauss(400)
    points = 0.5 * (high - low) * (nodes + 1.0) + low
    log_p, log_q = log_prob(first, points), log_prob(second, points)
    integral = 0.5 * (high - low) * np.sum(weights * np.exp(log_p) * (log_p - log_q))
    # 400 nodes resolve these smooth integrands; the logarithm at an end costs about n^-4.
    divergence = compiled(lambda: dist.kl_divergence(first(), second()))
    np.testing.assert_allclose(divergence, integral, rtol=1e-6)
