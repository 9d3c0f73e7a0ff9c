"""How the cost of an effective draw grows with dimension, for a person to read.

A script, not a test: it samples correlated normals of growing dimension and prints one line a
run. It takes many minutes, and starts as soon as it is imported:

    python -m tests.roster.manual_scaling_study
"""

from __future__ import annotations

import time

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.infer import MCMC, NUTS

from tests.roster.support.monte_carlo import effective_sample_size

pytestmark = pytest.mark.excluded(
    "manual",
    reason="a study that prints a table for minutes and asserts nothing",
    owner="@jax-gate/maintainers",
    review_by="2027-06-01",
)

DIMENSIONS = [2**power for power in range(1, 13)]
REPETITIONS = 5


def autoregression(dimension: int, coefficient: float) -> None:
    """A stationary AR(1) sequence, written through its innovations' scale."""
    scale = jnp.full(dimension, jnp.sqrt(1.0 - coefficient**2)).at[0].set(1.0)
    path = numpyro.sample(
        "path", dist.ImproperUniform(dist.constraints.real_vector, (), (dimension,))
    )
    mean = jnp.concatenate([jnp.zeros(1), coefficient * path[:-1]])
    numpyro.factor("density", dist.Normal(mean, scale).log_prob(path).sum())


print(
    f"{'dimension':>9} {'seed':>4} {'steps':>8} {'seconds':>8} {'seconds per effective draw':>27}"
)
for dimension in DIMENSIONS:
    for seed in range(REPETITIONS):
        mcmc = MCMC(NUTS(autoregression), num_warmup=1_000, num_samples=4_000, progress_bar=False)
        began = time.perf_counter()
        mcmc.run(jax.random.key(seed), dimension, 0.95, extra_fields=("num_steps",))
        draws = np.asarray(mcmc.get_samples(group_by_chain=True)["path"])
        seconds = time.perf_counter() - began
        size = min(effective_sample_size(draws[..., column]) for column in range(dimension))
        steps = float(np.mean(mcmc.get_extra_fields()["num_steps"]))
        print(f"{dimension:>9} {seed:>4} {steps:>8.1f} {seconds:>8.2f} {seconds / size:>27.2e}")
