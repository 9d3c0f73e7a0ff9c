"""Virtual environments by the lock they are made from: same lock and Python, same folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ci_tools.provision.interpreters import find_interpreter
from ci_tools.provision.making import folder_of, make_venv

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
    folder = folder_of(state, name, lock, python_version)

    def find() -> Path:
        return find_interpreter(
            python_version, state=state, uv_lock=lock.parent / UV_LOCK, report=report
        )

    return make_venv(folder, find, lock, report)
