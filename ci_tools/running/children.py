"""One test process: how it starts, how it is asked for its stacks, and how it is ended."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ci_tools.running.job import JOB_VARIABLE

TOOL_FOLDER = Path(__file__).resolve().parents[2]
STACK_SECONDS = 1.0
TERM_SECONDS = 3.0  # less than who ends the supervisor waits, so that it can still write the end
_DROPPED = ("PYTHONSAFEPATH", "PYTHONPATH", "PYTHONOPTIMIZE", "PYTHONWARNINGS", JOB_VARIABLE)
_DROPPED_PREFIXES = ("PYTEST_", "_PYTEST_")


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a process ended.

    Attributes:
        exit_code: Its exit code; None when a signal ended it.
        signal: The signal's number; None when it exited.
        ended_by: `exit`, or who ended it: `timeout` or `interrupt`.
        seconds: Wall time.
        cpu_seconds: User and system time of the process and of what it waited for.
        peak_bytes: Largest resident size of the process.
    """

    exit_code: int | None
    signal: int | None
    ended_by: str
    seconds: float
    cpu_seconds: float
    peak_bytes: int


@dataclass
class Child:
    """A running test process; `index` is its place in the worklist."""

    index: int
    path: str
    process: subprocess.Popen[bytes]
    deadline: float
    started: float = field(default_factory=time.monotonic)
    ended_by: str = "exit"
    _next_step: float = 0.0
    _steps: list[tuple[signal.Signals, float]] = field(default_factory=list)

    def poll(self, now: float) -> Ended | None:
        """Return how the process ended, or None while it runs; past its deadline, end it."""
        pid, status, usage = os.wait4(self.process.pid, os.WNOHANG)
        if pid == 0:
            if self.ended_by == "exit" and now >= self.deadline:
                self.stop("timeout", now)
            self._step(now)
            return None
        self.process.returncode = os.waitstatus_to_exitcode(status)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)  # what the file left running ends with it
        return Ended(
            exit_code=os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
            signal=os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
            ended_by=self.ended_by,
            seconds=round(time.monotonic() - self.started, 3),
            cpu_seconds=round(usage.ru_utime + usage.ru_stime, 3),
            peak_bytes=usage.ru_maxrss * 1024,
        )

    def stop(self, why: str, now: float) -> None:
        """Begin to end the process: stacks into its log, SIGTERM, SIGKILL."""
        if self.ended_by != "exit":
            return
        self.ended_by = why
        self._next_step = now
        self._steps = [(signal.SIGTERM, TERM_SECONDS), (signal.SIGKILL, TERM_SECONDS)]
        if why == "timeout":
            self._steps.insert(0, (signal.SIGUSR1, STACK_SECONDS))

    def _step(self, now: float) -> None:
        if not self._steps or now < self._next_step:
            return
        number, wait_seconds = self._steps.pop(0)
        self._next_step = now + wait_seconds
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if number is signal.SIGUSR1:
                os.kill(self.process.pid, number)
            else:
                os.killpg(self.process.pid, number)


def start_child(
    index: int, path: str, *, job_file: Path, log: Path, timeout_seconds: float
) -> Child:
    """Start pytest on one file in a session of its own, its output going to `log`."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *_OPTIONS, f"--rootdir={Path.cwd()}", path],
            env=make_variables(os.environ, job_file),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return Child(
        index=index, path=path, process=process, deadline=time.monotonic() + timeout_seconds
    )


_OPTIONS = ("-p", "ci_tools.running.plugin", "-p", "no:cacheprovider", "--color=no", "-rA")


def make_variables(inherited: Mapping[str, str], job_file: Path) -> dict[str, str]:
    """Return the variables of a test process: what changes selection or asserts is left out."""
    kept = {
        key: value
        for key, value in inherited.items()
        if key not in _DROPPED and not key.startswith(_DROPPED_PREFIXES)
    }
    return kept | {
        JOB_VARIABLE: str(job_file),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": str(TOOL_FOLDER),
    }
