"""Finds a Python of one minor version on this machine, or has uv fetch it.

Looks on PATH, then in pyenv's versions, then asks uv; a candidate counts only if it runs and says
that it is that version.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from ci_tools.edges.process import run, stream
from ci_tools.errors import CiToolsError, InfrastructureError
from ci_tools.provision.making import folder_of, make_venv

PROBE = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
FETCH_SECONDS = 600.0
HOST_VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"


def find_interpreter(
    version: str, *, state: Path, uv_lock: Path, report: Callable[[str], None]
) -> Path:
    """Return an interpreter of the minor version `version`, for instance `3.13`.

    Args:
        version: The minor version.
        state: Where an interpreter that uv fetches is kept.
        uv_lock: The lock that uv is installed from where it is not on PATH.
        report: Gets the progress.

    Raises:
        InfrastructureError: None was found and none could be fetched; it names three ways out.
    """
    for candidate in find_candidates(version, os.environ, state):
        if is_version(candidate, version):
            return candidate
    return _fetch(version, state, uv_lock, report)


def find_candidates(version: str, variables: Mapping[str, str], state: Path) -> Iterator[Path]:
    """Yield the places where an interpreter of this version may be, best first."""
    if version == HOST_VERSION:
        yield Path(sys.executable)
    on_path = shutil.which(f"python{version}", path=variables.get("PATH"))
    if on_path:
        yield Path(on_path)
    home = Path(variables.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from _newest_first(home / "versions", version)
    yield from _newest_first(state / "pythons", version)


def _newest_first(folder: Path, version: str) -> list[Path]:
    try:
        found = [p for p in folder.glob(f"*{version}*/bin/python{version}") if p.is_file()]
    except OSError:  # another user's folder
        return []
    return sorted(found, key=_patch_key, reverse=True)


def _patch_key(path: Path) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", path.parents[1].name))


def is_version(candidate: Path, version: str) -> bool:
    """Return whether an interpreter runs, can make environments, and is of the minor version."""
    variables = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYENV_V"))}
    try:
        done = run([str(candidate), "-c", PROBE], env=variables, timeout_seconds=30)
    except InfrastructureError:
        return False
    return done.code == 0 and done.stdout.strip() == version


def _fetch(version: str, state: Path, uv_lock: Path, report: Callable[[str], None]) -> Path:
    """Have uv fetch the interpreter into the state folder."""
    report(f"no Python {version} on PATH or in pyenv's versions: fetching one with uv")
    folder = state / "pythons"
    try:
        uv = _find_uv(state, uv_lock, report)
        last: list[str] = []
        code = stream(
            [uv, "python", "install", "--no-bin", "--install-dir", str(folder), version],
            last.append,
            timeout_seconds=FETCH_SECONDS,
        )
        reason = f"uv could not fetch it (exit {code}): {' / '.join(last[-2:])}"
    except CiToolsError as error:
        reason = f"uv could not be had: {error.message}"
    for candidate in _newest_first(folder, version):
        if is_version(candidate, version):
            return candidate
    raise InfrastructureError(
        f"no Python {version} with venv was found on PATH or in pyenv's versions, and {reason}",
        fix=f"one of: (1) install python{version} and its venv module with the system's packages; "
        f"(2) `pyenv install {version}`, or `uv python install {version}`; "
        "(3) use a container engine: ENGINE=docker or ENGINE=podman",
    )


def _find_uv(state: Path, uv_lock: Path, report: Callable[[str], None]) -> str:
    """Uv on PATH, or from its lock in an environment of the Python that runs this."""
    on_path = shutil.which("uv")
    if on_path:
        return on_path
    folder = folder_of(state, "uv", uv_lock, HOST_VERSION)
    python = make_venv(folder, lambda: Path(sys.executable), uv_lock, report)
    return str(python.with_name("uv"))
