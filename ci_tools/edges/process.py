"""The one door to subprocesses: run a command, capture or stream it, bound it in time."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ci_tools.errors import InfrastructureError

GRACE_SECONDS = 5.0


@dataclass(frozen=True, kw_only=True)
class Completed:
    """A finished command: its exit code (negative: the signal) and what it printed."""

    argv: tuple[str, ...]
    code: int
    stdout: str
    stderr: str

    def last_lines(self, count: int = 3) -> str:
        """Return the last `count` non-empty lines of standard error, else of standard output."""
        text = self.stderr if self.stderr.strip() else self.stdout
        return " / ".join([line.strip() for line in text.splitlines() if line.strip()][-count:])


def run(
    argv: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout_seconds: float = 60.0,
    stdin: str | None = None,
) -> Completed:
    """Run a command to its end and capture what it prints.

    Raises:
        InfrastructureError: The program does not exist, cannot be started, or ran out of time.
    """
    try:
        done = subprocess.run(
            list(argv),
            cwd=cwd,
            env=None if env is None else dict(env),
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_seconds,
            check=False,
        )
    except OSError as error:
        raise InfrastructureError(f"cannot start {argv[0]}: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise InfrastructureError(
            f"`{' '.join(argv[:4])} ...` did not end within {timeout_seconds:g} s"
        ) from error
    return Completed(argv=tuple(argv), code=done.returncode, stdout=done.stdout, stderr=done.stderr)


def stream(
    argv: Sequence[str],
    on_line: Callable[[str], None],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout_seconds: float | None = None,
) -> int:
    """Run a command in its own process group and hand over each line that it prints.

    Standard error is merged into standard output. On an interrupt or a time-out the whole group
    gets SIGTERM, and SIGKILL after `GRACE_SECONDS`.

    Returns:
        The exit code; negative is the signal that ended it.

    Raises:
        InfrastructureError: The program cannot be started or ran out of time.
    """
    try:
        child = subprocess.Popen(
            list(argv),
            cwd=cwd,
            env=None if env is None else dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        raise InfrastructureError(f"cannot start {argv[0]}: {error.strerror}") from error
    expired = threading.Event()
    timer = threading.Timer(timeout_seconds or 0.0, _expire, (child, expired))
    timer.daemon = True
    if timeout_seconds is not None:
        timer.start()
    assert child.stdout is not None
    try:
        for line in child.stdout:
            on_line(line.rstrip("\n"))
        code = child.wait()
    except BaseException:
        stop_group(child)  # it may still print while it ends: the pipe stays open until then
        raise
    finally:
        timer.cancel()
        child.stdout.close()
    if expired.is_set():
        raise InfrastructureError(f"`{' '.join(argv[:4])} ...` ran over {timeout_seconds:g} s")
    return code


def _expire(child: subprocess.Popen[str], expired: threading.Event) -> None:
    expired.set()
    stop_group(child)


def stop_group(child: subprocess.Popen[Any]) -> None:
    """Stop a child started in its own session: SIGTERM, a grace period, SIGKILL."""
    for number, wait_seconds in ((signal.SIGTERM, GRACE_SECONDS), (signal.SIGKILL, GRACE_SECONDS)):
        try:
            os.killpg(child.pid, number)
        except ProcessLookupError:
            return
        try:
            child.wait(timeout=wait_seconds)
            if number is signal.SIGKILL:
                return
        except subprocess.TimeoutExpired:
            continue
