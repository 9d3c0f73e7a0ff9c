"""Which compiled programs may be used again: those of the same image on the same processor."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping


def compute_key(environment: Mapping[str, str], processor: str) -> str:
    """Return the name of the store for an environment on a processor, 32 hexadecimal digits.

    JAX's own keys cover the program, the options and the library's version, but not what the
    processor can do: a program for another one may not run here, or may round differently.

    Args:
        environment: What names the environment exactly: digest, image id or inputs hash.
        processor: The text of `/proc/cpuinfo`.
    """
    data = {"environment": dict(environment), "processor": _features(processor)}
    text = json.dumps(data, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8")).hexdigest()[:32]


def _features(processor: str) -> dict[str, list[str]]:
    """Model and instruction sets of the first core; what changes while it runs is left out."""
    fields = {}
    for line in processor.partition("\n\n")[0].splitlines():
        name, _, value = line.partition(":")
        fields[name.strip()] = value.split()
    return {name: fields.get(name, []) for name in ("vendor_id", "model name", "flags", "Features")}
