"""Podman: whether it is here and works, and how to speak to it."""

from __future__ import annotations

import json
import re
import shutil
from typing import Any

from ci_tools.edges.process import run
from ci_tools.errors import InfrastructureError
from ci_tools.image.engines.dialect import Dialect, caller

OLDEST = (4, 0)
ANSWER_SECONDS = 30.0


def find_podman() -> Dialect:
    """Return how to speak to podman on this machine.

    Raises:
        InfrastructureError: The command is missing or too old, or does not work for this user.
    """
    if shutil.which("podman") is None:
        raise InfrastructureError("there is no `podman` command on PATH")
    done = run(["podman", "info", "--format", "json"], timeout_seconds=ANSWER_SECONDS)
    if done.code != 0:
        raise InfrastructureError(f"podman does not work for this user: {done.last_lines(1)}")
    try:
        return read_info(json.loads(done.stdout))
    except (ValueError, KeyError, TypeError) as error:
        raise InfrastructureError(f"`podman info` cannot be read: {error!r}") from error


def read_info(info: Any) -> Dialect:
    """Return the dialect for what `podman info` says.

    Raises:
        InfrastructureError: It is too old.
        ValueError, KeyError, TypeError: The information has another form.
    """
    version = str(info["version"]["Version"])
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if numbers < OLDEST:
        raise InfrastructureError(f"podman {version} is older than {OLDEST[0]}.{OLDEST[1]}")
    rootless = bool(info["host"]["security"]["rootless"])
    own_ids = ("--userns", "keep-id") if rootless else ()
    return Dialect(
        engine="podman",
        version=f"podman {version}" + (", rootless" if rootless else ""),
        user=caller(),
        run_options=("--http-proxy=false", *own_ids),
        build_options=("--pull=never",),
    )
