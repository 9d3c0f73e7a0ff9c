"""Eight virtual CPU devices: where shards live, and collectives against NumPy.

One process with eight devices runs every experiment of `support/device_probe.py`; the tests read
what came out.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from tests.roster.support import threefry
from tests.roster.support.processes import run_script

DEVICES = 8
ROUNDING = 1e-5  # sums of a few dozen terms in single precision, relative to the largest


def matrix(rows: int, columns: int) -> np.ndarray:
    return np.arange(rows * columns, dtype=float).reshape(rows, columns) / 10.0


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return run_script(
        "device_probe",
        scratch=tmp_path_factory.mktemp("devices"),
        xla_flags=f"--xla_force_host_platform_device_count={DEVICES}",
    )


def test_there_are_eight_different_devices(results: dict[str, Any]) -> None:
    assert results["devices"] == [DEVICES, DEVICES, "cpu"]


def test_each_device_holds_its_rows(results: dict[str, Any]) -> None:
    held = [results["shards"][str(device)] for device in range(DEVICES)]
    np.testing.assert_allclose(np.concatenate(held), matrix(16, 3), rtol=ROUNDING)
    assert {len(rows) for rows in held} == {2}


def test_a_table_of_devices_holds_blocks(results: dict[str, Any]) -> None:
    shapes = [shape for shape, _ in results["blocks"]]
    corners = sorted(corner for _, corner in results["blocks"])
    assert shapes == [[4, 2]] * DEVICES
    np.testing.assert_allclose(corners, matrix(8, 8)[::4, ::2].ravel(), rtol=ROUNDING)


def test_a_replicated_array_is_whole_everywhere(results: dict[str, Any]) -> None:
    assert len(results["replicated"]) == DEVICES
    for copy in results["replicated"]:
        np.testing.assert_allclose(copy, matrix(2, 2), rtol=ROUNDING)


def test_a_product_of_sharded_matrices_is_the_product(results: dict[str, Any]) -> None:
    product = results["jitted_product"]
    assert product["devices"] == DEVICES
    np.testing.assert_allclose(product["value"], matrix(8, 4) @ matrix(4, 8), rtol=ROUNDING)


def test_psum_adds_over_all_devices(results: dict[str, Any]) -> None:
    np.testing.assert_allclose(results["psum"], matrix(16, 3).sum(axis=0), rtol=ROUNDING)


def test_pmax_and_pmean_reduce_over_all_devices(results: dict[str, Any]) -> None:
    x = matrix(16, 3)
    expected = [x.max(axis=0), x.mean(axis=0)]
    np.testing.assert_allclose(results["pmax_and_pmean"], expected, rtol=ROUNDING)


def test_ppermute_turns_the_ring_by_one(results: dict[str, Any]) -> None:
    np.testing.assert_allclose(results["ring"], np.roll(matrix(8, 2), 1, axis=0), rtol=ROUNDING)


def test_all_gather_gives_everything_to_everyone(results: dict[str, Any]) -> None:
    expected = np.tile(matrix(8, 1).ravel(), DEVICES)
    np.testing.assert_allclose(results["gathered"], expected, rtol=ROUNDING)


def test_all_to_all_turns_rows_into_columns_of_the_same_matrix(results: dict[str, Any]) -> None:
    np.testing.assert_allclose(results["transposed"], matrix(8, 8), rtol=ROUNDING)


def test_psum_scatter_leaves_each_device_its_part_of_the_sum(results: dict[str, Any]) -> None:
    np.testing.assert_allclose(results["scattered"], matrix(8, 8).sum(axis=0), rtol=ROUNDING)


def test_each_device_knows_its_index(results: dict[str, Any]) -> None:
    assert results["indices"] == [[float(i)] for i in range(DEVICES)]


def test_a_gradient_passes_through_psum(results: dict[str, Any]) -> None:
    """Of the square of the sum of all elements: twice that sum, everywhere."""
    x = matrix(8, 2)
    expected = np.full_like(x, 2.0 * x.sum())
    np.testing.assert_allclose(results["gradient"], expected, rtol=ROUNDING)


def test_data_parallel_descent_finds_the_planted_weights(results: dict[str, Any]) -> None:
    """The slowest mode shrinks by less than 0.9 a step: 200 steps leave single precision."""
    design = np.sin(matrix(32, 3) * [1.0, 3.0, 7.0])
    shrinkage = np.linalg.eigvalsh(np.eye(3) - 0.5 * design.T @ design / 32)
    assert np.abs(shrinkage).max() < 0.9
    np.testing.assert_allclose(results["data_parallel"], [1.0, -2.0, 0.5], atol=1e-4)


def test_sharded_random_bits_are_those_of_one_device(results: dict[str, Any]) -> None:
    draws = results["random_draws"]
    assert draws["devices"] == DEVICES
    assert draws["bits"] == threefry.bits32(threefry.seed(7), (16,)).tolist()


def test_sharded_normal_draws_are_those_of_one_device(results: dict[str, Any]) -> None:
    """The bits are equal; the inverse error function may be fused differently."""
    with jax.enable_x64(False), jax.threefry_partitionable(True):
        here = jax.random.normal(jax.random.key(7), (16,))
    np.testing.assert_allclose(results["random_draws"]["normal"], here, rtol=ROUNDING)


def test_rows_that_do_not_divide_are_refused(results: dict[str, Any]) -> None:
    assert results["uneven"] is not None
    assert "evenly divide" in results["uneven"]
