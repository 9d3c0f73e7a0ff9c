"""What is known about a process that died: its size, its last words, what the kernel says.

Collects facts and decides nothing: a signal alone proves no cause, and the verdict quotes what is
found here.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SAMPLE_SECONDS = 0.2
SHARE = 0.02  # of the time that sampling one process may cost
LOG_BYTES = 256 * 1024
MAX_WORDS = 12
MAX_MAPPINGS_FILE = Path("/proc/sys/vm/max_map_count")
KERNEL_LOG = Path("/dev/kmsg")
# The first line of a native death; what follows it says where.
_FATAL = re.compile(r"Fatal Python error: |terminate called after throwing|LLVM ERROR: ")
# What is printed when memory, or a mapping of it, is refused.
REFUSALS = (
    "Cannot allocate memory",
    "Failed to materialize symbols",
    "std::bad_alloc",
    "RESOURCE_EXHAUSTED",
    "Out of memory",
    "Unable to allocate",
)


@dataclass
class Watch:
    """The size of one process, sampled while it runs.

    Attributes:
        pid: The process.
        oom_kills_before: The control group's counter when the process started.
        peak_pss_bytes: The largest proportional set size seen; 0: never sampled.
        peak_mappings: The largest number of memory mappings seen.
        samples: How often it was sampled.
    """

    pid: int
    oom_kills_before: int | None = None
    peak_pss_bytes: int = 0
    peak_mappings: int = 0
    samples: int = 0
    _began: float = 0.0
    _due: dict[str, float] = field(default_factory=dict)

    def sample(self, now: float) -> None:
        """Sample what it is time for; what is slow to read is read less often."""
        if self._is_due("pss", now):
            self.peak_pss_bytes = max(self.peak_pss_bytes, read_pss_bytes(self.pid))
            self._wait("pss", now)
        if self._is_due("mappings", now):
            self.peak_mappings = max(self.peak_mappings, count_mappings(self.pid))
            self.samples += 1
            self._wait("mappings", now)

    def _is_due(self, what: str, now: float) -> bool:
        self._began = time.monotonic()
        return now >= self._due.get(what, 0.0)

    def _wait(self, what: str, now: float) -> None:
        cost = time.monotonic() - self._began
        self._due[what] = now + max(SAMPLE_SECONDS, cost / SHARE)


def read_pss_bytes(pid: int) -> int:
    """Return a process's proportional set size; 0 where it cannot be read."""
    for line in _read(Path(f"/proc/{pid}/smaps_rollup")).splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0


def count_mappings(pid: int) -> int:
    """Return how many memory mappings a process has; 0 where it cannot be read."""
    try:
        return Path(f"/proc/{pid}/maps").read_bytes().count(b"\n")
    except OSError:
        return 0


def read_max_mappings() -> int:
    """Return the kernel's limit of mappings for one process; 0 where it cannot be read."""
    text = _read(MAX_MAPPINGS_FILE).strip()
    return int(text) if text.isdigit() else 0


def count_oom_kills() -> int | None:
    """Return how often the kernel killed for memory in this control group; None: no counter."""
    for path in _event_files():
        for line in _read(path).splitlines():
            name, _, value = line.partition(" ")
            if name == "oom_kill" and value.strip().isdigit():
                return int(value)
    return None


def _event_files() -> Iterator[Path]:
    base = Path("/sys/fs/cgroup")
    for row in _read(Path("/proc/self/cgroup")).splitlines():
        _, controllers, group = row.split(":", 2)
        if not controllers:
            yield base / group.strip("/") / "memory.events"
        elif "memory" in controllers.split(","):
            yield base / "memory" / group.strip("/") / "memory.oom_control"
    yield base / "memory.events"
    yield base / "memory" / "memory.oom_control"


def find_kernel_lines(pid: int, log: str) -> list[str]:
    """Return the lines of the kernel's log that say that it killed this process for memory."""
    named = re.compile(rf"(?:Killed process {pid} |oom-kill:.*\bpid={pid}\b)")
    lines = (line.partition(";")[2] or line for line in log.splitlines())
    return [line.strip()[:300] for line in lines if named.search(line)]


def read_kernel_log() -> str:
    """Return what the kernel's log holds; empty where this process may not read it."""
    try:
        descriptor = os.open(KERNEL_LOG, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    rows = []
    try:
        while True:
            try:
                rows.append(os.read(descriptor, 8192))
            except BrokenPipeError:  # the oldest records were overwritten meanwhile
                continue
    except OSError:
        return b"".join(rows).decode("utf-8", "replace")
    finally:
        os.close(descriptor)


def find_last_words(text: str) -> list[str]:
    """Return the lines of a log that say how its process died, the first dozen of them."""
    fatal = _FATAL.search(text)
    before, block = (text, "") if fatal is None else (text[: fatal.start()], text[fatal.start() :])
    refused = [line for line in before.splitlines() if any(word in line for word in REFUSALS)]
    lines = [*refused[-3:], *block.splitlines()]
    return [line[:300] for line in lines if line.strip()][:MAX_WORDS]


def read_tail(path: Path) -> str:
    """Return the end of a log."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - LOG_BYTES))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def gather(watch: Watch, log: Path) -> dict[str, Any]:
    """Return all that is known about a process that did not end as it should."""
    before, after = watch.oom_kills_before, count_oom_kills()
    known = before is not None and after is not None
    return {
        "last_words": find_last_words(read_tail(log)),
        "kernel_log": find_kernel_lines(watch.pid, read_kernel_log()),
        "oom_kills": (after or 0) - (before or 0) if known else None,
        "peak_mappings": watch.peak_mappings,
        "max_mappings": read_max_mappings(),
    }


def _read(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace")
    return ""
