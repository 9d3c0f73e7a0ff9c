"""Running a command on the terminal's own streams; `edges.process` is for captured ones."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from ci_tools.edges.process import GRACE_SECONDS
from ci_tools.errors import InfrastructureError


def attach(argv: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> int:
    """Run a command with this process's standard output and error, and no input.

    An interrupt reaches the command from the terminal; it is given time to end by itself.

    Returns:
        The exit code; negative is the signal that ended it.

    Raises:
        InfrastructureError: The program cannot be started.
    """
    try:
        child = subprocess.Popen(list(argv), cwd=cwd, env=dict(env), stdin=subprocess.DEVNULL)
    except OSError as error:
        raise InfrastructureError(f"cannot start {argv[0]}: {error.strerror}") from error
    try:
        return child.wait()
    except BaseException:
        _end(child)
        raise


def _end(child: subprocess.Popen[bytes]) -> None:
    """See a child to its end: by itself, by SIGTERM, by SIGKILL."""
    for act, wait_seconds in ((None, 1.0), (child.terminate, GRACE_SECONDS), (child.kill, None)):
        if act is not None:
            act()
        try:
            child.wait(timeout=wait_seconds)
            return
        except subprocess.TimeoutExpired:
            continue
