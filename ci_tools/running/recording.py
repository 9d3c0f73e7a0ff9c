"""The process that writes the environment record beside the tests, within a time of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from ci_tools.edges.process import stop_group
from ci_tools.running.starting import TOOL_FOLDER

RECORD_SECONDS = 120.0


class Recording:
    """Writes the environment record of a chunk's folder.

    Args:
        folder: The chunk's folder.
        lock: The hashed lock, relative to the tree.
    """

    def __init__(self, folder: Path, lock: str) -> None:
        self._deadline = time.monotonic() + RECORD_SECONDS
        with (folder / "environment.log").open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "ci_tools.environment.capture", str(folder), lock],
                env={**os.environ, "PYTHONPATH": str(TOOL_FOLDER)},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """Its exit code; None while it runs."""
        return self._process.returncode

    def is_running(self) -> bool:
        """Return whether it still runs; past its time it is ended."""
        if self._process.poll() is None and time.monotonic() >= self._deadline:
            stop_group(self._process)
        return self._process.poll() is None

    def stop(self) -> None:
        """Ask it to end, and end it."""
        stop_group(self._process)

    def kill(self) -> None:
        """End it at once, if it runs."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
