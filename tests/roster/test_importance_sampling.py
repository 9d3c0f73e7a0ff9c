"""Importance sampling: unbiased when scored under the matrix that was drawn from, biased if not.

Weights are exp(log target - log proposal) with a Gaussian target that integrates to one, so the
evidence is one and every moment of the weights is a Gaussian integral with a closed form.
"""

from __future__ import annotations

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from jax.scipy.special import logsumexp
from numpyro.infer import psis_diagnostic

from tests.roster.support.importance import (
    draw_proposal,
    gaussian_log_density,
    kish_effective_size,
    log_gaussian_product_integral,
    log_mean_weight,
    normalised_weights,
)
from tests.roster.support.monte_carlo import Z_BOUND

SEED = 20
COUNT = 40_000
JITTER = 0.25


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def kernel(size: int, length: float) -> np.ndarray:
    """Squared-exponential covariance on a grid: smooth, and so nearly singular when long."""
    grid = np.arange(size, dtype=float)
    return np.exp(-0.5 * ((grid[:, None] - grid) / length) ** 2)


def rotated_covariance() -> np.ndarray:
    """A covariance with eigenvalues 1, 1.2 and 3 in general position."""
    basis, _ = np.linalg.qr(np.random.default_rng(3).normal(size=(3, 3)))
    return basis @ np.diag([1.0, 1.2, 3.0]) @ basis.T


def weights_under(scored: np.ndarray, target: np.ndarray, seed: int = SEED) -> np.ndarray:
    """Weights of jittered draws from `rotated_covariance()`, scored under `scored`."""
    draws, _ = draw_proposal(jax.random.key(seed), jnp.asarray(rotated_covariance()), JITTER, COUNT)
    log_weights = gaussian_log_density(draws, target) - gaussian_log_density(draws, scored)
    return np.asarray(jnp.exp(log_weights))


def expected_weight(scored: np.ndarray, drawn: np.ndarray, target: np.ndarray) -> float:
    return float(np.exp(log_gaussian_product_integral([drawn, target, scored], [1, 1, -1])))


def expected_square(scored: np.ndarray, drawn: np.ndarray, target: np.ndarray) -> float:
    return float(np.exp(log_gaussian_product_integral([drawn, target, scored], [1, 2, -2])))


def exact_standard_error(scored: np.ndarray, drawn: np.ndarray, target: np.ndarray) -> float:
    mean = expected_weight(scored, drawn, target)
    return float(np.sqrt((expected_square(scored, drawn, target) - mean**2) / COUNT))


def test_proposal_is_drawn_from_the_matrix_it_reports() -> None:
    draws, used = draw_proposal(
        jax.random.key(SEED), jnp.asarray(rotated_covariance()), JITTER, COUNT
    )
    np.testing.assert_allclose(used, rotated_covariance() + JITTER * np.eye(3), rtol=1e-15)
    used = np.asarray(used)
    spread = np.asarray(draws.T @ draws) / COUNT
    # Isserlis: var(x_i x_j) = s_ii s_jj + s_ij^2.
    error = np.sqrt((np.outer(np.diag(used), np.diag(used)) + used**2) / COUNT)
    assert np.abs((spread - used) / error).max() < Z_BOUND


def test_scoring_under_the_drawn_matrix_is_unbiased() -> None:
    drawn = rotated_covariance() + JITTER * np.eye(3)
    target = rotated_covariance() + 0.5 * JITTER * np.eye(3)
    weights = weights_under(drawn, target)
    assert expected_weight(drawn, drawn, target) == pytest.approx(1.0, rel=1e-12)
    assert abs(weights.mean() - 1.0) < Z_BOUND * exact_standard_error(drawn, drawn, target)


def test_scoring_under_the_unjittered_matrix_is_biased_by_the_closed_form() -> None:
    plain = rotated_covariance()
    drawn = plain + JITTER * np.eye(3)
    target = plain + 0.5 * JITTER * np.eye(3)
    weights = weights_under(plain, target)
    bias = expected_weight(plain, drawn, target) - 1.0
    error = exact_standard_error(plain, drawn, target)
    assert abs(weights.mean() - 1.0 - bias) < Z_BOUND * error
    # The bias is no noise: it is many times the error of this very estimate.
    assert bias > 3 * Z_BOUND * error


def test_more_draws_do_not_mend_the_wrong_scoring() -> None:
    plain = rotated_covariance()
    drawn = plain + JITTER * np.eye(3)
    target = plain + 0.5 * JITTER * np.eye(3)
    pooled = np.concatenate([weights_under(plain, target, SEED + i) for i in range(4)])
    error = exact_standard_error(plain, drawn, target) / 2.0
    assert pooled.mean() - 1.0 > 6 * Z_BOUND * error


def test_near_singular_matrix_makes_the_wrong_scoring_off_by_a_divergence() -> None:
    """A smooth kernel needs its jitter, and the directions it props up dominate the density.

    The mean error of a log weight is KL(drawn || scored), with tr(M) - d - log det M = 2 KL and
    variance tr((M - I)^2) / 2 for M = scored^-1 drawn.
    """
    plain = kernel(5, 4.0)
    drawn = plain + 1e-3 * np.eye(5)
    draws, used = draw_proposal(jax.random.key(SEED), jnp.asarray(plain), 1e-3, COUNT)
    log_target = gaussian_log_density(draws, jnp.asarray(0.8 * drawn))
    right = np.asarray(log_target - gaussian_log_density(draws, used))
    wrong = np.asarray(log_target - gaussian_log_density(draws, jnp.asarray(plain)))
    error = exact_standard_error(drawn, drawn, 0.8 * drawn)
    assert abs(np.exp(right).mean() - 1.0) < Z_BOUND * error
    ratio = np.linalg.solve(plain, drawn)
    divergence = 0.5 * (np.trace(ratio) - 5.0 - np.linalg.slogdet(ratio)[1])
    excess = ratio - np.eye(5)
    error = np.sqrt(0.5 * np.trace(excess @ excess) / COUNT)
    assert divergence > 50.0
    assert abs((wrong - right).mean() - divergence) < Z_BOUND * error


def test_without_jitter_the_matrix_is_left_alone() -> None:
    _, used = draw_proposal(jax.random.key(SEED), jnp.asarray(rotated_covariance()), 0.0, 10)
    np.testing.assert_array_equal(used, rotated_covariance())


def test_density_agrees_with_numpyro() -> None:
    covariance = rotated_covariance()
    draws, _ = draw_proposal(jax.random.key(SEED), jnp.asarray(covariance), JITTER, COUNT)

    @jax.jit
    def reference(points: jax.Array) -> jax.Array:
        return dist.MultivariateNormal(np.zeros(3), covariance).log_prob(points)

    expected = reference(draws)
    np.testing.assert_allclose(gaussian_log_density(draws, covariance), expected, rtol=1e-12)


@pytest.mark.parametrize("width", [1.2, 1.5, 2.0])
def test_effective_size_tends_to_the_closed_form(width: float) -> None:
    """ESS / n tends to E[w]^2 / E[w^2], here for a standard normal under a wider proposal."""
    drawn, target = np.array([[width**2]]), np.eye(1)
    draws, used = draw_proposal(jax.random.key(SEED), jnp.asarray(drawn), 0.0, COUNT)
    log_weights = gaussian_log_density(draws, target) - gaussian_log_density(draws, used)
    share = float(kish_effective_size(log_weights)) / COUNT
    # Weights lie in (0, width], so a delta-method error is below 3 width^2 / sqrt(n).
    bound = Z_BOUND * 3.0 * width**2 / np.sqrt(COUNT)
    assert share == pytest.approx(1.0 / expected_square(drawn, drawn, target), abs=bound)


@pytest.mark.parametrize(
    ("log_weights", "expected"),
    [
        pytest.param([0.0] * 8, 8.0, id="equal"),
        pytest.param([0.0] + [-np.inf] * 7, 1.0, id="one-alive"),
        pytest.param([0.0] * 4 + [-np.inf] * 4, 4.0, id="half-alive"),
        pytest.param(list(np.log([3.0, 1.0])), 1.6, id="three-to-one"),
    ],
)
def test_effective_size_of_known_weights(log_weights: list[float], expected: float) -> None:
    size = float(kish_effective_size(jnp.array(log_weights)))
    assert size == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("shift", [-2.0e4, -800.0, 800.0, 2.0e4])
def test_shifted_log_weights_neither_overflow_nor_change(shift: float) -> None:
    log_weights = jnp.linspace(-3.0, 2.0, 7)
    moved = log_weights + shift
    # A shift rounds each log weight to the spacing of floats near it, relative to the weight.
    tolerance = 4.0 * float(np.spacing(abs(shift) + 3.0))
    np.testing.assert_allclose(
        normalised_weights(moved), normalised_weights(log_weights), rtol=tolerance
    )
    gain = float(log_mean_weight(moved) - log_mean_weight(log_weights))
    assert gain == pytest.approx(shift, rel=1e-13)
    assert float(kish_effective_size(moved)) == pytest.approx(
        float(kish_effective_size(log_weights)), rel=10.0 * tolerance
    )


def test_naive_exponentials_underflow_where_the_stable_form_does_not() -> None:
    log_weights = jnp.full(5, -800.0)
    assert float(jnp.mean(jnp.exp(log_weights))) == 0.0
    assert float(log_mean_weight(log_weights)) == pytest.approx(-800.0, rel=1e-14)


def test_gradient_of_logsumexp_is_the_normalised_weight() -> None:
    log_weights = jnp.array([1.0e4, 1.0e4 - 1.0, -jnp.inf])
    gradient = jax.grad(logsumexp)(log_weights)
    expected = np.array([1.0, np.exp(-1.0), 0.0]) / (1.0 + np.exp(-1.0))
    np.testing.assert_allclose(gradient, expected, rtol=1e-11)


def test_self_normalised_moment_is_within_its_error() -> None:
    draws, used = draw_proposal(jax.random.key(SEED), jnp.array([[4.0]]), 0.0, COUNT)
    log_weights = gaussian_log_density(draws, jnp.eye(1)) - gaussian_log_density(draws, used)
    weights, squares = np.asarray(normalised_weights(log_weights)), np.asarray(draws[:, 0]) ** 2
    estimate = float(weights @ squares)
    # Owen, Monte Carlo theory (2013), equation 9.9: the delta-method error of the ratio.
    error = np.sqrt(np.sum(weights**2 * (squares - estimate) ** 2))
    assert abs(estimate - 1.0) < Z_BOUND * error


def test_pareto_diagnostic_tells_a_wide_from_a_narrow_proposal() -> None:
    def model() -> None:
        numpyro.sample("x", dist.Normal(0.0, 1.0))

    def guide(scale: float) -> None:
        numpyro.sample("x", dist.Normal(0.0, scale))

    def khat(scale: float) -> float:
        key = jax.random.key(SEED)
        return psis_diagnostic(key, {}, model, lambda: guide(scale), num_particles=100_000)

    # The variance of the weights is finite below 1/2. Under the wide proposal they are bounded, a
    # negative index. Under the narrow one the index tends to 1 - 0.1^2; at the fitted tail, 2.6
    # deviations out, it is near 0.85 with a fit error of 1.85 / sqrt(949 weights) = 0.06.
    assert khat(1.5) < 0.5
    assert khat(0.1) > 0.5
