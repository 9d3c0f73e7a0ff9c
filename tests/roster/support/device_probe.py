"""A script: computations on eight devices, to be run where XLA_FLAGS asks for as many.

Every function below is one experiment. Prints one JSON object with what each returned, by name.
The inputs are simple enough for a test to know the results from NumPy.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

DEVICES = 8
ROWS = P("x")
FREQUENCIES = np.array([1.0, 3.0, 7.0], np.float32)
EXPERIMENTS: dict[str, Callable[[], Any]] = {}


def experiment(function: Callable[[], Any]) -> Callable[[], Any]:
    EXPERIMENTS[function.__name__] = function
    return function


def line() -> Mesh:
    return Mesh(np.array(jax.devices()), ("x",))


def table() -> Mesh:
    return Mesh(np.array(jax.devices()).reshape(2, 4), ("row", "column"))


def matrix(rows: int, columns: int) -> np.ndarray:
    return np.arange(rows * columns, dtype=np.float32).reshape(rows, columns) / 10.0


def per_device(body: Callable, out_specs: P = ROWS) -> Callable:
    """Run `body` on each device with its rows of the argument."""
    return jax.jit(jax.shard_map(body, mesh=line(), in_specs=ROWS, out_specs=out_specs))


@experiment
def devices() -> Any:
    return [len(jax.devices()), len({device.id for device in jax.devices()}), jax.default_backend()]


@experiment
def shards() -> Any:
    """Rows on each device, for a matrix of 16 rows over the line."""
    array = jax.device_put(matrix(16, 3), NamedSharding(line(), P("x", None)))
    return {str(s.device.id): np.asarray(s.data).tolist() for s in array.addressable_shards}


@experiment
def blocks() -> Any:
    """First element of each device's block, for an 8 by 8 matrix over the table."""
    array = jax.device_put(matrix(8, 8), NamedSharding(table(), P("row", "column")))
    return [[list(s.data.shape), float(s.data[0, 0])] for s in array.addressable_shards]


@experiment
def replicated() -> Any:
    array = jax.device_put(matrix(2, 2), NamedSharding(line(), P()))
    return [np.asarray(s.data).tolist() for s in array.addressable_shards]


@experiment
def jitted_product() -> Any:
    """A product of sharded matrices: where its result lives, and what it is."""
    mesh = table()
    a = jax.device_put(matrix(8, 4), NamedSharding(mesh, P("row", None)))
    b = jax.device_put(matrix(4, 8), NamedSharding(mesh, P(None, "column")))
    out = NamedSharding(mesh, P("row", "column"))
    product = jax.jit(jnp.matmul, out_shardings=out)(a, b)
    return {"value": product.tolist(), "devices": len(product.sharding.device_set)}


@experiment
def psum() -> Any:
    sums = per_device(lambda rows: jax.lax.psum(rows.sum(axis=0), "x"), out_specs=P())
    return sums(matrix(16, 3)).tolist()


@experiment
def pmax_and_pmean() -> Any:
    def both(rows: jax.Array) -> jax.Array:
        largest = jax.lax.pmax(rows.max(axis=0), "x")
        return jnp.stack([largest, jax.lax.pmean(rows.mean(axis=0), "x")])

    return per_device(both, out_specs=P())(matrix(16, 3)).tolist()


@experiment
def ring() -> Any:
    """Every device hands its row to the next one."""
    pairs = [(i, (i + 1) % DEVICES) for i in range(DEVICES)]
    return per_device(lambda row: jax.lax.ppermute(row, "x", pairs))(matrix(8, 2)).tolist()


@experiment
def gathered() -> Any:
    """All rows on every device: eight copies, one below the other."""
    body = partial(jax.lax.all_gather, axis_name="x", tiled=True)
    return per_device(body)(matrix(8, 1)).ravel().tolist()


@experiment
def transposed() -> Any:
    """All-to-all: rows in, columns out."""
    body = partial(jax.lax.all_to_all, axis_name="x", split_axis=1, concat_axis=0, tiled=True)
    return per_device(body, out_specs=P(None, "x"))(matrix(8, 8)).tolist()


@experiment
def scattered() -> Any:
    """A sum over devices of which each one keeps its part."""
    body = partial(jax.lax.psum_scatter, axis_name="x", tiled=True)
    return per_device(lambda row: body(row[0]))(matrix(8, 8)).tolist()


@experiment
def indices() -> Any:
    return per_device(lambda rows: rows + jax.lax.axis_index("x"))(np.zeros((8, 1))).tolist()


@experiment
def gradient() -> Any:
    """Gradient of the squared sum of all elements, each device knowing only its rows."""

    def loss(x: jax.Array) -> jax.Array:
        return per_device(lambda rows: jax.lax.psum(rows.sum(), "x"), out_specs=P())(x) ** 2

    return jax.grad(loss)(matrix(8, 2)).tolist()


@experiment
def data_parallel() -> Any:
    """Least squares by 200 gradient steps; each device holds its rows of the data."""
    design, truth = np.sin(matrix(32, 3) * FREQUENCIES), np.array([1.0, -2.0, 0.5], np.float32)

    def step(rows: jax.Array, targets: jax.Array, weights: jax.Array) -> jax.Array:
        error = rows @ weights - targets
        return weights - 0.5 * jax.lax.pmean(rows.T @ error / error.size, "x")

    specs = (P("x"), P("x"), P())
    parallel = jax.shard_map(step, mesh=line(), in_specs=specs, out_specs=P())

    @jax.jit
    def fit(rows: jax.Array, targets: jax.Array) -> jax.Array:
        start = jnp.zeros(3)
        return jax.lax.fori_loop(0, 200, lambda _, w: parallel(rows, targets, w), start)

    return fit(design, design @ truth).tolist()


@experiment
def random_draws() -> Any:
    """Bits and normal draws, made in eight places at once from the key of seed 7."""

    def draw(key: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jax.random.bits(key, (16,)), jax.random.normal(key, (16,))

    bits, normal = jax.jit(draw, out_shardings=NamedSharding(line(), ROWS))(jax.random.key(7))
    return {
        "bits": bits.tolist(),
        "normal": normal.tolist(),
        "devices": len(bits.sharding.device_set),
    }


@experiment
def uneven() -> Any:
    """Nine rows do not go into eight devices."""
    try:
        jax.device_put(matrix(9, 1), NamedSharding(line(), P("x")))
    except ValueError as error:
        return str(error)
    return None


if __name__ == "__main__":
    print(json.dumps({name: run() for name, run in EXPERIMENTS.items()}))
