"""Device memory on a GPU: what arrays take, what they give back, what donation saves."""

from __future__ import annotations

import gc

import jax
import jax.numpy as jnp
import numpy as np
import pytest

pytestmark = pytest.mark.excluded(
    "gpu",
    reason="reads the allocator of a GPU, and the image runs on CPU machines",
    owner="@jax-gate/maintainers",
    review_by="2027-06-01",
)

MEBIBYTE = 1024**2


@pytest.fixture
def gpu() -> jax.Device:
    try:
        return jax.devices("gpu")[0]
    except RuntimeError as error:
        pytest.skip(f"no GPU: {error}")


def bytes_in_use(device: jax.Device) -> int:
    gc.collect()
    return int(device.memory_stats()["bytes_in_use"])


def test_an_array_takes_its_bytes_and_gives_them_back(gpu: jax.Device) -> None:
    before = bytes_in_use(gpu)
    array = jax.device_put(np.zeros(64 * MEBIBYTE // 4, np.float32), gpu).block_until_ready()
    taken = bytes_in_use(gpu) - before
    # The allocator rounds a block of this size up by well under a mebibyte.
    assert 64 * MEBIBYTE <= taken < 65 * MEBIBYTE
    array.delete()
    assert bytes_in_use(gpu) == before


def test_a_donated_argument_is_reused_for_the_result(gpu: jax.Device) -> None:
    array = jax.device_put(np.ones(64 * MEBIBYTE // 4, np.float32), gpu)
    pointer = array.unsafe_buffer_pointer()
    result = jax.jit(lambda x: x + 1.0, donate_argnums=0)(array).block_until_ready()
    assert array.is_deleted()
    assert result.unsafe_buffer_pointer() == pointer


def test_full_precision_matrix_product_agrees_with_numpy(gpu: jax.Device) -> None:
    left, right = np.random.default_rng(1).normal(size=(2, 256, 256)).astype(np.float32)
    with jax.default_device(gpu):
        product = jnp.matmul(left, right, precision=jax.lax.Precision.HIGHEST)
    exact = left.astype(np.float64) @ right.astype(np.float64)
    # Sums of 256 float32 products: sqrt(256) roundings of 6e-8 on terms up to about 10; the
    # shortened mantissa of a tensor core would be off by a hundred times as much.
    np.testing.assert_allclose(product, exact, atol=2e-4)
