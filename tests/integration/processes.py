"""What tests ask of processes that they, or what they started, left running."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path


def wait_until(holds: Callable[[], object], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def end(process: subprocess.Popen[str]) -> None:
    """End a process that a failing test may have left."""
    if process.poll() is None:
        process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
