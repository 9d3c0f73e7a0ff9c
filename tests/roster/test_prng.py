"""Keys and draws: golden values, an independent threefry, and independence of the context."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

from tests.roster.support import threefry

SEEDS = [0, 1, 42, 2**32 - 1]


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


@pytest.mark.parametrize("shape", [(), (5,), (2, 3, 5)], ids=str)
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


def shaped(draw: Callable[..., Any], *arguments: Any, dtype: str) -> Callable[[jax.Array], Any]:
    return lambda key: draw(key, *arguments, dtype=dtype)


class Golden(NamedTuple):
    """What the key of seed 42 gives: through JAX, through the reference, and as noted down."""

    draw: Callable[[jax.Array], Any]
    reference: Callable[[threefry.Key], Any]
    expected: list[Any]


GOLDEN = {
    "split": Golden(
        lambda key: jax.random.key_data(jax.random.split(key)),
        threefry.split,
        [[1832780943, 270669613], [64467757, 2916123636]],
    ),
    "fold-in-7": Golden(
        lambda key: jax.random.key_data(jax.random.fold_in(key, 7)),
        lambda key: threefry.fold_in(key, 7),
        [2547012911, 1371500959],
    ),
    "bits-32": Golden(
        shaped(jax.random.bits, (3,), dtype="uint32"),
        lambda key: threefry.bits32(key, (3,)),
        [2098992034, 2919706841, 2646866425],
    ),
    "bits-64": Golden(
        shaped(jax.random.bits, (2,), dtype="uint64"),
        lambda key: threefry.bits64(key, (2,)),
        [7871734211187709741, 276886910877598708],
    ),
    "uniform-32": Golden(
        shaped(jax.random.uniform, (3,), dtype="float32"),
        lambda key: threefry.uniform32(key, (3,)),
        [0.48870956897735596, 0.6797971725463867, 0.6162714958190918],
    ),
    "uniform-64": Golden(
        shaped(jax.random.uniform, (3,), dtype="float64"),
        lambda key: threefry.uniform64(key, (3,)),
        [0.4267275666499091, 0.015010069515314584, 0.5741444178995352],
    ),
    "normal-64": Golden(
        shaped(jax.random.normal, (3,), dtype="float64"),
        lambda key: threefry.normal64(key, (3,)),
        [-0.18471174528191162, -2.169824560397754, 0.18693555179382582],
    ),
    "exponential-64": Golden(
        shaped(jax.random.exponential, (3,), dtype="float64"),
        lambda key: threefry.exponential64(key, (3,)),
        [0.5563942243855916, 0.015123860720489336, 0.8536549993431988],
    ),
    "randint-below-100": Golden(
        shaped(jax.random.randint, (6,), 0, 100, dtype="int32"),
        lambda key: threefry.randint32(key, 100, (6,)),
        [44, 14, 71, 69, 9, 19],
    ),
    "permutation-of-10": Golden(
        lambda key: jax.random.permutation(key, 10),
        lambda key: threefry.permutation(key, 10),
        [7, 4, 2, 5, 3, 6, 8, 9, 0, 1],
    ),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_values_hold(name: str) -> None:
    """Integers and uniform draws are exact; a logarithm or an erfinv is good to 1e-12."""
    draw, reference, expected = GOLDEN[name]
    tolerance = 1e-11 if name.startswith(("normal", "exponential")) else 0.0
    np.testing.assert_allclose(draw(jax.random.key(42)), expected, rtol=tolerance)
    np.testing.assert_allclose(reference(threefry.seed(42)), expected, rtol=tolerance)


def test_bernoulli_compares_uniform_draws_with_the_probability() -> None:
    draws = jax.random.bernoulli(jax.random.key(42), np.float32(0.3), (200,))
    expected = threefry.bernoulli32(threefry.seed(42), 0.3, (200,))
    np.testing.assert_array_equal(draws, expected)


@pytest.mark.parametrize("name", GOLDEN)
def test_draws_do_not_change_under_jit_and_vmap(name: str) -> None:
    draw = GOLDEN[name].draw
    tolerance = 1e-13 if name.startswith(("normal", "exponential")) else 0.0
    keys = jax.random.split(jax.random.key(3), 4)
    alone = np.stack([np.asarray(draw(key)) for key in keys])
    np.testing.assert_allclose(jax.jit(jax.vmap(draw))(keys), alone, rtol=tolerance)


@pytest.mark.parametrize("shape", [(12,), (3, 4), (2, 2, 3), (4, 3)], ids=str)
def test_a_draw_depends_on_its_position_and_not_on_the_shape(shape: tuple[int, ...]) -> None:
    key = jax.random.key(5)
    flat = jax.random.uniform(key, (50,))
    np.testing.assert_array_equal(jax.random.uniform(key, shape).ravel(), flat[:12])


def test_the_older_layout_does_depend_on_the_size() -> None:
    """Which is why the layout is part of what a golden value means."""
    key = jax.random.key(5)
    with jax.threefry_partitionable(False):
        short, long = (jax.random.bits(key, (n,), dtype="uint32") for n in (12, 50))
    assert np.count_nonzero(np.asarray(short) != np.asarray(long)[:12]) > 6


def test_keys_from_a_split_are_all_different_and_fold_in_repeats_them() -> None:
    """In this layout split(key)[i] and fold_in(key, i) encrypt the same block: use one of them."""
    root, count = jax.random.key(9), 200
    fold = jax.vmap(jax.random.fold_in, in_axes=(None, 0))
    split = np.asarray(jax.random.key_data(jax.random.split(root, count)))
    folded = np.asarray(jax.random.key_data(fold(root, np.arange(count, dtype=np.uint32))))
    assert len({*map(tuple, split.tolist()), pair(root)}) == count + 1
    np.testing.assert_array_equal(folded, split)


def test_a_typed_key_refuses_arithmetic() -> None:
    with pytest.raises(TypeError):
        jax.random.key(0) + 1
