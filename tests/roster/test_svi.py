"""Stochastic variational inference on models whose evidence and posterior are known.

Where the guide is the posterior, every single particle's ELBO is the log evidence: those tests
carry no Monte-Carlo error at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.infer import (
    ELBO,
    SVI,
    RenyiELBO,
    Trace_ELBO,
    TraceGraph_ELBO,
    TraceMeanField_ELBO,
    init_to_uniform,
)
from numpyro.infer.autoguide import (
    AutoDelta,
    AutoGuide,
    AutoLaplaceApproximation,
    AutoMultivariateNormal,
    AutoNormal,
)
from numpyro.optim import Adam

from tests.roster.support.compiled import compiled
from tests.roster.support.gaussian import LinearGaussian, make_linear_gaussian
from tests.roster.support.monte_carlo import Z_BOUND, z_score

Model = Callable[..., None]

SEED = 97
PARTICLES = 32_000


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def problem() -> LinearGaussian:
    return make_linear_gaussian(41)


def model(subsample: int | None = None) -> None:
    data = problem()
    weights = numpyro.sample("weights", dist.Normal(0.0, 2.0).expand([2]).to_event(1))
    with numpyro.plate("rows", len(data.response), subsample_size=subsample) as rows:
        location = jnp.asarray(data.design)[rows] @ weights
        numpyro.sample("y", dist.Normal(location, 0.5), obs=jnp.asarray(data.response)[rows])


def exact_guide() -> None:
    data = problem()
    numpyro.sample("weights", dist.MultivariateNormal(data.mean, data.covariance))


def factorised_scale() -> np.ndarray:
    """Deviations of the best factorised Gaussian (Bishop, equation 10.12)."""
    return 1.0 / np.sqrt(np.diag(problem().precision))


def factorised_guide() -> None:
    scales = factorised_scale()
    numpyro.sample("weights", dist.Normal(problem().mean, scales).to_event(1))


def gap_to_posterior(mean: np.ndarray, covariance: np.ndarray) -> float:
    """KL(N(mean, covariance) || posterior) in closed form."""
    data = problem()
    ratio, offset = data.precision @ covariance, mean - data.mean
    trace = np.trace(ratio) - len(mean) - np.linalg.slogdet(ratio)[1]
    return float(0.5 * (trace + offset @ data.precision @ offset))


def bounds(loss: ELBO, guide: Callable[[], None], count: int = PARTICLES) -> np.ndarray:
    """Return `count` independent estimates of the ELBO at the guide as it stands."""
    keys = jax.random.split(jax.random.key(SEED), count)

    def estimate(key: jax.Array) -> jax.Array:
        return -loss.loss(key, {}, model, guide)

    return np.asarray(compiled(jax.vmap(estimate), keys))


def fit(
    guide: AutoGuide, target: Model, steps: int, report: Callable[[dict[str, Any]], Any]
) -> Any:
    """Return `report(parameters)` after Adam with a step that falls a hundredfold on the way."""
    svi = SVI(target, guide, Adam(lambda step: 0.05 * 0.01 ** (step / steps)), Trace_ELBO())

    def whole(key: jax.Array) -> Any:
        return report(svi.run(key, steps, progress_bar=False).params)

    return compiled(whole, jax.random.key(SEED))


def gaussian_of(guide: AutoGuide) -> Callable[[dict[str, Any]], tuple[jax.Array, jax.Array]]:
    def report(params: dict[str, Any]) -> tuple[jax.Array, jax.Array]:
        posterior = guide.get_posterior(params)
        return posterior.mean, posterior.covariance_matrix

    return report


@pytest.mark.parametrize(
    "loss",
    [
        pytest.param(lambda: Trace_ELBO(num_particles=7), id="seven-particles"),
        pytest.param(lambda: TraceGraph_ELBO(), id="graph"),
        pytest.param(lambda: RenyiELBO(alpha=0.0, num_particles=5), id="importance-weighted"),
    ],
)
def test_exact_guide_bounds_the_evidence_without_error(loss: Callable[[], ELBO]) -> None:
    estimates = bounds(loss(), exact_guide, count=5)
    np.testing.assert_allclose(estimates, problem().log_evidence, rtol=1e-11)


@pytest.mark.parametrize(
    "loss",
    [
        pytest.param(lambda: Trace_ELBO(), id="sampled"),
        pytest.param(lambda: TraceMeanField_ELBO(), id="analytic-divergence"),
    ],
)
def test_factorised_guide_falls_short_by_its_divergence(loss: Callable[[], ELBO]) -> None:
    gap = gap_to_posterior(problem().mean, np.diag(factorised_scale() ** 2))
    estimates = bounds(loss(), factorised_guide)
    assert abs(z_score(estimates, problem().log_evidence - gap)) < Z_BOUND
    # The gap can be told from nothing with this many particles.
    assert z_score(estimates, problem().log_evidence) < -Z_BOUND


def test_importance_weighting_closes_most_of_the_gap() -> None:
    """Burda, Grosse and Salakhutdinov 2016: the bound rises with particles, never past log Z."""
    gap = gap_to_posterior(problem().mean, np.diag(factorised_scale() ** 2))
    estimates = bounds(RenyiELBO(alpha=0.0, num_particles=50), factorised_guide, count=400)
    assert z_score(estimates, problem().log_evidence - 0.5 * gap) > Z_BOUND
    assert z_score(estimates, problem().log_evidence) < Z_BOUND


def test_subsampled_plate_keeps_the_bound_unbiased() -> None:
    keys = jax.random.split(jax.random.key(SEED), 4_000)

    def estimate(key: jax.Array) -> jax.Array:
        return -Trace_ELBO().loss(key, {}, lambda: model(subsample=4), factorised_guide)

    gap = gap_to_posterior(problem().mean, np.diag(factorised_scale() ** 2))
    estimates = compiled(jax.vmap(estimate), keys)
    assert abs(z_score(estimates, problem().log_evidence - gap)) < Z_BOUND


def test_full_rank_guide_reaches_the_posterior() -> None:
    guide = AutoMultivariateNormal(model)
    divergence = gap_to_posterior(*fit(guide, model, 2_000, gaussian_of(guide)))
    # Steps of 5e-4 at the end leave a noise of that order in each of five parameters.
    assert divergence < 0.01


def test_factorised_guide_reaches_the_closed_form_optimum() -> None:
    params = fit(AutoNormal(model), model, 2_000, lambda params: params)
    offset = (params["weights_auto_loc"] - problem().mean) / factorised_scale()
    np.testing.assert_allclose(params["weights_auto_scale"], factorised_scale(), rtol=0.1)
    assert np.abs(offset).max() < 0.1


def test_laplace_guide_has_the_posterior_covariance() -> None:
    guide = AutoLaplaceApproximation(model)
    mean, covariance = fit(guide, model, 2_000, gaussian_of(guide))
    # The Hessian of a quadratic is the same everywhere; the mode is as good as the last steps.
    np.testing.assert_allclose(covariance, problem().covariance, rtol=1e-9)
    np.testing.assert_allclose(mean, problem().mean, atol=1e-3)


def rate_model() -> None:
    rate = numpyro.sample("rate", dist.Gamma(3.0, 0.5))
    with numpyro.plate("counts", 4):
        numpyro.sample("y", dist.Poisson(rate), obs=jnp.array([3, 1, 4, 1]))


def test_laplace_guide_works_over_the_logarithm_of_a_rate() -> None:
    """Over u = log r, Gamma(a, b) has its mode at log(a / b) with curvature a."""
    guide = AutoLaplaceApproximation(rate_model)
    mean, covariance = fit(guide, rate_model, 2_000, gaussian_of(guide))
    assert float(mean[0]) == pytest.approx(np.log(12.0 / 4.5), abs=1e-3)
    # The curvature moves with the mode: a relative error no larger than the mode's.
    assert float(covariance[0, 0]) == pytest.approx(1.0 / 12.0, rel=2e-3)


def test_delta_guide_reaches_the_mode_over_the_rate_itself() -> None:
    """A point estimate carries no Jacobian: the mode of Gamma(a, b) is (a - 1) / b."""
    guide = AutoDelta(rate_model, init_loc_fn=init_to_uniform)
    params = fit(guide, rate_model, 2_000, lambda params: params)
    assert float(params["rate_auto_loc"]) == pytest.approx(11.0 / 4.5, abs=3e-3)
