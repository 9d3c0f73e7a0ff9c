"""The cores and the memory that are really there."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

UNLIMITED_BYTES = 1 << 60
_CGROUPS = Path("/sys/fs/cgroup")


def count_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0))


def find_memory_bytes() -> int:
    """Return the smallest of `MemAvailable` and what each cgroup on the path still leaves."""
    limits = [_available_bytes(), *_cgroup_rooms()]
    return min(limits)


def _available_bytes() -> int:
    for line in _read(Path("/proc/meminfo")).splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return UNLIMITED_BYTES


def _cgroup_rooms() -> Iterator[int]:
    """The bytes that each limit of cgroup v2 and v1 leaves, from the process's group upward."""
    for row in _read(Path("/proc/self/cgroup")).splitlines():
        _, _, rest = row.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers == "":
            yield from _rooms(_CGROUPS, path, ("memory.max", "memory.current"))
        elif "memory" in controllers.split(","):
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes")
            yield from _rooms(_CGROUPS / "memory", path, names)


def _rooms(base: Path, path: str, names: Sequence[str]) -> Iterator[int]:
    parts = [part for part in path.split("/") if part not in ("", "..")]
    for count in range(len(parts), -1, -1):
        folder = base.joinpath(*parts[:count])
        limit, used = (_read(folder / name).strip() for name in names)
        if limit.isdigit() and int(limit) < UNLIMITED_BYTES:
            yield max(0, int(limit) - (int(used) if used.isdigit() else 0))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
