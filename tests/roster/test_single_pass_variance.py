"""The textbook one-pass variance in single precision, held to what only two passes can do.

Values of `offset` plus or minus one have variance one. Their squares need the digits of
`offset ** 2`, which float32 does not have beyond 2**12: the one is rounded away from every square,
so E[x^2] - E[x]^2 is exactly zero in any order of summation, with or without fused operations.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

pytestmark = pytest.mark.excluded(
    "broken",
    reason="the one-pass form cancels in float32; its users have to move to two passes",
    owner="@jax-gate/maintainers",
    review_by="2027-06-01",
)


@jax.jit
def single_pass_variance(values: jax.Array) -> jax.Array:
    return jnp.mean(values * values) - jnp.mean(values) ** 2


@pytest.mark.parametrize("exponent", [13, 16, 20])
def test_variance_survives_a_large_offset(exponent: int) -> None:
    signs = np.tile([-1.0, 1.0], 32)
    values = (2.0**exponent + signs).astype(np.float32)
    assert float(single_pass_variance(values)) == pytest.approx(1.0, rel=1e-3)
