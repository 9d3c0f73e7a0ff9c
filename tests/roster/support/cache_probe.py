"""A script: compile a small program once and print what the persistent compilation cache did.

The environment says where the cache is. The arguments are the length of the array, and a factor
that becomes a constant of the program. Prints one JSON object: the counts of cache requests, hits
and misses that JAX's monitoring reports, and the result as a hexadecimal float.
"""

from __future__ import annotations

import collections
import json
import sys

import jax
import jax.numpy as jnp
import numpy as np

PREFIX = "/jax/compilation_cache/"
EVENTS = {
    "requests": "compile_requests_use_cache",
    "hits": "cache_hits",
    "misses": "cache_misses",
}


def main(length: int, factor: float) -> None:
    counts: collections.Counter[str] = collections.Counter()
    jax.monitoring.register_event_listener(lambda event, **_: counts.update([event]))

    @jax.jit
    def program(x: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(0, 20, lambda _, y: jnp.sin(factor * y) + 0.1 * x, x).sum()

    result = float(program(np.linspace(0.0, 1.0, length)))
    report: dict[str, object] = {name: counts[PREFIX + event] for name, event in EVENTS.items()}
    print(json.dumps(report | {"result": result.hex()}))


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
