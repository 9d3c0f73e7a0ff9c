"""NumPyro distributions over vectors and matrices against SciPy and closed forms."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import jax
import numpy as np
import numpyro.distributions as dist
import pytest
from scipy import special, stats

from tests.roster.support.compiled import compiled, log_prob
from tests.roster.support.monte_carlo import Z_BOUND

SEED = 53
# Densities through a Cholesky factor of a matrix with a condition number under 10.
CLOSE = {"rtol": 1e-11, "atol": 1e-11}


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def covariance() -> np.ndarray:
    return np.array([[2.0, 0.6, -0.3], [0.6, 1.0, 0.2], [-0.3, 0.2, 1.5]])


def mean() -> np.ndarray:
    return np.array([0.5, -1.0, 2.0])


def points(count: int = 6) -> np.ndarray:
    return mean() + 2.0 * np.random.default_rng(1).normal(size=(count, 3))


@pytest.mark.parametrize(
    "build",
    [
        pytest.param(
            lambda: dist.MultivariateNormal(mean(), covariance_matrix=covariance()),
            id="covariance",
        ),
        pytest.param(
            lambda: dist.MultivariateNormal(mean(), precision_matrix=np.linalg.inv(covariance())),
            id="precision",
        ),
        pytest.param(
            lambda: dist.MultivariateNormal(mean(), scale_tril=np.linalg.cholesky(covariance())),
            id="cholesky",
        ),
    ],
)
def test_normal_agrees_with_scipy_in_each_parameterisation(
    build: Callable[[], dist.Distribution],
) -> None:
    def properties(value: jax.Array) -> tuple[jax.Array, ...]:
        normal = build()
        return normal.log_prob(value), normal.covariance_matrix, normal.entropy()

    density, matrix, entropy = compiled(properties, points())
    reference = stats.multivariate_normal(mean(), covariance())
    np.testing.assert_allclose(density, reference.logpdf(points()), **CLOSE)
    np.testing.assert_allclose(matrix, covariance(), **CLOSE)
    np.testing.assert_allclose(entropy, reference.entropy(), **CLOSE)


def test_low_rank_normal_is_the_dense_normal() -> None:
    factor, diagonal = np.array([[1.0], [-0.5], [2.0]]), np.array([0.3, 1.0, 0.7])
    dense = stats.multivariate_normal(mean(), factor @ factor.T + np.diag(diagonal))

    def properties(value: jax.Array) -> tuple[jax.Array, jax.Array]:
        low_rank = dist.LowRankMultivariateNormal(mean(), factor, diagonal)
        return low_rank.log_prob(value), low_rank.entropy()

    density, entropy = compiled(properties, points())
    np.testing.assert_allclose(density, dense.logpdf(points()), **CLOSE)
    np.testing.assert_allclose(entropy, dense.entropy(), **CLOSE)


def test_student_t_agrees_with_scipy() -> None:
    factor = np.linalg.cholesky(covariance())
    reference = stats.multivariate_t(mean(), covariance(), df=4.5)
    far = np.vstack([points(), mean() + 1e8])
    density = log_prob(lambda: dist.MultivariateStudentT(4.5, mean(), factor), far)
    np.testing.assert_allclose(density, reference.logpdf(far), **CLOSE)


def test_dirichlet_agrees_with_scipy() -> None:
    concentration = np.array([0.7, 2.0, 3.3])
    reference = stats.dirichlet(concentration)
    simplex = np.random.default_rng(2).dirichlet(np.ones(3), size=5)

    def properties(value: jax.Array) -> tuple[jax.Array, ...]:
        dirichlet = dist.Dirichlet(concentration)
        density, entropy = dirichlet.log_prob(value), dirichlet.entropy()
        return density, dirichlet.mean, dirichlet.variance, entropy

    density, centre, variance, entropy = compiled(properties, simplex)
    np.testing.assert_allclose(density, reference.logpdf(simplex.T), **CLOSE)
    np.testing.assert_allclose(centre, reference.mean(), **CLOSE)
    np.testing.assert_allclose(variance, reference.var(), **CLOSE)
    np.testing.assert_allclose(entropy, reference.entropy(), **CLOSE)


def test_wishart_agrees_with_scipy() -> None:
    value = covariance() @ covariance()

    def properties(value: jax.Array) -> tuple[jax.Array, jax.Array]:
        wishart = dist.Wishart(5.5, scale_matrix=covariance())
        return wishart.log_prob(value), wishart.mean

    density, centre = compiled(properties, value)
    np.testing.assert_allclose(density, stats.wishart(5.5, covariance()).logpdf(value), **CLOSE)
    np.testing.assert_allclose(centre, 5.5 * covariance(), **CLOSE)


def test_inverse_wishart_agrees_with_scipy() -> None:
    value = covariance() @ covariance()
    density = log_prob(lambda: dist.InverseWishart(5.5, scale_matrix=covariance()), value)
    np.testing.assert_allclose(density, stats.invwishart(5.5, covariance()).logpdf(value), **CLOSE)


def test_matrix_normal_is_a_kronecker_normal() -> None:
    """vec(X) ~ N(vec(M), V kron U) for columns stacked (Gupta and Nagar, theorem 2.2.1)."""
    rows, columns = covariance(), np.array([[1.0, 0.4], [0.4, 2.0]])
    location = np.arange(6.0).reshape(3, 2)
    value = location + np.random.default_rng(3).normal(size=(3, 2))
    factors = np.linalg.cholesky(rows), np.linalg.cholesky(columns)
    density = log_prob(lambda: dist.MatrixNormal(location, *factors), value)
    expected = stats.matrix_normal(location, rows, columns).logpdf(value)
    stacked = stats.multivariate_normal(location.T.ravel(), np.kron(columns, rows))
    np.testing.assert_allclose(density, expected, **CLOSE)
    np.testing.assert_allclose(expected, stacked.logpdf(value.T.ravel()), **CLOSE)


@pytest.mark.parametrize("concentration", [0.5, 1.0, 3.0])
def test_lkj_correlation_of_two_is_a_stretched_beta(concentration: float) -> None:
    """For dimension two (r + 1) / 2 ~ Beta(c, c) (Lewandowski, Kurowicka and Joe 2009)."""
    correlation = np.linspace(-0.9, 0.9, 5)
    matrices = np.array([[[1.0, r], [r, 1.0]] for r in correlation])
    density = log_prob(lambda: dist.LKJ(2, concentration), matrices)
    expected = stats.beta(concentration, concentration, loc=-1, scale=2).logpdf(correlation)
    np.testing.assert_allclose(density, expected, **CLOSE)


def test_gaussian_random_walk_is_a_normal_with_minimum_covariance() -> None:
    steps = np.arange(1.0, 6.0)
    reference = stats.multivariate_normal(np.zeros(5), 0.7**2 * np.minimum.outer(steps, steps))
    path = np.random.default_rng(4).normal(size=(3, 5)).cumsum(axis=1)
    density = log_prob(lambda: dist.GaussianRandomWalk(0.7, num_steps=5), path)
    np.testing.assert_allclose(density, reference.logpdf(path), **CLOSE)


def test_zero_sum_normal_has_the_centring_covariance() -> None:
    key = jax.random.key(SEED)
    draws = compiled(lambda key: dist.ZeroSumNormal(1.5, (4,)).sample(key, (20_000,)), key)
    np.testing.assert_allclose(draws.sum(axis=1), 0.0, atol=1e-12)
    expected = 1.5**2 * (np.eye(4) - 0.25)
    spread = draws.T @ draws / len(draws)
    error = np.sqrt((np.outer(np.diag(expected), np.diag(expected)) + expected**2) / len(draws))
    assert np.abs((spread - expected) / error).max() < Z_BOUND


def test_conditional_autoregression_is_a_normal_with_its_precision() -> None:
    """Precision tau (D - rho W) for adjacency W and degrees D (Besag 1974)."""
    adjacency = np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    precision = 1.7 * (np.diag(adjacency.sum(axis=1)) - 0.4 * adjacency)
    density = log_prob(lambda: dist.CAR(mean(), 0.4, 1.7, adjacency), points())
    expected = stats.multivariate_normal(mean(), np.linalg.inv(precision)).logpdf(points())
    np.testing.assert_allclose(density, expected, **CLOSE)


def test_circulant_normal_is_the_dense_normal() -> None:
    row = np.array([2.0, 0.5, 0.1, 0.1, 0.5])
    dense = np.array([np.roll(row, shift) for shift in range(5)])
    value = np.random.default_rng(5).normal(size=(4, 5))
    density = log_prob(lambda: dist.CirculantNormal(np.zeros(5), covariance_row=row), value)
    expected = stats.multivariate_normal(np.zeros(5), dense).logpdf(value)
    np.testing.assert_allclose(density, expected, **CLOSE)


def test_gaussian_copula_with_normal_margins_is_a_normal() -> None:
    scales = np.array([0.5, 2.0])
    correlation = np.array([[1.0, 0.6], [0.6, 1.0]])
    value = np.array([[0.1, -0.7], [0.4, 2.5]])
    density = log_prob(
        lambda: dist.GaussianCopula(dist.Normal(np.zeros(2), scales), correlation), value
    )
    reference = stats.multivariate_normal(np.zeros(2), correlation * np.outer(scales, scales))
    # The copula goes through a normal distribution function and back: errors near 1e-12.
    np.testing.assert_allclose(density, reference.logpdf(value), rtol=1e-9)


def test_independent_axes_add_their_log_densities() -> None:
    grid = np.linspace(-1.0, 1.0, 12).reshape(2, 2, 3)
    scales = np.array([[0.5, 1.0, 1.5], [2.0, 2.5, 3.0]])
    density = dist.Normal(0.0, scales).to_event(1).log_prob(grid)
    expected = stats.norm(0.0, scales).logpdf(grid).sum(axis=-1)
    np.testing.assert_allclose(density, expected, **CLOSE)


def test_normal_draws_have_its_covariance() -> None:
    size = 20_000
    draws = compiled(
        lambda key: dist.MultivariateNormal(mean(), covariance()).sample(key, (size,)),
        jax.random.key(SEED),
    )
    centred = draws - mean()
    error = np.sqrt(
        (np.outer(np.diag(covariance()), np.diag(covariance())) + covariance() ** 2) / size
    )
    assert np.abs((centred.T @ centred / size - covariance()) / error).max() < Z_BOUND
    z = centred.mean(axis=0) / np.sqrt(np.diag(covariance()) / size)
    assert np.abs(z).max() < Z_BOUND


def test_normal_divergence_has_its_closed_form() -> None:
    other = covariance() + np.diag([0.5, 1.0, 0.2])

    def divergence() -> jax.Array:
        p = dist.MultivariateNormal(mean(), covariance())
        return dist.kl_divergence(p, dist.MultivariateNormal(np.zeros(3), other))

    ratio = np.linalg.solve(other, covariance())
    expected = np.trace(ratio) - 3.0 - np.linalg.slogdet(ratio)[1]
    expected = 0.5 * (expected + mean() @ np.linalg.solve(other, mean()))
    np.testing.assert_allclose(compiled(divergence), expected, **CLOSE)


def test_dirichlet_divergence_has_its_closed_form() -> None:
    """The difference of log normalisers plus a digamma-weighted difference of parameters."""
    first, second = np.array([0.7, 2.0, 3.3]), np.array([1.5, 1.0, 0.5])

    def log_normaliser(concentration: np.ndarray) -> float:
        return float(special.gammaln(concentration).sum() - special.gammaln(concentration.sum()))

    expected_logs = special.digamma(first) - special.digamma(first.sum())
    expected = log_normaliser(second) - log_normaliser(first) + (first - second) @ expected_logs
    divergence = dist.kl_divergence(dist.Dirichlet(first), dist.Dirichlet(second))
    np.testing.assert_allclose(divergence, expected, **CLOSE)
