"""What is drawn has the distribution that it should have, by statistics with stated errors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

# A statistic further than this many standard errors off is wrong with odds of 1e9 to 1; the draws
# are fixed by their seed, so it is also the same on every machine.
Z_BOUND = 6.0


@pytest.fixture(autouse=True)
def double_precision_and_the_partitionable_layout() -> Iterator[None]:
    with jax.enable_x64(True), jax.threefry_partitionable(True):
        yield


@pytest.mark.parametrize("count", [1, 2, 10, 1000])
def test_a_permutation_keeps_every_element(count: int) -> None:
    order = jax.random.permutation(jax.random.key(1), count)
    assert sorted(order.tolist()) == list(range(count))


def test_a_choice_without_replacement_has_no_doubles() -> None:
    chosen = jax.random.choice(jax.random.key(1), 50, (30,), replace=False)
    assert len(set(chosen.tolist())) == 30


@pytest.mark.parametrize(
    ("low", "high", "dtype"),
    [(0, 7, "int32"), (-5, 5, "int64"), (0, 256, "uint8")],
    ids=str,
)
def test_randint_covers_its_half_open_range(low: int, high: int, dtype: str) -> None:
    draws = np.asarray(jax.random.randint(jax.random.key(2), (8000,), low, high, dtype=dtype))
    assert draws.dtype == dtype
    # A value of 256 is missed by 8000 draws with probability 256 * (255/256)**8000 < 1e-11.
    assert set(draws.tolist()) == set(range(low, high))


CONTINUOUS: dict[str, tuple[Callable[[jax.Array, tuple[int, ...]], jax.Array], Any]] = {
    "uniform": (jax.random.uniform, stats.uniform),
    "normal": (jax.random.normal, stats.norm),
    "exponential": (jax.random.exponential, stats.expon),
    "gumbel": (jax.random.gumbel, stats.gumbel_r),
    "laplace": (jax.random.laplace, stats.laplace),
    "gamma": (lambda key, shape: jax.random.gamma(key, 2.5, shape), stats.gamma(2.5)),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_draws_follow_their_distribution(name: str) -> None:
    """Kolmogorov-Smirnov with fixed draws: a p-value under 1e-9 would be a wrong sampler."""
    draw, distribution = CONTINUOUS[name]
    draws = np.asarray(draw(jax.random.key(11), (4000,)))
    assert stats.kstest(draws, distribution.cdf).pvalue > 1e-9


def test_categorical_frequencies_are_the_probabilities() -> None:
    probabilities, count = np.array([0.2, 0.3, 0.5]), 20000
    draws = jax.random.categorical(jax.random.key(13), jnp.log(probabilities), shape=(count,))
    frequencies = np.bincount(draws, minlength=3) / count
    errors = np.sqrt(probabilities * (1.0 - probabilities) / count)
    assert np.all(np.abs(frequencies - probabilities) < Z_BOUND * errors)


def test_poisson_draws_have_equal_mean_and_variance() -> None:
    """The variance of the sample variance is (mu4 - sigma^4) / n, with mu4 = 3 * rate^2 + rate."""
    rate, count = 4.0, 20000
    draws = np.asarray(jax.random.poisson(jax.random.key(17), rate, (count,)))
    assert abs(draws.mean() - rate) < Z_BOUND * math.sqrt(rate / count)
    error = math.sqrt((2.0 * rate**2 + rate) / count)
    assert abs(draws.var() - rate) < Z_BOUND * error


def test_two_halves_of_one_stream_are_uncorrelated() -> None:
    """The correlation of independent normal draws has standard error 1 / sqrt(n)."""
    first, second = (
        jax.random.normal(key, (20000,)) for key in jax.random.split(jax.random.key(19))
    )
    correlation = float(jnp.corrcoef(first, second)[0, 1])
    assert abs(correlation) < Z_BOUND / math.sqrt(20000)
