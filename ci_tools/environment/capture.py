"""Writes the environment record of a chunk, from inside its environment.

Runs as a process of its own, so that the record does not depend on any test. What cannot be read
is recorded as an error in its place, never left out.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import re
import struct
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ci_tools.edges.machine import find_memory_bytes
from ci_tools.environment.origin import find_origin
from ci_tools.records.layout import ENVIRONMENT, LAUNCH

SCHEMA = 1
_PREFIXES = ("JAX_", "XLA_", "OMP_", "OPENBLAS_", "MKL_", "NUMPYRO_")
_LOCK_LINE = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==([^\s;\\]+)")
_HASH = re.compile(r"--hash=(sha256:[0-9a-f]{64})")


def capture(launch: Mapping[str, Any], lock_text: str) -> dict[str, Any]:
    """Return the record of the interpreter that runs this.

    Args:
        launch: What the host knows: image identity, commit, packages under test.
        lock_text: The hashed lock that the environment was made from.
    """
    return {
        "schema": SCHEMA,
        "status": "ok",
        "image": launch.get("image", {}),
        "commit": launch.get("commit", ""),
        "dirty": launch.get("dirty"),
        "runner": launch.get("runner", {}),
        "python": _attempt(_python),
        "machine": _attempt(_machine),
        "variables": {k: v for k, v in sorted(os.environ.items()) if k.startswith(_PREFIXES)},
        "distributions": _attempt(lambda: _distributions(parse_hashes(lock_text))),
        "packages_under_test": _attempt(lambda: _origins(launch.get("packages", ()))),
        "jax": _attempt(_jax),
    }


def parse_hashes(lock_text: str) -> dict[str, dict[str, Any]]:
    """Return version and hashes by normalised name, as a hashed lock has them."""
    locked: dict[str, dict[str, Any]] = {}
    name = ""
    for line in lock_text.splitlines():
        match = _LOCK_LINE.match(line)
        if match:
            name = normalise(match.group(1))
            locked[name] = {"version": match.group(2), "hashes": []}
        if name:
            locked[name]["hashes"] += _HASH.findall(line)
    return locked


def normalise(name: str) -> str:
    """Return the PEP 503 normal form of a distribution name."""
    return re.sub(r"[-_.]+", "-", name).lower()


def find_unlocked(record: Mapping[str, Any]) -> list[str]:
    """Return `name version` of each distribution that is not as the lock has it."""
    rows = record.get("distributions")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return ["the distributions could not be listed"]
    foreign = [row for row in rows if not row.get("is_locked") and not row.get("is_in_tree")]
    return [f"{row.get('name')} {row.get('version')}" for row in foreign]


def _distributions(locked: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {}
    for found in sorted(importlib.metadata.distributions(), key=_is_in_tree):
        name = normalise(found.metadata["Name"] or "")
        entry = locked.get(name)
        is_locked = entry is not None and entry["version"] == found.version
        rows.setdefault(
            name,
            {
                "name": name,
                "version": found.version,
                "is_locked": is_locked,
                "is_in_tree": _is_in_tree(found),
                "hashes": list(entry["hashes"]) if entry is not None and is_locked else [],
            },
        )
    return [rows[name] for name in sorted(rows)]


def _is_in_tree(found: importlib.metadata.Distribution) -> bool:
    """Whether this is what an editable installation left in the root of the tree under test."""
    return Path(str(found.locate_file(""))).resolve() == Path.cwd().resolve()


def _python() -> dict[str, Any]:
    return {
        "version": platform.python_version(),
        "implementation": platform.python_implementation(),
        "abi": sysconfig.get_config_var("SOABI") or "",
        "bits": struct.calcsize("P") * 8,
        "platform": sysconfig.get_platform(),
        "libc": " ".join(platform.libc_ver()),
        "executable": sys.executable,
        "prefix": sys.prefix,
        "user_site": bool(sys.flags.no_user_site == 0),
    }


def _machine() -> dict[str, Any]:
    fields = _cpu_fields(Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    return {
        "kernel": platform.release(),
        "cpu": fields.get("model name", platform.machine()),
        "isa": find_isa(fields.get("flags", "").split()),
        "cores": len(os.sched_getaffinity(0)),
        "memory_available_bytes": find_memory_bytes(),
        "uid": os.getuid(),
    }


def _cpu_fields(text: str) -> dict[str, str]:
    first = text.partition("\n\n")[0]
    pairs = (line.partition(":") for line in first.splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}


def find_isa(flags: Sequence[str]) -> str:
    """Return the highest vector instruction set among the processor's flags."""
    known = (("avx512f", "AVX512"), ("avx2", "AVX2"), ("avx", "AVX"), ("sse4_2", "SSE4_2"))
    return next((name for flag, name in known if flag in flags), "unknown")


def _origins(packages: Sequence[str]) -> dict[str, str]:
    return {package: str(find_origin(package) or "") for package in packages}


def _jax() -> dict[str, Any]:
    import jax

    return {
        "version": jax.__version__,
        "backend": jax.default_backend(),
        "devices": [str(device) for device in jax.devices()],
    }


def _attempt(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except Exception as error:  # the record of a broken environment is the record that matters
        return {"error": f"{type(error).__name__}: {error}"}


def main(arguments: Sequence[str]) -> int:
    """Write the record into the chunk's folder named on the command line."""
    folder, lock = Path(arguments[0]), Path(arguments[1])
    launch = json.loads((folder / LAUNCH).read_text(encoding="utf-8"))
    lock_text = lock.read_text(encoding="utf-8") if lock.is_file() else ""
    text = json.dumps(capture(launch, lock_text), indent=1, sort_keys=True) + "\n"
    (folder / ENVIRONMENT).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
