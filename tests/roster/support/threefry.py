"""Threefry-2x32 with twenty rounds and what JAX draws from it, in NumPy alone.

The block function follows Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as
1, 2, 3" (SC11), section 3.3. The counters of one array are its flat indices as 64-bit numbers,
high word first: the partitionable layout, in which an element does not depend on the array's size.
Keys and blocks are pairs of 32-bit words, held in uint64 so that sums can be reduced explicitly.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

Words = NDArray[np.uint64]
Key = tuple[int, int]

_MASK = np.uint64(0xFFFFFFFF)
_PARITY = np.uint64(0x1BD11BDA)
_ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)
_ROUNDS = 20


def block(key: Key, high: ArrayLike, low: ArrayLike) -> tuple[Words, Words]:
    """Encrypt counters of two 32-bit words, broadcast, under `key`; return two words each."""
    schedule = [np.uint64(key[0]), np.uint64(key[1])]
    schedule.append(_PARITY ^ schedule[0] ^ schedule[1])
    first = (np.asarray(high, dtype=np.uint64) + schedule[0]) & _MASK
    second = (np.asarray(low, dtype=np.uint64) + schedule[1]) & _MASK
    for index in range(_ROUNDS):
        first = (first + second) & _MASK
        second = _rotate(second, _ROTATIONS[index % 8]) ^ first
        if index % 4 == 3:
            injection = index // 4 + 1
            first = (first + schedule[injection % 3]) & _MASK
            second = (second + schedule[(injection + 1) % 3] + np.uint64(injection)) & _MASK
    return first, second


def seed(value: int) -> Key:
    """Return the key of a non-negative 64-bit seed."""
    return value >> 32, value & 0xFFFFFFFF


def split(key: Key, count: int = 2) -> list[Key]:
    """Return `count` new keys."""
    first, second = _blocks(key, (count,))
    return [(int(a), int(b)) for a, b in zip(first, second, strict=True)]


def fold_in(key: Key, data: int) -> Key:
    """Return the key that belongs to a 32-bit number under `key`."""
    first, second = block(key, 0, data)
    return int(first), int(second)


def bits32(key: Key, shape: tuple[int, ...]) -> NDArray[np.uint32]:
    """Return 32 random bits an element."""
    first, second = _blocks(key, shape)
    return (first ^ second).astype(np.uint32)


def bits64(key: Key, shape: tuple[int, ...]) -> NDArray[np.uint64]:
    """Return 64 random bits an element."""
    first, second = _blocks(key, shape)
    return (first << np.uint64(32)) | second


def uniform32(key: Key, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Return single-precision draws from [0, 1): the upper 23 bits, exactly."""
    return ((bits32(key, shape) >> np.uint32(9)) * 2.0**-23).astype(np.float32)


def uniform64(key: Key, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return double-precision draws from [0, 1): the upper 52 bits, exactly."""
    return (bits64(key, shape) >> np.uint64(12)).astype(np.float64) * 2.0**-52


def normal64(key: Key, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return double-precision standard normal draws, by inversion of a draw from (-1, 1)."""
    lowest = np.nextafter(-1.0, 0.0)
    symmetric = np.maximum(lowest, uniform64(key, shape) * (1.0 - lowest) + lowest)
    return np.sqrt(2.0) * special.erfinv(symmetric)


def exponential64(key: Key, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return double-precision draws of the unit exponential, by inversion."""
    return -np.log1p(-uniform64(key, shape))


def bernoulli32(key: Key, probability: float, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Return whether single-precision uniform draws lie below a single-precision probability."""
    return uniform32(key, shape) < np.float32(probability)


def randint32(key: Key, below: int, shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Return integers from [0, `below`), `below` at most 2**16: 64 random bits modulo `below`.

    The bits are two words of 32, so 2**32 is reduced modulo `below` before they are put together.
    """
    high, low = (bits32(half, shape).astype(np.int64) for half in split(key))
    return ((high % below) * (2**32 % below) + low % below) % below


def permutation(key: Key, count: int) -> NDArray[np.int64]:
    """Return a permutation of `count` indices, by stable sorts of random words.

    The number of sorts makes equal words in every round improbable: 3 log(count) / log(2**32).
    """
    indices = np.arange(count)
    for _ in range(math.ceil(3.0 * math.log(max(1, count)) / math.log(2**32 - 1))):
        key, subkey = split(key)
        indices = indices[np.argsort(bits32(subkey, (count,)), kind="stable")]
    return indices


def _rotate(words: Words, by: int) -> Words:
    return ((words << np.uint64(by)) | (words >> np.uint64(32 - by))) & _MASK


def _blocks(key: Key, shape: tuple[int, ...]) -> tuple[Words, Words]:
    counters = np.arange(math.prod(shape), dtype=np.uint64).reshape(shape)
    return block(key, counters >> np.uint64(32), counters & _MASK)
