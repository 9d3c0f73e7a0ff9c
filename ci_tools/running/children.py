"""One test process: how it is watched, asked for its stacks, and ended."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from dataclasses import dataclass, field

STACK_SECONDS = 1.0
TERM_SECONDS = 3.0  # less than who ends the supervisor waits, so that it can still write the end


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
    """A running test process, the leader of its session.

    Attributes:
        index: Its place in the worklist.
        path: The test file.
        pid: Its process id.
        deadline: The monotonic time at which it is ended.
        is_fork: Whether it was forked from the zygote.
        process: Its handle, where this process started it.
    """

    index: int
    path: str
    pid: int
    deadline: float
    is_fork: bool = False
    process: subprocess.Popen[bytes] | None = None
    started: float = field(default_factory=time.monotonic)
    ended_by: str = "exit"
    _next_step: float = 0.0
    _steps: list[tuple[signal.Signals, float]] = field(default_factory=list)

    def poll(self, now: float) -> Ended | None:
        """Return how the process ended, or None while it runs; past its deadline, end it."""
        pid, status, usage = os.wait4(self.pid, os.WNOHANG)
        if pid == 0:
            if self.ended_by == "exit" and now >= self.deadline:
                self.stop("timeout", now)
            self._step(now)
            return None
        if self.process is not None:
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
                os.kill(self.pid, number)
            else:
                os.killpg(self.pid, number)
