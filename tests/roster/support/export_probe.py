"""A script: save a compiled program, or load one that another process has saved, and run it.

The arguments are `save` or `load`, a file, and the numbers of the program's argument, a vector.
Prints a JSON object with the result as a hexadecimal float, the number of compilations that took
place on the way to it, and as a control their number once another program has been compiled.

Both are processes of their own because an executable that JAX took from its persistent
compilation cache cannot be saved, and the process that runs the tests may have such a cache.
"""

from __future__ import annotations

import collections
import json
import pickle
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import serialize_executable

COMPILATION = "/jax/core/compile/backend_compile_duration"


def energy(x: jax.Array) -> jax.Array:
    return jnp.sum(jnp.sin(x) ** 2)


def main(action: str, path: Path, numbers: list[float]) -> None:
    events: collections.Counter[str] = collections.Counter()
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, _duration, **_: events.update([event])
    )
    x = np.array(numbers, dtype=np.float32)
    if action == "save":
        program = jax.jit(energy).lower(x).compile()
        path.write_bytes(pickle.dumps(serialize_executable.serialize(program)))
    else:
        program = serialize_executable.deserialize_and_load(*pickle.loads(path.read_bytes()))
    report = {"result": float(program(x)).hex(), "compilations": events[COMPILATION]}
    jax.jit(jnp.cos)(x)
    print(json.dumps(report | {"control": events[COMPILATION]}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), [float(number) for number in sys.argv[3:]])
