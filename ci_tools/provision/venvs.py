"""Virtual environments by the lock they are made from: same lock and Python, same folder."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from ci_tools.provision.interpreters import find_interpreter
from ci_tools.provision.making import make_venv, read_lock

UV_LOCK = "uv.txt"


def ensure_venv(
    *,
    name: str,
    lock: Path,
    python_version: str,
    state: Path,
    report: Callable[[str], None],
) -> Path:
    """Return the interpreter of the environment of a hashed lock; make it where it is missing.

    Args:
        name: What it is for; the folder is `<state>/venvs/<name>-<hash16>/`.
        lock: The hashed lock; its content and the Python version give the hash.
        python_version: The minor version.
        state: The folder that holds environments.
        report: Gets the progress.

    Raises:
        UsageError: The lock cannot be read.
        InfrastructureError: There is no such Python, or the installation failed.
    """
    text = f"python {python_version}\n".encode() + read_lock(lock)
    folder = state / "venvs" / f"{name}-{hashlib.sha256(text).hexdigest()[:16]}"

    def find() -> Path:
        return find_interpreter(
            python_version, state=state, uv_lock=lock.parent / UV_LOCK, report=report
        )

    return make_venv(folder, find, lock, report)
