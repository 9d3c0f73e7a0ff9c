"""Distribution functions, their inverses and draws of continuous NumPyro distributions."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import stats

from tests.roster.support.compiled import compiled, log_prob
from tests.roster.support.distribution_cases import CASES, CLOSE, PROBABILITIES

SEED = 31


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize(
    "name",
    [
        *("normal", "log-normal", "exponential", "cauchy", "half-cauchy", "half-normal"),
        *("laplace", "asymmetric-laplace", "soft-laplace", "logistic", "gumbel", "uniform"),
        *("log-uniform", "pareto", "gompertz", "dagum", "levy", "truncated-normal"),
        *("power-law", "truncated-power-law"),
        pytest.param(
            "gamma",
            marks=pytest.mark.excluded(
                "optional",
                reason="its inverse comes from a package that has no release for this jax yet",
                owner="@jax-gate/maintainers",
                review_by="2027-06-01",
                needs=["tensorflow_probability"],
            ),
        ),
        pytest.param(
            "beta",
            marks=pytest.mark.excluded(
                "optional",
                reason="its inverse comes from a package that has no release for this jax yet",
                owner="@jax-gate/maintainers",
                review_by="2027-06-01",
                needs=["tensorflow_probability"],
            ),
        ),
    ],
)
def test_cdf_and_icdf_agree_with_scipy(name: str) -> None:
    points = CASES[name].scipy().ppf(PROBABILITIES)

    def both(points: jax.Array, probabilities: jax.Array) -> tuple[jax.Array, jax.Array]:
        distribution = CASES[name].numpyro()
        return distribution.cdf(points), distribution.icdf(probabilities)

    probabilities, quantiles = compiled(both, points, PROBABILITIES)
    np.testing.assert_allclose(probabilities, PROBABILITIES, **CLOSE)
    np.testing.assert_allclose(quantiles, points, **CLOSE)


@pytest.mark.parametrize(
    "name", ["gamma", "chi-squared", "inverse-gamma", "beta", "student-t", "weibull"]
)
def test_cdf_agrees_with_scipy(name: str) -> None:
    reference = CASES[name].scipy()
    points = reference.ppf(PROBABILITIES)
    probabilities = compiled(lambda x: CASES[name].numpyro().cdf(x), points)
    np.testing.assert_allclose(probabilities, reference.cdf(points), **CLOSE)


def test_normal_log_cdf_does_not_underflow() -> None:
    points = np.array([-40.0, -10.0, -1.0, 0.0, 3.0])
    log_cdf = compiled(lambda x: dist.Normal(0.0, 1.0).log_cdf(x), points)
    np.testing.assert_allclose(log_cdf, stats.norm.logcdf(points), rtol=1e-11)


@pytest.mark.parametrize(
    "name",
    [
        *("normal", "log-normal", "gamma", "cauchy", "asymmetric-laplace", "weibull"),
        *("gumbel", "gompertz", "truncated-normal", "truncated-power-law", "levy"),
    ],
)
def test_samples_follow_the_scipy_distribution(name: str) -> None:
    key = jax.random.key(SEED)
    draws = compiled(lambda key: CASES[name].numpyro().sample(key, (4_000,)), key)
    # A right sampler falls below once in a million seeds, as five standard errors would.
    assert stats.kstest(draws, CASES[name].scipy().cdf).pvalue > 1e-6


def test_right_censoring_replaces_the_density_by_the_survival_function() -> None:
    times, censored = np.array([0.3, 1.0, 2.5, 4.0]), np.array([0, 1, 0, 1])
    reference = stats.weibull_min(2.2, scale=1.5)
    density = log_prob(
        lambda: dist.RightCensoredDistribution(dist.Weibull(1.5, 2.2), censored), times
    )
    expected = np.where(censored == 1, reference.logsf(times), reference.logpdf(times))
    np.testing.assert_allclose(density, expected, **CLOSE)


def test_left_censoring_replaces_the_density_by_the_cdf() -> None:
    points, censored = np.array([-3.0, 0.0, 1.0, 4.0]), np.array([1, 0, 1, 0])
    reference = stats.norm(1.0, 2.0)
    density = log_prob(
        lambda: dist.LeftCensoredDistribution(dist.Normal(1.0, 2.0), censored), points
    )
    expected = np.where(censored == 1, reference.logcdf(points), reference.logpdf(points))
    np.testing.assert_allclose(density, expected, **CLOSE)
