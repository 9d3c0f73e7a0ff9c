"""The supervisor's side of the zygote: starts it, asks it for forks, and says why it cannot serve.

A fork's parent ends at once, so the test process is handed to the nearest reaper above: this
process, which therefore reaps it like a child of its own, also when the zygote has died.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

IMPORT_SECONDS = 180.0
FORK_SECONDS = 30.0
_SET_CHILD_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of linux/prctl.h


@dataclass(frozen=True, kw_only=True)
class ForkRequest:
    """What a forked process becomes.

    Attributes:
        module: Run as `python -m` runs it.
        arguments: Its command line.
        variables: Its whole environment.
        folder: Where it runs.
        log: Gets what it prints.
    """

    module: str
    arguments: Sequence[str]
    variables: Mapping[str, str]
    folder: Path
    log: Path

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "module": self.module,
            "arguments": list(self.arguments),
            "variables": dict(self.variables),
            "folder": str(self.folder),
            "log": str(self.log),
        }


class ZygoteError(Exception):
    """The zygote cannot serve; the message says why."""


class Zygote:
    """A running zygote.

    Args:
        modules: What it imports.
        variables: Its environment: the one that the test processes get.
        log: Gets what it prints.

    Raises:
        ZygoteError: It does not start, takes too long to import, or may not fork.
    """

    def __init__(self, modules: Sequence[str], variables: Mapping[str, str], log: Path) -> None:
        become_reaper()
        ours, theirs = socket.socketpair()
        with log.open("wb") as output, theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "ci_tools.running.zygote", str(theirs.fileno()), *modules],
                env=dict(variables),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        self._socket = ours
        self._socket.settimeout(IMPORT_SECONDS)
        self._answers = ours.makefile("rb")
        try:
            self.imported = self._answer()
        except ZygoteError:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def fork(self, request: ForkRequest) -> int:
        """Return the process id of a new test process, which leads a session of its own.

        Raises:
            ZygoteError: There is no new process; the zygote is of no further use.
        """
        self._socket.settimeout(FORK_SECONDS)
        try:
            self._socket.sendall(json.dumps(request.to_json()).encode("ascii") + b"\n")
        except OSError as error:
            raise ZygoteError(f"it has died ({error.strerror})") from error
        return int(self._answer()["pid"])

    def _answer(self) -> dict[str, Any]:
        try:
            line = self._answers.readline()
        except TimeoutError as error:
            raise ZygoteError("it does not answer") from error
        except OSError as error:
            raise ZygoteError(f"it has died ({error.strerror})") from error
        if not line.endswith(b"\n"):
            raise ZygoteError("it has died")
        answer: dict[str, Any] = json.loads(line)
        if answer.get("unfit"):
            raise ZygoteError(str(answer["unfit"]))
        return answer

    def close(self) -> None:
        """End it; what it forked goes on."""
        with contextlib.suppress(OSError):
            self._answers.close()
        self._socket.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait()


def become_reaper() -> None:
    """Have orphans below this process handed to it.

    Raises:
        ZygoteError: The kernel refuses.
    """
    if ctypes.CDLL(None, use_errno=True).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise ZygoteError(f"no orphan can be reaped: {os.strerror(ctypes.get_errno())}")


def reap_strays(known: set[int]) -> None:
    """Reap orphans that tests left behind and that have ended; the known are left to others."""
    while True:
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if ended is None or ended.si_pid in known:
            return
        with contextlib.suppress(ChildProcessError):
            os.waitpid(ended.si_pid, os.WNOHANG)
