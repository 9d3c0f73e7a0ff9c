"""Cores and memory: the smallest limit on the path counts, and at least one file always runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci_tools.edges import machine
from ci_tools.edges.machine import UNLIMITED_BYTES, count_cores, find_memory_bytes

MIB = 1024**2


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with 800 MiB available and no control group; its files can be changed."""
    monkeypatch.setattr(machine, "_CGROUPS", tmp_path / "sys")
    read = machine._read
    monkeypatch.setattr(
        machine,
        "_read",
        lambda path: read(tmp_path / str(path)[1:] if str(path).startswith("/proc") else path),
    )
    write(tmp_path / "proc/meminfo", f"MemTotal: 9999 kB\nMemAvailable: {800 * 1024} kB\n")
    return tmp_path


def test_without_limits_the_available_memory_counts(proc: Path) -> None:
    assert find_memory_bytes() == 800 * MIB


def test_where_nothing_can_be_read_nothing_is_limited(proc: Path) -> None:
    (proc / "proc/meminfo").unlink()
    assert find_memory_bytes() == UNLIMITED_BYTES


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({"a/b": (500, 100)}, 400),
        ({"a": (500, 450), "a/b": (300, 0)}, 50),
        ({"a": (500, 0), "a/b": (100, 200)}, 0),
        ({"": (700, 100), "a": (650, 0)}, 600),
        ({"a/c": (1, 0)}, 800),
        ({"a/b": (5000, 0)}, 800),
    ],
)
def test_each_limit_of_version_two_counts_less_its_use(
    proc: Path, limits: dict[str, tuple[int, int]], expected: int
) -> None:
    write(proc / "proc/self/cgroup", "0::/a/b\n")
    write(proc / "sys/a/b/memory.max", "max\n")
    for path, (limit, used) in limits.items():
        write(proc / "sys" / path / "memory.max", f"{limit * MIB}\n")
        write(proc / "sys" / path / "memory.current", f"{used * MIB}\n")
    assert find_memory_bytes() == expected * MIB


def test_the_limits_of_version_one_count(proc: Path) -> None:
    write(proc / "proc/self/cgroup", "7:cpu,memory:/job\n3:freezer:/x\n")
    write(proc / "sys/memory/job/memory.limit_in_bytes", f"{300 * MIB}\n")
    write(proc / "sys/memory/job/memory.usage_in_bytes", f"{100 * MIB}\n")
    write(proc / "sys/memory/memory.limit_in_bytes", f"{(1 << 63) - 4096}\n")
    assert find_memory_bytes() == 200 * MIB


def test_a_path_from_outside_the_namespace_stays_inside(proc: Path) -> None:
    write(proc / "proc/self/cgroup", "0::/../../other\n")
    write(proc / "sys/memory.max", f"{70 * MIB}\n")
    assert find_memory_bytes() == 70 * MIB


def test_the_cores_are_those_that_may_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 5, 7})
    assert count_cores() == 3


def test_this_machine_has_memory() -> None:
    assert 0 < find_memory_bytes() < UNLIMITED_BYTES
