"""A script: load a compiled program that another process has saved, and run it.

The arguments are the file and the numbers of the one-dimensional argument. Prints a JSON object
with the result as a hexadecimal float, the number of compilations that took place on the way, and
as a control their number once a program has been compiled here.
"""

from __future__ import annotations

import collections
import json
import pickle
import sys
from pathlib import Path

import jax
import numpy as np
from jax.experimental import serialize_executable

COMPILATION = "/jax/core/compile/backend_compile_duration"


def main(path: Path, numbers: list[float]) -> None:
    events: collections.Counter[str] = collections.Counter()
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, _duration, **_: events.update([event])
    )
    program = serialize_executable.deserialize_and_load(*pickle.loads(path.read_bytes()))
    result = float(program(np.array(numbers, dtype=np.float32)))
    report = {"result": result.hex(), "compilations": events[COMPILATION]}
    jax.jit(lambda x: x + 1.0)(result)
    print(json.dumps(report | {"control": events[COMPILATION]}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), [float(number) for number in sys.argv[2:]])
