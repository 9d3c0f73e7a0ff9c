"""Potential energies of NumPyro models: minus the log joint over unconstrained coordinates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.infer import init_to_median, init_to_value
from numpyro.infer.reparam import CircularReparam, LocScaleReparam, TransformReparam
from numpyro.infer.util import (
    constrain_fn,
    initialize_model,
    log_density,
    potential_energy,
    unconstrain_fn,
)
from scipy import special, stats

from tests.roster.support.compiled import compiled
from tests.roster.support.gaussian import make_linear_gaussian
from tests.roster.support.monte_carlo import Z_BOUND

SEED = 73
# Sums of a dozen terms of order ten in float64.
CLOSE = {"rtol": 1e-11, "atol": 1e-11}

Model = Callable[..., Any]


@pytest.fixture(autouse=True)
def double_precision() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def regression(design: np.ndarray, response: np.ndarray) -> None:
    weights = numpyro.sample("weights", dist.Normal(0.0, 2.0).expand([2]).to_event(1))
    with numpyro.plate("rows", len(response)):
        numpyro.sample("y", dist.Normal(design @ weights, 0.5), obs=response)


def scale_model(values: np.ndarray) -> None:
    scale = numpyro.sample("scale", dist.Gamma(2.0, 1.5))
    numpyro.sample("x", dist.Normal(0.0, scale).expand([len(values)]).to_event(1), obs=values)


def constrained_model() -> None:
    numpyro.sample("rate", dist.Gamma(2.0, 3.0))
    numpyro.sample("share", dist.Beta(2.0, 5.0))
    numpyro.sample("bounded", dist.Uniform(-1.0, 3.0))


def potential(model: Model, *arguments: Any) -> Callable[[dict[str, jax.Array]], jax.Array]:
    return lambda parameters: potential_energy(model, arguments, {}, parameters)


def test_gaussian_potential_and_gradient_are_the_quadratic_form() -> None:
    problem = make_linear_gaussian(21)
    point = np.array([0.4, -1.3])
    energy = potential(regression, problem.design, problem.response)
    value, gradient = compiled(jax.value_and_grad(energy), {"weights": point})
    offset = point - problem.mean
    # log joint = log evidence + log posterior, and the posterior is Gaussian.
    posterior = stats.multivariate_normal(problem.mean, problem.covariance)
    np.testing.assert_allclose(value, -problem.log_evidence - posterior.logpdf(point), **CLOSE)
    np.testing.assert_allclose(gradient["weights"], problem.precision @ offset, **CLOSE)


def test_gaussian_hessian_is_the_posterior_precision() -> None:
    problem = make_linear_gaussian(22)
    energy = potential(regression, problem.design, problem.response)
    hessian = compiled(jax.hessian(lambda w: energy({"weights": w})), np.zeros(2))
    np.testing.assert_allclose(hessian, problem.precision, **CLOSE)


def test_positive_site_gains_its_log_jacobian() -> None:
    """Over u = log s the density gains ds/du = s."""
    values, u = np.array([0.3, -1.2, 0.8]), -0.4
    scale = np.exp(u)
    expected = -stats.gamma(2.0, scale=1 / 1.5).logpdf(scale) - u
    expected -= stats.norm(0.0, scale).logpdf(values).sum()
    energy = compiled(potential(scale_model, values), {"scale": np.array(u)})
    np.testing.assert_allclose(energy, expected, **CLOSE)


def test_gradient_over_a_positive_site_has_its_closed_form() -> None:
    """d/du of -(a u - b e^u) - sum(-u - x^2 e^(-2u) / 2), a and b of the gamma prior."""
    values, u = np.array([0.3, -1.2, 0.8]), -0.4
    expected = -2.0 + 1.5 * np.exp(u) + len(values) - np.sum(values**2) * np.exp(-2.0 * u)
    gradient = compiled(jax.grad(potential(scale_model, values)), {"scale": np.array(u)})
    np.testing.assert_allclose(gradient["scale"], expected, **CLOSE)


def test_every_kind_of_support_is_summed_once() -> None:
    unconstrained = {"rate": 0.3, "share": -0.8, "bounded": 1.1}
    share, inner = special.expit(-0.8), special.expit(1.1)
    log_joint = stats.gamma(2.0, scale=1 / 3.0).logpdf(np.exp(0.3)) + 0.3
    log_joint += stats.beta(2.0, 5.0).logpdf(share) + np.log(share * (1.0 - share))
    log_joint += np.log(inner * (1.0 - inner))  # The interval's width cancels its density.
    point = {name: np.array(value) for name, value in unconstrained.items()}
    np.testing.assert_allclose(compiled(potential(constrained_model), point), -log_joint, **CLOSE)


def test_constrain_and_unconstrain_are_inverse() -> None:
    start = {"rate": np.array(0.3), "share": np.array(-0.8), "bounded": np.array(1.1)}
    values = compiled(lambda point: constrain_fn(constrained_model, (), {}, point), start)
    assert values["rate"] > 0
    assert 0 < values["share"] < 1
    assert -1 < values["bounded"] < 3
    back = compiled(lambda point: unconstrain_fn(constrained_model, (), {}, point), values)
    for name, value in start.items():
        np.testing.assert_allclose(back[name], value, **CLOSE)


def test_log_density_leaves_the_jacobian_out() -> None:
    point = {"rate": np.array(1.2), "share": np.array(0.3), "bounded": np.array(0.5)}
    total = compiled(lambda values: log_density(constrained_model, (), {}, values)[0], point)
    expected = stats.gamma(2.0, scale=1 / 3.0).logpdf(1.2) + stats.beta(2.0, 5.0).logpdf(0.3)
    np.testing.assert_allclose(total, expected - np.log(4.0), **CLOSE)


def eight_schools() -> tuple[np.ndarray, np.ndarray]:
    return np.array([28.0, 8, -3, 7, -1, 1, 18, 12]), np.array([15.0, 10, 16, 11, 9, 11, 10, 18])


def hierarchical(effects: np.ndarray, errors: np.ndarray) -> None:
    centre = numpyro.sample("centre", dist.Normal(0.0, 5.0))
    spread = numpyro.sample("spread", dist.HalfNormal(5.0))
    with numpyro.plate("schools", len(effects)):
        theta = numpyro.sample("theta", dist.Normal(centre, spread))
        numpyro.sample("y", dist.Normal(theta, errors), obs=effects)


def test_non_centred_model_has_the_same_density_up_to_its_jacobian() -> None:
    """theta = centre + spread * z, whose Jacobian is spread to the number of schools."""
    effects, errors = eight_schools()
    z = np.linspace(-1.5, 1.5, 8)
    centre, log_spread = 1.5, 0.7
    theta = centre + np.exp(log_spread) * z
    shared = {"centre": np.array(centre), "spread": np.array(log_spread)}
    moved = numpyro.handlers.reparam(hierarchical, config={"theta": LocScaleReparam(0)})
    plain = compiled(potential(hierarchical, effects, errors), {**shared, "theta": theta})
    shifted = compiled(potential(moved, effects, errors), {**shared, "theta_decentered": z})
    np.testing.assert_allclose(shifted, plain - 8 * log_spread, **CLOSE)


def test_transform_reparameterisation_samples_the_base() -> None:
    def model() -> None:
        base = dist.TransformedDistribution(
            dist.Normal(0.0, 1.0), dist.transforms.AffineTransform(3.0, 2.0)
        )
        numpyro.sample("x", base)

    moved = numpyro.handlers.reparam(model, config={"x": TransformReparam()})
    energy = compiled(potential(moved), {"x_base": np.array(0.7)})
    np.testing.assert_allclose(energy, -stats.norm.logpdf(0.7), **CLOSE)


def test_circular_reparameterisation_leaves_a_periodic_density() -> None:
    def model() -> None:
        numpyro.sample("angle", dist.VonMises(0.5, 2.0))

    moved = numpyro.handlers.reparam(model, config={"angle": CircularReparam()})
    energy = potential(moved)
    turns = np.array([0.3, 0.3 + 2.0 * np.pi, 0.3 - 4.0 * np.pi])
    energies = compiled(jax.vmap(lambda u: energy({"angle_unwrapped": u})), turns)
    np.testing.assert_allclose(energies, energies[0], **CLOSE)


def test_initial_values_are_unconstrained_by_the_strategy() -> None:
    wanted = {"rate": 2.0, "share": 0.25, "bounded": 1.0}

    def start(key: jax.Array) -> dict[str, jax.Array]:
        strategy = init_to_value(values=wanted)
        return initialize_model(key, constrained_model, init_strategy=strategy).param_info.z

    expected = {"rate": np.log(2.0), "share": special.logit(0.25), "bounded": 0.0}
    found = compiled(start, jax.random.key(SEED))
    assert {name: float(value) for name, value in found.items()} == pytest.approx(expected)


def test_initial_median_is_near_the_priors() -> None:
    def model() -> None:
        numpyro.sample("rate", dist.LogNormal(0.4, 2.0))

    def start(key: jax.Array) -> jax.Array:
        strategy = init_to_median(num_samples=2_001)
        return initialize_model(key, model, init_strategy=strategy).param_info.z["rate"]

    # The error of a median of n normal draws is 1.2533 sigma / sqrt(n): 0.056.
    found = float(compiled(start, jax.random.key(SEED)))
    assert abs(found - 0.4) < Z_BOUND * 1.2533 * 2.0 / np.sqrt(2_001)


def test_initialised_potential_is_the_models_own() -> None:
    problem = make_linear_gaussian(23)
    info = initialize_model(
        jax.random.key(SEED), regression, model_args=(problem.design, problem.response)
    )
    point = {"weights": problem.mean}
    direct = compiled(potential(regression, problem.design, problem.response), point)
    np.testing.assert_allclose(info.potential_fn(point), direct, rtol=1e-13)
    np.testing.assert_allclose(
        compiled(jax.grad(info.potential_fn), point)["weights"], 0.0, atol=1e-9
    )
