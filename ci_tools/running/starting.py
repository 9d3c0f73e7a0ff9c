"""Starts test processes: forked from the zygote where it serves, else fresh ones."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ci_tools.compilation.overlay import FOLDER_VARIABLE, SETTINGS
from ci_tools.running.children import Child
from ci_tools.running.forking import ForkRequest, Zygote, ZygoteError
from ci_tools.running.job import JOB_VARIABLE

TOOL_FOLDER = Path(__file__).resolve().parents[2]
_OPTIONS = ("-p", "ci_tools.running.plugin", "-p", "no:cacheprovider", "--color=no", "-rA")
_DROPPED = ("PYTHONSAFEPATH", "PYTHONPATH", "PYTHONOPTIMIZE", "PYTHONWARNINGS", JOB_VARIABLE)
_DROPPED_PREFIXES = ("PYTEST_", "_PYTEST_", "CI_TOOLS_")


@dataclass(frozen=True, kw_only=True)
class Start:
    """What one test process is started for.

    Attributes:
        index: The file's place in the worklist.
        path: The test file.
        job: Its job description.
        log: Gets what it prints.
        timeout_seconds: Wall time that it may take.
        cache: The folder for its compiled programs.
    """

    index: int
    path: str
    job: Path
    log: Path
    timeout_seconds: float
    cache: Path


class Starter:
    """Starts processes for one worklist.

    Args:
        modules: What the zygote imports; none: every process is a fresh one.
        log: Gets what the zygote prints.
        report: Gets one line whenever the way of starting changes, with the reason.
    """

    def __init__(self, modules: Sequence[str], log: Path, report: Callable[[str], None]) -> None:
        self._report = report
        self._zygote: Zygote | None = None
        self.description: dict[str, Any] = {"mode": "fresh", "modules": list(modules)}
        if not modules:
            return
        try:
            self._zygote = Zygote(modules, make_variables(os.environ), log)
        except (ZygoteError, OSError) as error:
            self._give_up(str(error))
            return
        imported = self._zygote.imported
        self.description |= {"mode": "fork", **imported}
        failed = imported.get("failed") or {}
        count = len(modules) - len(failed)
        report(f"each file is forked: {count} modules imported once, in {imported['seconds']} s")
        for name, why in failed.items():
            report(f"  not imported: {name}: {why}")

    @property
    def pids(self) -> set[int]:
        """The processes that are nobody else's to reap."""
        return set() if self._zygote is None else {self._zygote.pid}

    def start(self, start: Start, *, fresh: bool = False) -> Child:
        """Start pytest on one file, forked if that is possible and not `fresh`."""
        deadline = time.monotonic() + start.timeout_seconds
        variables = make_variables(os.environ) | {
            JOB_VARIABLE: str(start.job),
            FOLDER_VARIABLE: str(start.cache),
        }
        arguments = [*_OPTIONS, f"--rootdir={Path.cwd()}", start.path]
        pid = None if fresh else self._fork("pytest", arguments, variables, start.log)
        if pid is not None:
            return Child(
                index=start.index, path=start.path, pid=pid, deadline=deadline, is_fork=True
            )
        process = _start_fresh("pytest", arguments, variables, start.log)
        return Child(
            index=start.index,
            path=start.path,
            pid=process.pid,
            deadline=deadline,
            process=process,
        )

    def _fork(
        self, module: str, arguments: Sequence[str], variables: Mapping[str, str], log: Path
    ) -> int | None:
        if self._zygote is None:
            return None
        request = ForkRequest(
            module=module, arguments=arguments, variables=variables, folder=Path.cwd(), log=log
        )
        try:
            return self._zygote.fork(request)
        except ZygoteError as error:
            self._give_up(str(error))
            return None

    def _give_up(self, reason: str) -> None:
        self._report(f"a fresh process for each file: the zygote cannot serve: {reason}")
        self.description |= {"mode": "fresh", "reason": reason}
        self.close()

    def close(self) -> None:
        """End the zygote; what it forked goes on."""
        if self._zygote is not None:
            self._zygote.close()
            self._zygote = None


def _start_fresh(
    module: str, arguments: Sequence[str], variables: Mapping[str, str], log: Path
) -> subprocess.Popen[bytes]:
    with log.open("wb") as output:
        return subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            env=dict(variables),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def make_variables(inherited: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a test process: what changes selection or asserts is left out."""
    kept = {
        key: value
        for key, value in inherited.items()
        if key not in _DROPPED and not key.startswith(_DROPPED_PREFIXES)
    }
    own = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(TOOL_FOLDER)}
    return kept | own | SETTINGS
