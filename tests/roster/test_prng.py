"""Keys and draws: golden values, an independent threefry, and independence of the context."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from tests.roster.support import threefry

SEEDS = [0, 1, 42, 2**32 - 1]

# A statistic further than this many standard errors off is wrong with odds of 1e9 to 1; the draws
# are fixed by their seed, so it is also the same on every machine.
Z_BOUND = 6.0


@pytest.fixture(autouse=True)
def double_precision_and_the_partitionable_layout() -> Iterator[None]:
    with jax.enable_x64(True), jax.threefry_partitionable(True):
        yield


def pair(key: jax.Array) -> tuple[int, int]:
    first, second = np.asarray(jax.random.key_data(key)).tolist()
    return first, second


def test_the_default_generator_is_partitionable_threefry() -> None:
    assert jax.config.jax_default_prng_impl == "threefry2x32"
    assert jax.config.jax_threefry_partitionable
    assert str(jax.random.key_impl(jax.random.key(0))) == "threefry2x32"


@pytest.mark.parametrize(
    ("key", "counter", "expected"),
    [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ],
    ids=["zeros", "ones", "digits-of-pi"],
)
def test_the_reference_threefry_meets_the_published_vectors(
    key: tuple[int, int], counter: tuple[int, int], expected: tuple[int, int]
) -> None:
    """The known answers of the Random123 library for threefry2x32 with 20 rounds."""
    first, second = threefry.block(key, *counter)
    assert (int(first), int(second)) == expected


@pytest.mark.parametrize("seed", [*SEEDS, 2**40 + 5])
def test_keys_are_their_seeds(seed: int) -> None:
    assert pair(jax.random.key(seed)) == threefry.seed(seed)
    assert pair(jax.random.wrap_key_data(jax.random.PRNGKey(seed))) == threefry.seed(seed)


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("seed", SEEDS)
def test_split_matches_the_reference(seed: int, count: int) -> None:
    keys = jax.random.split(jax.random.key(seed), count)
    assert [pair(key) for key in keys] == threefry.split(threefry.seed(seed), count)


@pytest.mark.parametrize("data", [0, 1, 7, 2**31, 2**32 - 1])
def test_fold_in_matches_the_reference(data: int) -> None:
    folded = jax.random.fold_in(jax.random.key(42), np.uint32(data))
    assert pair(folded) == threefry.fold_in(threefry.seed(42), data)


@pytest.mark.parametrize("shape", [(), (1,), (5,), (3, 4), (2, 3, 5)], ids=str)
@pytest.mark.parametrize("seed", [0, 42])
def test_raw_bits_match_the_reference(seed: int, shape: tuple[int, ...]) -> None:
    key, reference = jax.random.key(seed), threefry.seed(seed)
    narrow = jax.random.bits(key, shape, dtype="uint32")
    wide = jax.random.bits(key, shape, dtype="uint64")
    np.testing.assert_array_equal(narrow, threefry.bits32(reference, shape))
    np.testing.assert_array_equal(wide, threefry.bits64(reference, shape))


@pytest.mark.parametrize("seed", SEEDS)
def test_uniform_draws_match_the_reference_bit_by_bit(seed: int) -> None:
    key, reference = jax.random.key(seed), threefry.seed(seed)
    single = jax.random.uniform(key, (50,), dtype="float32")
    double = jax.random.uniform(key, (50,), dtype="float64")
    np.testing.assert_array_equal(single, threefry.uniform32(reference, (50,)))
    np.testing.assert_array_equal(double, threefry.uniform64(reference, (50,)))


@pytest.mark.parametrize("seed", SEEDS)
def test_normal_draws_match_the_reference(seed: int) -> None:
    """The inverse error function of the two sides differs by up to 1e-12 near its ends."""
    draws = jax.random.normal(jax.random.key(seed), (50,), dtype="float64")
    expected = threefry.normal64(threefry.seed(seed), (50,))
    np.testing.assert_allclose(draws, expected, rtol=1e-11)


GOLDEN: dict[str, tuple[Callable[[jax.Array], Any], list[Any]]] = {}


def golden(name: str, *expected: Any) -> Callable[[Callable], Callable]:
    def register(draw: Callable[[jax.Array], Any]) -> Callable[[jax.Array], Any]:
        GOLDEN[name] = (draw, list(expected))
        return draw

    return register
