"""The no-U-turn sampler on posteriors that are known, with tolerances from its own draws.

Every comparison is in Monte-Carlo standard errors with the correlation of the chain counted, so
the tests hold for any seed and for any order of the floating-point sums.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.infer import MCMC, NUTS
from scipy import stats

from tests.roster.support.gaussian import make_linear_gaussian
from tests.roster.support.monte_carlo import Z_BOUND, effective_sample_size, z_score

SEED = 83
WARMUP = 500
DRAWS = 1_500
QUANTILES = (0.05, 0.5, 0.95)


@dataclass(frozen=True, kw_only=True)
class Run:
    """Draws by site, and the sampler's own account of them."""

    draws: dict[str, np.ndarray]
    diverging: np.ndarray
    acceptance: np.ndarray
    steps: np.ndarray


def sample(
    model: Callable[..., Any], *arguments: Any, draws: int = DRAWS, chains: int = 1, **kernel: Any
) -> Run:
    with jax.enable_x64(True):
        mcmc = MCMC(
            NUTS(model, **kernel),
            num_warmup=WARMUP,
            num_samples=draws,
            num_chains=chains,
            chain_method="vectorized",
            progress_bar=False,
        )
        fields = ("diverging", "accept_prob", "num_steps")
        mcmc.run(jax.random.key(SEED), *arguments, extra_fields=fields)
        values = jax.tree.map(np.asarray, mcmc.get_samples(group_by_chain=True))
        extra = jax.tree.map(np.asarray, mcmc.get_extra_fields())
    return Run(
        draws=values,
        diverging=extra["diverging"],
        acceptance=extra["accept_prob"],
        steps=extra["num_steps"],
    )


def regression(design: np.ndarray, response: np.ndarray) -> None:
    weights = numpyro.sample("weights", dist.Normal(0.0, 2.0).expand([2]).to_event(1))
    with numpyro.plate("rows", len(response)):
        numpyro.sample("y", dist.Normal(design @ weights, 0.5), obs=response)


def counting(counts: np.ndarray) -> None:
    rate = numpyro.sample("rate", dist.Gamma(2.0, 0.5))
    with numpyro.plate("counts", len(counts)):
        numpyro.sample("y", dist.Poisson(rate), obs=counts)


def ridge(covariance: np.ndarray) -> None:
    numpyro.sample("x", dist.MultivariateNormal(np.zeros(3), covariance_matrix=covariance))


def counts() -> np.ndarray:
    return np.array([3, 1, 4, 1, 5, 9, 2, 6])


def ridge_covariance() -> np.ndarray:
    """Standard deviations 0.1, 1 and 10, with a correlation of 0.9 between neighbours."""
    deviations = np.array([0.1, 1.0, 10.0])
    correlation = 0.9 ** np.abs(np.subtract.outer(np.arange(3), np.arange(3)))
    return correlation * np.outer(deviations, deviations)


@pytest.fixture(scope="module")
def regression_run() -> Run:
    problem = make_linear_gaussian(31)
    return sample(regression, problem.design, problem.response)


@pytest.fixture(scope="module")
def counting_run() -> Run:
    return sample(counting, counts())


@pytest.fixture(scope="module")
def ridge_run() -> Run:
    return sample(ridge, ridge_covariance(), dense_mass=True)


@pytest.mark.parametrize("index", [0, 1])
def test_regression_posterior_has_its_mean_and_variance(regression_run: Run, index: int) -> None:
    problem = make_linear_gaussian(31)
    draws = regression_run.draws["weights"][..., index]
    mean, variance = problem.mean[index], problem.covariance[index, index]
    assert abs(z_score(draws, mean)) < Z_BOUND
    assert abs(z_score((draws - mean) ** 2, variance)) < Z_BOUND


def test_regression_posterior_has_its_covariance(regression_run: Run) -> None:
    problem = make_linear_gaussian(31)
    centred = regression_run.draws["weights"] - problem.mean
    product = centred[..., 0] * centred[..., 1]
    assert abs(z_score(product, problem.covariance[0, 1])) < Z_BOUND
    # The columns are correlated, so leaving the covariance out would be seen.
    assert abs(z_score(product, 0.0)) > 2 * Z_BOUND


def test_rate_posterior_has_the_conjugate_moments(counting_run: Run) -> None:
    posterior = stats.gamma(2.0 + counts().sum(), scale=1.0 / (0.5 + len(counts())))
    draws = counting_run.draws["rate"]
    assert abs(z_score(draws, posterior.mean())) < Z_BOUND
    assert abs(z_score((draws - posterior.mean()) ** 2, posterior.var())) < Z_BOUND


@pytest.mark.parametrize("probability", QUANTILES)
def test_rate_posterior_has_the_conjugate_quantiles(counting_run: Run, probability: float) -> None:
    posterior = stats.gamma(2.0 + counts().sum(), scale=1.0 / (0.5 + len(counts())))
    below = counting_run.draws["rate"] < posterior.ppf(probability)
    assert abs(z_score(below, probability)) < Z_BOUND


@pytest.mark.parametrize("index", [0, 1, 2])
def test_dense_mass_copes_with_a_hundredfold_range_of_scales(ridge_run: Run, index: int) -> None:
    draws = ridge_run.draws["x"][..., index]
    assert abs(z_score(draws, 0.0)) < Z_BOUND
    assert abs(z_score(draws**2, ridge_covariance()[index, index])) < Z_BOUND


def test_dense_mass_needs_few_steps_on_a_ridge(ridge_run: Run) -> None:
    """Whitened, three dimensions take 3 or 7 leapfrog steps; unwhitened, hundreds."""
    assert np.median(ridge_run.steps) <= 15


@pytest.mark.parametrize("name", ["regression_run", "counting_run", "ridge_run"])
def test_nothing_diverges_and_acceptance_meets_its_target(
    name: str, request: pytest.FixtureRequest
) -> None:
    run: Run = request.getfixturevalue(name)
    assert not run.diverging.any()
    # The target is 0.8; a step size is tuned on a finite warm-up and errs on the small side.
    assert 0.7 < run.acceptance.mean() < 0.99


@pytest.mark.parametrize(("name", "site"), [("regression_run", "weights"), ("ridge_run", "x")])
def test_draws_are_worth_a_good_share_of_their_number(
    name: str, site: str, request: pytest.FixtureRequest
) -> None:
    run: Run = request.getfixturevalue(name)
    sizes = [effective_sample_size(column) for column in np.moveaxis(run.draws[site], -1, 0)]
    assert min(sizes) > 0.1 * DRAWS


@pytest.mark.excluded(
    "expensive",
    reason="four chains of 60 000 draws each, to see the tails of a Student t",
    owner="@jax-gate/maintainers",
    review_by="2027-06-01",
)
def test_long_chains_reach_into_the_tails() -> None:
    def model() -> None:
        numpyro.sample("x", dist.StudentT(4.0, 0.0, 1.0))

    run = sample(model, draws=60_000, chains=4)
    reference = stats.t(4.0)
    for probability in (1e-3, 0.01, 0.1, 0.9, 0.99, 0.999):
        below = run.draws["x"] < reference.ppf(probability)
        assert abs(z_score(below, probability)) < Z_BOUND
