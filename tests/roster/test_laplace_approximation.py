"""Laplace's method: exact for Gaussian posteriors, and wrong elsewhere by a known amount."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, optimize, special

from tests.roster.support.gaussian import LinearGaussian, make_linear_gaussian
from tests.roster.support.laplace import Laplace, approximate, find_mode

# Newton converges quadratically, so what is left is rounding through a few small linear solves.
EXACT = 1e-10


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def linear_log_joint(problem: LinearGaussian) -> Callable[[jax.Array], jax.Array]:
    def log_joint(weights: jax.Array) -> jax.Array:
        noise = jax.scipy.stats.norm.logpdf(
            problem.response, problem.design @ weights, problem.noise_scale
        )
        prior = jax.scipy.stats.norm.logpdf(weights, 0.0, problem.prior_scale)
        return noise.sum() + prior.sum()

    return log_joint


def logistic_data(rows: int = 30) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(7)
    design = np.column_stack([np.ones(rows), generator.normal(size=rows)])
    labels = (generator.random(rows) < special.expit(design @ [0.3, 1.2])).astype(float)
    return design, labels


def logistic_log_joint(weights: jax.Array) -> jax.Array:
    design, labels = logistic_data()
    logits = design @ weights
    return jnp.sum(labels * logits - jnp.logaddexp(0.0, logits)) - 0.5 * jnp.sum(weights**2)


@functools.cache
def linear_fit(columns: int) -> tuple[LinearGaussian, Laplace]:
    problem = make_linear_gaussian(11, columns=columns)
    return problem, approximate(linear_log_joint(problem), jnp.zeros(columns))


@functools.cache
def gamma_fit(shape: float) -> Laplace:
    return approximate(log_gamma_integrand(shape), jnp.zeros(1))


@functools.cache
def logistic_fit() -> Laplace:
    return approximate(logistic_log_joint, jnp.zeros(2))


def log_gamma_integrand(shape: float) -> Callable[[jax.Array], jax.Array]:
    """Return log of x^shape e^-x dx/x written over log x, whose integral is Gamma(shape)."""

    def log_density(point: jax.Array) -> jax.Array:
        return shape * point[0] - jnp.exp(point[0])

    return log_density


@pytest.mark.parametrize("columns", [1, 2, 4])
def test_gaussian_mode_and_precision_are_the_posterior(columns: int) -> None:
    problem, fit = linear_fit(columns)
    np.testing.assert_allclose(fit.mode, problem.mean, rtol=EXACT, atol=EXACT)
    np.testing.assert_allclose(fit.precision, problem.precision, rtol=EXACT, atol=EXACT)


@pytest.mark.parametrize("columns", [1, 2, 4])
def test_gaussian_evidence_is_exact(columns: int) -> None:
    problem, fit = linear_fit(columns)
    assert float(fit.log_evidence) == pytest.approx(problem.log_evidence, rel=EXACT)


def test_one_newton_step_solves_a_quadratic() -> None:
    problem = make_linear_gaussian(13, columns=3)
    log_joint = linear_log_joint(problem)
    mode = jax.jit(lambda start: find_mode(log_joint, start, steps=1))(jnp.full(3, 50.0))
    np.testing.assert_allclose(mode, problem.mean, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("shape", [1.0, 5.0, 40.0])
def test_gamma_integral_gives_stirlings_formula(shape: float) -> None:
    """Over log x the method is Stirling: Gamma(a) ~ sqrt(2 pi / a) (a / e)^a."""
    fit = gamma_fit(shape)
    stirling = 0.5 * np.log(2.0 * np.pi / shape) + shape * (np.log(shape) - 1.0)
    assert float(fit.mode[0]) == pytest.approx(np.log(shape), abs=EXACT)
    assert float(fit.log_evidence) == pytest.approx(stirling, abs=1e-9)


@pytest.mark.parametrize("shape", [5.0, 40.0])
def test_gamma_error_has_stirlings_bounds(shape: float) -> None:
    """1/(12a + 1) < log Gamma(a) - Stirling < 1/(12a) (Robbins 1955; Gamma(a) = a! / a)."""
    fit = gamma_fit(shape)
    error = special.gammaln(shape) - float(fit.log_evidence)
    assert 1.0 / (12.0 * shape + 1.0) < error < 1.0 / (12.0 * shape)


def test_logistic_mode_agrees_with_scipy() -> None:
    design, labels = logistic_data()

    def objective(weights: np.ndarray) -> float:
        logits = design @ weights
        return float(-(labels * logits - np.logaddexp(0, logits)).sum() + 0.5 * weights @ weights)

    fit = logistic_fit()
    reference = optimize.minimize(objective, np.zeros(2), method="BFGS", options={"gtol": 1e-7})
    # BFGS with finite differences resolves a minimum to about the square root of epsilon.
    np.testing.assert_allclose(fit.mode, reference.x, atol=1e-5)


def test_logistic_precision_is_the_weighted_gram_matrix() -> None:
    """X' diag(p (1 - p)) X + I, the Fisher information of logistic regression with its prior."""
    design, _ = logistic_data()
    fit = logistic_fit()
    rate = special.expit(design @ np.asarray(fit.mode))
    expected = design.T @ (design * (rate * (1.0 - rate))[:, None]) + np.eye(2)
    np.testing.assert_allclose(fit.precision, expected, rtol=EXACT)


def test_logistic_gradient_vanishes_at_the_mode() -> None:
    gradient = jax.jit(jax.grad(logistic_log_joint))(logistic_fit().mode)
    np.testing.assert_allclose(gradient, 0.0, atol=1e-9)


def test_logistic_evidence_is_near_the_quadrature() -> None:
    fit = logistic_fit()
    mode = np.asarray(fit.mode)
    design, labels = logistic_data()

    def integrand(second: float, first: float) -> float:
        weights = np.array([first, second])
        logits = design @ weights
        value = (labels * logits - np.logaddexp(0, logits)).sum() - 0.5 * weights @ weights
        return float(np.exp(value - float(fit.log_evidence)))

    # Eight standard deviations of the flatter direction leave a tail under 1e-12.
    reach = 8.0 / np.sqrt(np.linalg.eigvalsh(np.asarray(fit.precision)).min())
    ratio, _ = integrate.dblquad(
        integrand, mode[0] - reach, mode[0] + reach, mode[1] - reach, mode[1] + reach, epsabs=1e-7
    )
    # The next term of the expansion is of order 1/n, with n = 30 rows.
    assert abs(np.log(ratio)) < 1.0 / 30.0
    assert ratio != pytest.approx(1.0, abs=1e-4)


def test_evidence_does_not_depend_on_a_linear_change_of_variables() -> None:
    mixing = np.array([[2.0, 0.3], [-0.5, 0.7]])
    log_jacobian = np.log(abs(np.linalg.det(mixing)))
    plain = logistic_fit()
    mixed = approximate(lambda u: logistic_log_joint(mixing @ u) + log_jacobian, jnp.zeros(2))
    np.testing.assert_allclose(mixing @ mixed.mode, plain.mode, atol=1e-9)
    assert float(mixed.log_evidence) == pytest.approx(float(plain.log_evidence), abs=1e-9)
