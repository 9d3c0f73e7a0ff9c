"""Prior and posterior prediction, and log likelihoods, of models with known marginals."""

from __future__ import annotations

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.infer import Predictive, log_likelihood
from scipy import stats

from tests.roster.support.compiled import compiled
from tests.roster.support.gaussian import LinearGaussian, make_linear_gaussian
from tests.roster.support.monte_carlo import Z_BOUND, z_score

SEED = 101
DRAWS = 5_000


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def problem() -> LinearGaussian:
    return make_linear_gaussian(51)


def regression(design: np.ndarray, response: np.ndarray | None = None) -> None:
    weights = numpyro.sample("weights", dist.Normal(0.0, 2.0).expand([2]).to_event(1))
    location = numpyro.deterministic("location", design @ weights)
    with numpyro.plate("rows", len(design)):
        numpyro.sample("y", dist.Normal(location, 0.5), obs=response)


def posterior_draws() -> dict[str, np.ndarray]:
    """Exact draws, so that no sampler stands between the reference and the prediction."""
    generator = np.random.default_rng(SEED)
    data = problem()
    return {"weights": generator.multivariate_normal(data.mean, data.covariance, size=DRAWS)}


def run(predictive: Predictive, *arguments: np.ndarray) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = compiled(
        lambda key: predictive(key, *arguments), jax.random.key(SEED)
    )
    return found


def test_prior_prediction_has_the_marginal_covariance() -> None:
    """y ~ N(0, s^2 X X' + t^2 I) for weights of deviation s and noise of deviation t."""
    design = problem().design[:3]
    draws = run(Predictive(regression, num_samples=DRAWS), design)["y"]
    covariance = 4.0 * design @ design.T + 0.25 * np.eye(3)
    for row in range(3):
        assert abs(z_score(draws[:, row], 0.0)) < Z_BOUND
        for column in range(row + 1):
            product = draws[:, row] * draws[:, column]
            assert abs(z_score(product, covariance[row, column])) < Z_BOUND


def test_posterior_prediction_has_the_closed_form_moments() -> None:
    """Bishop, equations 3.58 and 3.59: mean X m, variance diag(X S X') + t^2."""
    data = problem()
    fresh = np.array([[1.0, -0.5], [3.0, 2.0]])
    draws = run(Predictive(regression, posterior_draws()), fresh)["y"]
    mean = fresh @ data.mean
    variance = np.diag(fresh @ data.covariance @ fresh.T) + 0.25
    for row in range(2):
        assert abs(z_score(draws[:, row], mean[row])) < Z_BOUND
        assert abs(z_score((draws[:, row] - mean[row]) ** 2, variance[row])) < Z_BOUND


def test_deterministic_site_follows_its_own_draw() -> None:
    samples = {"weights": posterior_draws()["weights"][:10]}
    design = problem().design
    found = run(Predictive(regression, samples, return_sites=["location"]), design)
    assert set(found) == {"location"}
    np.testing.assert_allclose(found["location"], samples["weights"] @ design.T, rtol=1e-12)


def test_shapes_carry_chains_draws_and_plates() -> None:
    samples = {"weights": np.zeros((2, 5, 2))}
    found = run(Predictive(regression, samples, batch_ndims=2), problem().design)
    assert found["y"].shape == (2, 5, 12)
    assert found["location"].shape == (2, 5, 12)


def test_prior_draws_include_every_latent_site() -> None:
    found = run(Predictive(regression, num_samples=6), problem().design)
    assert {name: value.shape for name, value in found.items()} == {
        "weights": (6, 2),
        "location": (6, 12),
        "y": (6, 12),
    }


def test_same_key_same_prediction_and_other_key_other() -> None:
    predictive = Predictive(regression, num_samples=3)

    def draw(key: jax.Array) -> jax.Array:
        return predictive(key, problem().design)["y"]

    first, again, other = (compiled(draw, jax.random.key(seed)) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.any(first == other)


def test_prediction_through_a_guide_uses_its_parameters() -> None:
    def guide(design: np.ndarray, response: np.ndarray | None = None) -> None:
        centre = numpyro.param("centre", jnp.zeros(2))
        numpyro.sample("weights", dist.Delta(centre, event_dim=1))

    params = {"centre": np.array([0.5, -2.0])}
    predictive = Predictive(regression, guide=guide, params=params, num_samples=4)
    found = run(predictive, problem().design)["location"]
    expected = problem().design @ params["centre"]
    np.testing.assert_allclose(found, np.tile(expected, (4, 1)), rtol=1e-12)


def test_observing_a_mixture_leaves_its_label_at_the_prior() -> None:
    """Prediction runs the model forward; Bayes' rule enters through the likelihood of a label."""

    def mixture(value: float) -> None:
        label = numpyro.sample("label", dist.Categorical(probs=jnp.array([0.3, 0.7])))
        numpyro.sample("x", dist.Normal(jnp.array([0.0, 1.0])[label], 0.8), obs=value)

    labels = run(Predictive(mixture, num_samples=DRAWS), np.array(0.2))["label"]
    assert abs(z_score(labels, 0.7)) < Z_BOUND
    grid = {"label": np.array([0, 1])}
    likelihood = compiled(lambda labels: log_likelihood(mixture, labels, 0.2)["x"], grid)
    expected = stats.norm(np.array([0.0, 1.0]), 0.8).logpdf(0.2)
    np.testing.assert_allclose(likelihood, expected, rtol=1e-12)


def test_log_likelihood_agrees_with_scipy_point_by_point() -> None:
    data = problem()
    samples = {"weights": posterior_draws()["weights"][:7]}

    def pointwise(values: dict[str, jax.Array]) -> jax.Array:
        return log_likelihood(regression, values, data.design, data.response)["y"]

    locations = samples["weights"] @ data.design.T
    expected = stats.norm(locations, 0.5).logpdf(data.response)
    np.testing.assert_allclose(compiled(pointwise, samples), expected, rtol=1e-11, atol=1e-11)


def test_log_likelihood_reports_observed_sites_only() -> None:
    def two_sites() -> None:
        centre = numpyro.sample("centre", dist.Normal(0.0, 1.0))
        numpyro.sample("first", dist.Normal(centre, 1.0), obs=0.5)
        numpyro.sample("second", dist.Normal(centre, 2.0))

    samples = {"centre": np.zeros(3), "second": np.ones(3)}
    found = compiled(lambda values: log_likelihood(two_sites, values), samples)
    assert set(found) == {"first"}
    np.testing.assert_allclose(found["first"], stats.norm.logpdf(0.5), rtol=1e-12)


def test_masked_points_have_no_likelihood() -> None:
    mask, values = np.array([True, False, True]), np.array([0.5, np.nan, -0.2])

    def masked() -> None:
        centre = numpyro.sample("centre", dist.Normal(0.0, 1.0))
        with numpyro.plate("points", 3), numpyro.handlers.mask(mask=mask):
            numpyro.sample("x", dist.Normal(centre, 1.0), obs=np.where(mask, values, 0.0))

    samples = {"centre": np.array([0.0, 1.0])}
    found = compiled(lambda values: log_likelihood(masked, values)["x"], samples)
    expected = stats.norm(samples["centre"][:, None]).logpdf(np.where(mask, values, 0.0)) * mask
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_expected_log_predictive_density_has_its_closed_form() -> None:
    """The log of the mean likelihood over the posterior is a normal log density (Bishop 3.58)."""
    data = problem()
    row, target = np.array([[1.0, -0.5]]), np.array([1.3])
    samples = posterior_draws()

    def pointwise(values: dict[str, jax.Array]) -> jax.Array:
        return log_likelihood(regression, values, row, target)["y"][:, 0]

    densities = np.exp(compiled(pointwise, samples))
    variance = (row @ data.covariance @ row.T)[0, 0] + 0.25
    expected = stats.norm((row @ data.mean)[0], np.sqrt(variance)).pdf(1.3)
    assert abs(z_score(densities, expected)) < Z_BOUND
