"""The variables and the launcher that every engine gives a command."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from ci_tools.errors import InfrastructureError
from ci_tools.image.identity import Ending, Launch

_PROGRAMS = Path(__file__).parent.parent / "inside"
CACHE_FOLDERS = {
    "XDG_CACHE_HOME": "cache",
    "XDG_CONFIG_HOME": "config",
    "XDG_DATA_HOME": "data",
    "XDG_STATE_HOME": "state",
    "JAX_COMPILATION_CACHE_DIR": "cache/jax",
}


@functools.cache
def program_text(name: str) -> str:
    """Return the text of a program that is sent along: `launcher` or `survey`."""
    return (_PROGRAMS / f"{name}.py").read_text(encoding="utf-8")


def inside_variables(scratch: str, path: str, added: Mapping[str, str]) -> dict[str, str]:
    """Return the whole environment of a command.

    Args:
        scratch: The folder, as seen inside, that holds the home folder and the caches.
        path: The search path for programs.
        added: The launch's own variables; they win.
    """
    fixed = {
        "PATH": path,
        "HOME": f"{scratch}/home",
        "TMPDIR": scratch,
        "USER": "gate",
        "LOGNAME": "gate",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "JAX_PLATFORMS": "cpu",
        "PYTHONNOUSERSITE": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
    }
    caches = {key: f"{scratch}/home/{folder}" for key, folder in CACHE_FOLDERS.items()}
    return {**fixed, **caches, **added}


def launcher_arguments(
    *, python: str, report: str, directory: str, scratch: str, network: str, count_oom: bool
) -> list[str]:
    """Return the command line of the launcher, up to the command itself."""
    folders = [f"{scratch}/home", *(f"{scratch}/home/{f}" for f in CACHE_FOLDERS.values())]
    spec = {
        "report": report,
        "directory": directory,
        "folders": folders,
        "network": network,
        "count_oom": count_oom,
    }
    return [python, "-I", "-S", "-c", program_text("launcher"), json.dumps(spec)]


def settle_report(launch: Launch, code: int, engine: str) -> Ending:
    """Return how the command ended, from the launcher's report, and remove the report.

    Raises:
        InfrastructureError: The engine never started the launcher, the launcher could not start
            the command, or it was ended from outside before the command was.
    """
    path = launch.results / launch.report_name
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        path.unlink()
    except OSError:
        lines = []
    return read_report(lines, code, engine)


def failure_reason(lines: Sequence[str]) -> str:
    """Return why the launcher could not start its command; empty where it could."""
    for event in map(json.loads, lines):
        if event["event"] == "failed":
            return str(event["reason"])
    return ""


def read_report(lines: Sequence[str], code: int, engine: str) -> Ending:
    """Return the ending that the lines of a launcher's report tell; errors as `settle_report`."""
    events = {event["event"]: event for event in map(json.loads, lines)}
    if ended := events.get("ended"):
        return Ending(code=int(ended["code"]), oom_kills=ended["oom_kills"])
    if failed := events.get("failed"):
        raise InfrastructureError(
            f"{engine} cannot start `{failed['program']}` in the environment: {failed['reason']}",
            fix="name a program that the environment holds, or a file of the tree",
        )
    if "started" in events:
        raise InfrastructureError(
            f"{engine} ended with {code} while the command was still running: something outside "
            "stopped the environment (out of memory on the host, a restarted engine, a kill)",
            fix="run it again; where it happens again, read the engine's and the kernel's log",
        )
    raise InfrastructureError(
        f"{engine} failed with exit code {code} before it started the command; its own message "
        "is above",
        fix=f"mend {engine}, or choose another engine with ENGINE=",
    )
