"""Makes one virtual environment from a hashed lock, never half.

An environment counts only when its completion mark is there and it lies where it was made, because
its scripts name their interpreter in full. The mark is written last, so an interrupted creation is
removed and made again. Calls at the same time wait for each other.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from ci_tools.edges.process import stream
from ci_tools.errors import InfrastructureError, UsageError

MARK = "jax-gate-complete"
INSTALL_SECONDS = 1800.0
_CHANGES_PYTHON = (
    "PYTHONEXECUTABLE",
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONPLATLIBDIR",
    "PYTHONSAFEPATH",
    "PYTHONSTARTUP",
    "PYTHONUSERBASE",
    "VIRTUAL_ENV",
)
_SETTINGS_OF_PIP = (
    "PIP_CACHE_DIR",
    "PIP_CERT",
    "PIP_CLIENT_CERT",
    "PIP_CONFIG_FILE",
    "PIP_DEFAULT_TIMEOUT",
    "PIP_DISABLE_PIP_VERSION_CHECK",
    "PIP_EXTRA_INDEX_URL",
    "PIP_FIND_LINKS",
    "PIP_INDEX_URL",
    "PIP_KEYRING_PROVIDER",
    "PIP_NO_CACHE_DIR",
    "PIP_NO_INDEX",
    "PIP_PROXY",
    "PIP_RETRIES",
    "PIP_TIMEOUT",
    "PIP_TRUSTED_HOST",
)


def folder_of(state: Path, name: str, lock: Path, python_version: str) -> Path:
    """Return where the environment of a lock and a Python version lies.

    Raises:
        UsageError: The lock cannot be read.
    """
    text = f"python {python_version}\n".encode() + read_lock(lock)
    return state / "venvs" / f"{name}-{hashlib.sha256(text).hexdigest()[:16]}"


def _is_complete(folder: Path) -> bool:
    is_whole = (folder / MARK).is_file() and os.access(folder / "bin" / "python", os.X_OK)
    return is_whole and _is_in_place(folder)


def _is_in_place(folder: Path) -> bool:
    """Whether it lies where `python -m venv` made it, by the command that this recorded."""
    try:
        settings = (folder / "pyvenv.cfg").read_text(encoding="utf-8")
    except OSError:
        return False
    _, _, made_at = settings.partition(" -m venv ")
    return made_at.splitlines()[:1] == [str(folder)]


@contextlib.contextmanager
def _exclusive(path: Path, report: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock file; the kernel releases it when the process ends, however it ends."""
    with path.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report(f"waiting for another process that makes {path.stem}")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def make_venv(
    folder: Path,
    find: Callable[[], Path],
    lock: Path,
    report: Callable[[str], None],
) -> Path:
    """Return the interpreter of the environment in `folder`; make it where it is not complete.

    Args:
        folder: Where it lies.
        find: Returns the interpreter that makes it; called only when it is needed.
        lock: The hashed lock that is installed.
        report: Gets the progress.

    Raises:
        UsageError: The lock cannot be read.
        InfrastructureError: The installation failed.
    """
    folder = folder.resolve()  # one name, by whatever link it was reached
    python = folder / "bin" / "python"
    if _is_complete(folder):
        return python
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _exclusive(folder.with_suffix(".lock"), report):
        if not _is_complete(folder):
            _make(folder, find(), lock, report)
    return python


def read_lock(lock: Path) -> bytes:
    """Return the content of a lock.

    Raises:
        UsageError: It cannot be read.
    """
    try:
        return lock.read_bytes()
    except OSError as error:
        raise UsageError(
            f"the lock cannot be read: {error.strerror}", path=str(lock), fix="make lock"
        ) from error


def _make(folder: Path, interpreter: Path, lock: Path, report: Callable[[str], None]) -> None:
    content = read_lock(lock)
    if folder.exists():
        report(f"removing {folder.name}, which is not finished or was made elsewhere")
        _remove(folder)
    count = sum(b"==" in line for line in content.splitlines() if not line.startswith(b"#"))
    report(f"making {folder.name}: {count} packages from {lock.name}")
    started = time.monotonic()
    log = folder.with_suffix(".log")
    with log.open("w", encoding="utf-8") as output:
        _step(
            [str(interpreter), "-m", "venv", str(folder)],
            output.write,
            f"Python at {interpreter} cannot make a virtual environment",
            log,
        )
        _step(
            [
                str(folder / "bin" / "python"),
                "-m",
                "pip",
                "install",
                "--no-input",
                "--disable-pip-version-check",
                "--progress-bar=off",
                "--require-hashes",
                "--only-binary=:all:",
                f"--report={folder / 'install-report.json'}",
                f"--requirement={lock}",
            ],
            _condense(output.write, report),
            f"{lock.name} cannot be installed",
            log,
        )
    (folder / MARK).write_text("ok\n", encoding="utf-8")
    report(f"made {folder.name} in {time.monotonic() - started:.0f} s")


def _remove(folder: Path) -> None:
    """Free the folder's name at once, also while a killed creation's orphans still write there."""
    aside = folder.with_name(f"{folder.name}.{os.getpid()}.removed")
    folder.rename(aside)
    shutil.rmtree(aside, ignore_errors=True)


def _step(argv: list[str], write: Callable[[str], object], failure: str, log: Path) -> None:
    last: list[str] = []

    def on_line(line: str) -> None:
        write(line + "\n")
        if line.strip():
            last[:] = [*last[-2:], line.strip()]

    code = stream(argv, on_line, env=clean_variables(os.environ), timeout_seconds=INSTALL_SECONDS)
    if code != 0:
        raise InfrastructureError(
            f"{failure} (exit {code}): {' / '.join(last)}",
            fix=f"read {log}; check the network and the package index, then run again",
        )


def _condense(
    write: Callable[[str], object], report: Callable[[str], None]
) -> Callable[[str], object]:
    """Pass everything to the log, and to the report what a person waits for."""

    def on_text(text: str) -> None:
        write(text)
        line = text.strip()
        if line.startswith(("Downloading", "Installing collected")):
            report(f"  {line[:100]}")

    return on_text


def clean_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables without those that would change what is installed, or where.

    Index, certificate and proxy settings stay: they decide only where the same files come from.
    """
    return {
        key: value
        for key, value in variables.items()
        if key not in _CHANGES_PYTHON and (not key.startswith("PIP_") or key in _SETTINGS_OF_PIP)
    }
