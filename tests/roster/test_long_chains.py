"""Simulation-based calibration: ranks of the truth among posterior draws must be uniform.

Talts et al. 2018 (arXiv:1804.06788): draw parameters from the prior, data from them, and a chain
from the posterior of those data; over many repetitions the rank of each parameter among
independent draws of its chain is uniform when, and only when, sampler and model agree.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.infer import MCMC, NUTS
from scipy import stats

from tests.roster.support.compiled import compiled
from tests.roster.support.monte_carlo import Z_BOUND, effective_sample_size, z_score

pytestmark = pytest.mark.excluded(
    "expensive",
    reason="three thousand chains for one calibration, then one of 150 000 draws",
    owner="@jax-gate/maintainers",
    review_by="2027-06-01",
)

SEED = 113
REPETITIONS = 3_000
# Every 20th of 380 draws: 19 almost independent ones, and so 20 ranks from 0 to 19.
THINNING, KEPT, BINS = 20, 19, 10


def observations(values: jax.Array) -> None:
    centre = numpyro.sample("centre", dist.Normal(0.0, 1.0))
    spread = numpyro.sample("spread", dist.HalfNormal(1.0))
    with numpyro.plate("values", 8):
        numpyro.sample("x", dist.Normal(centre, spread), obs=values)


@pytest.fixture(scope="module")
def ranks() -> dict[str, np.ndarray]:
    """Rank of the truth in each repetition, from 0 to `KEPT`, by parameter."""
    generator = np.random.default_rng(SEED)
    truths = {
        "centre": generator.normal(size=REPETITIONS),
        "spread": np.abs(generator.normal(size=REPETITIONS)),
    }
    noise = generator.normal(size=(REPETITIONS, 8))
    data = truths["centre"][:, None] + truths["spread"][:, None] * noise

    def thinned_draws(inputs: tuple[jax.Array, jax.Array]) -> dict[str, jax.Array]:
        key, values = inputs
        mcmc = MCMC(
            NUTS(observations, target_accept_prob=0.95),
            num_warmup=500,
            num_samples=THINNING * KEPT,
            thinning=THINNING,
            progress_bar=False,
        )
        mcmc.run(key, values)
        draws: dict[str, jax.Array] = mcmc.get_samples()
        return draws

    with jax.enable_x64(True):
        keys = jax.random.split(jax.random.key(SEED), REPETITIONS)
        # One program for all repetitions: set-up and compilation are paid for once.
        draws = compiled(lambda *inputs: jax.lax.map(thinned_draws, inputs), keys, data)
    return {name: (draws[name] < truths[name][:, None]).sum(axis=1) for name in truths}


@pytest.mark.parametrize("name", ["centre", "spread"])
def test_ranks_of_the_truth_are_uniform(ranks: dict[str, np.ndarray], name: str) -> None:
    width = (KEPT + 1) // BINS
    counts = np.bincount(ranks[name] // width, minlength=BINS)
    assert counts.sum() == REPETITIONS
    assert stats.chisquare(counts).pvalue > 1e-6


@pytest.mark.parametrize("name", ["centre", "spread"])
def test_ranks_of_the_truth_are_centred(ranks: dict[str, np.ndarray], name: str) -> None:
    """A skewed histogram is a biased sampler: the mean of a uniform rank is known exactly."""
    error = np.sqrt(((KEPT + 1) ** 2 - 1) / 12.0 / REPETITIONS)
    assert abs(ranks[name].mean() - KEPT / 2.0) < Z_BOUND * error


def test_one_long_chain_resolves_a_funnel_once_it_is_non_centred() -> None:
    """Neal's funnel, log variance ~ N(0, 9): its neck defeats the centred form."""

    def funnel() -> None:
        log_variance = numpyro.sample("log_variance", dist.Normal(0.0, 3.0))
        raw = numpyro.sample("raw", dist.Normal(0.0, 1.0).expand([5]).to_event(1))
        numpyro.deterministic("x", jnp.exp(0.5 * log_variance) * raw)

    with jax.enable_x64(True):
        mcmc = MCMC(NUTS(funnel), num_warmup=1_000, num_samples=150_000, progress_bar=False)
        mcmc.run(jax.random.key(SEED), extra_fields=("diverging",))
        draws = {name: np.asarray(value) for name, value in mcmc.get_samples().items()}
        assert not np.asarray(mcmc.get_extra_fields()["diverging"]).any()
    for probability in (0.001, 0.01, 0.5, 0.99, 0.999):
        below = draws["log_variance"] < stats.norm(0.0, 3.0).ppf(probability)
        assert abs(z_score(below, probability)) < Z_BOUND
    assert effective_sample_size(draws["log_variance"]) > 15_000
    assert abs(z_score(draws["x"][:, 0] > 0, 0.5)) < Z_BOUND
