"""What the machine gives the end-to-end tests: programs, ports, services, an environment."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

PROGRAMS = ("git", "podman", "runc", "docker-registry")
READY_SECONDS = 30.0
STOP_SECONDS = 10.0
# What would change what the project's commands do, or make a step believe in another CI.
FOREIGN_PREFIXES = ("GITHUB_", "ACTIONS_", "RUNNER_", "DOCKER_", "PYTEST_", "PYTHON", "GIT_CONFIG")
FOREIGN = ("CI", "ENGINE", "ONLY", "BASE_IMAGE", "VIRTUAL_ENV", "GIT_DIR", "GIT_WORK_TREE")


def require_programs() -> None:
    """Fail, and say how to get them, where a program is missing: a skip would look like green."""
    missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        raise RuntimeError(f"missing: {', '.join(missing)}\n  fix: tests/e2e/provision.sh")


def clean_environment() -> dict[str, str]:
    """Return this process's environment without what belongs to this test run alone.

    The environment's own bin folder leaves PATH too: the steps of a workflow have to find the
    machine's `python3`.
    """
    own = str(Path(sys.executable).parent)
    kept = {
        key: value
        for key, value in os.environ.items()
        if key not in FOREIGN and not key.startswith(FOREIGN_PREFIXES)
    }
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    kept["PATH"] = os.pathsep.join(folder for folder in folders if folder != own)
    return kept


def free_port() -> int:
    """Return a port of the loopback interface that nothing listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def run(
    argv: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout_seconds: float = 300.0,
) -> str:
    """Run a command and return its standard output.

    Raises:
        RuntimeError: It failed; the message holds the end of what it printed.
    """
    done = subprocess.run(
        [str(part) for part in argv],
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout_seconds,
        check=False,
    )
    if done.returncode != 0:
        said = (done.stdout + done.stderr)[-3000:]
        raise RuntimeError(f"{' '.join(map(str, argv))}: exit code {done.returncode}\n{said}")
    return done.stdout


@contextlib.contextmanager
def serve(
    argv: Sequence[str | Path],
    *,
    is_ready: Callable[[], bool],
    log: Path,
    env: Mapping[str, str] | None = None,
) -> Iterator[None]:
    """Run a service for the length of the block, in a session of its own."""
    with log.open("wb") as output:
        child = subprocess.Popen(
            [str(part) for part in argv],
            cwd=log.parent,  # where conmon notes that it ran out of memory
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        _wait_until_ready(child, is_ready, log)
        yield
    finally:
        _stop(child)


def _wait_until_ready(
    child: subprocess.Popen[bytes], is_ready: Callable[[], bool], log: Path
) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while not is_ready():
        if child.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"{child.args!r} does not serve:\n{log.read_text()[-3000:]}")
        time.sleep(0.05)


def _stop(child: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(timeout=STOP_SECONDS)
            return


def accepts(port: int) -> bool:
    """Return whether something listens on a port of the loopback interface."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def answers(path: Path) -> bool:
    """Return whether something listens on a socket in the file system."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
        return True
    return False


def processes_naming(folder: Path) -> list[str]:
    """Return the command lines of other processes that name `folder`."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if str(folder) in words:
                found.append(f"{entry.name}: {words.strip()}")
    return found
