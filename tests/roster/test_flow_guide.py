"""A spline flow as a proposal: invertible, with the density it claims, and trainable."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.roster.support.importance import kish_effective_size
from tests.roster.support.monte_carlo import Z_BOUND

pytestmark = pytest.mark.excluded(
    "optional",
    reason="the flow comes from flowMC, which the image leaves out",
    owner="@jax-gate/maintainers",
    review_by="2027-06-01",
    needs=["flowmc"],
)

splines = pytest.importorskip("flowMC.resource.model.nf_model.rqSpline")
# flowMC brings these two itself.
equinox = pytest.importorskip("equinox")
optax = pytest.importorskip("optax")

SEED = 127


def make_flow() -> Any:
    """A flow over the plane: 4 couplings, 8 bins, before any training."""
    with jax.enable_x64(True):
        return splines.MaskedCouplingRQSpline(2, 4, [16, 16], 8, jax.random.key(SEED))


def banana_log_prob(points: jax.Array) -> jax.Array:
    """A normal bent along a parabola, which integrates to one: the map has determinant one."""
    bent = points[..., 1] - 0.5 * (points[..., 0] ** 2 - 1.0)
    normal = jax.scipy.stats.norm.logpdf
    return normal(points[..., 0]) + normal(bent, 0.0, 0.5)


def banana_draws(count: int) -> np.ndarray:
    first, second = np.random.default_rng(SEED).normal(size=(2, count))
    return np.column_stack([first, 0.5 * (first**2 - 1.0) + 0.5 * second])


def test_flow_inverts() -> None:
    flow = make_flow()
    points = np.random.default_rng(1).normal(size=(20, 2))
    with jax.enable_x64(True):
        images, forward = jax.vmap(flow.forward)(points)
        back, inverse = jax.vmap(flow.inverse)(images)
    np.testing.assert_allclose(back, points, atol=1e-9)
    np.testing.assert_allclose(forward, -inverse, atol=1e-9)


def test_log_determinant_is_that_of_the_automatic_jacobian() -> None:
    flow, point = make_flow(), np.array([0.3, -0.8])
    with jax.enable_x64(True):
        jacobian = jax.jacfwd(lambda x: flow.forward(x)[0])(point)
        stated = flow.forward(point)[1]
    np.testing.assert_allclose(stated, np.linalg.slogdet(jacobian)[1], atol=1e-9)


def test_trained_flow_is_an_unbiased_proposal() -> None:
    with jax.enable_x64(True):
        flow, optimiser = make_flow(), optax.adam(5e-3)
        data = jnp.asarray(banana_draws(2_000))
        state = optimiser.init(equinox.filter(flow, equinox.is_inexact_array))
        for epoch in range(40):
            key = jax.random.fold_in(jax.random.key(SEED), epoch)
            _, flow, state = flow.train_epoch(key, optimiser, state, data, 500)
        draws = flow.sample(jax.random.key(SEED + 1), 20_000)
        log_weights = banana_log_prob(draws) - flow.log_prob(draws)
        size = float(kish_effective_size(log_weights))
        weights = np.exp(np.asarray(log_weights))
    assert abs(weights.mean() - 1.0) < Z_BOUND * weights.std() / np.sqrt(len(weights))
    assert size > 0.5 * len(weights)
