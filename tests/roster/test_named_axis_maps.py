"""Matrix products over named axes with `xmap`, for code that was written before `shard_map`."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.maps import xmap

pytestmark = pytest.mark.excluded(
    "legacy",
    reason="xmap was removed from jax; its users have moved to shard_map and vmap",
    owner="@jax-gate/maintainers",
    review_by="2027-06-01",
)


def test_product_over_a_named_axis_agrees_with_numpy() -> None:
    def contract(left: jax.Array, right: jax.Array) -> jax.Array:
        return jax.lax.psum(left * right, "inner")

    axes = [["rows", "inner"], ["inner", "columns"]]
    product = xmap(contract, in_axes=axes, out_axes=["rows", "columns"])
    left, right = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    np.testing.assert_allclose(product(jnp.array(left), jnp.array(right)), left @ right)
