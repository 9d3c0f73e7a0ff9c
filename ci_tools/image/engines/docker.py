"""Docker: whether its command and a daemon are here, and how to speak to them."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping
from typing import Any

from ci_tools.edges.process import run
from ci_tools.errors import InfrastructureError
from ci_tools.image.engines.dialect import Dialect, caller

OLDEST = (20, 10)
ANSWER_SECONDS = 15.0
# The plain builder has no build secrets; a builder chosen elsewhere may not load what it builds.
BUILD_VARIABLES = (("DOCKER_BUILDKIT", "1"), ("BUILDX_BUILDER", "default"))


def find_docker() -> Dialect:
    """Return how to speak to docker on this machine.

    Raises:
        InfrastructureError: The command is missing, too old, or podman's imitation; or no daemon
            answers.
    """
    if shutil.which("docker") is None:
        raise InfrastructureError("there is no `docker` command on PATH")
    done = run(["docker", "--version"], timeout_seconds=ANSWER_SECONDS)
    if "podman" in done.stdout.lower():
        raise InfrastructureError("`docker` is podman under another name here")
    done = run(["docker", "version", "--format", "{{json .}}"], timeout_seconds=ANSWER_SECONDS)
    version = read_version(done.stdout, done.last_lines(1), os.environ)
    return Dialect(
        engine="docker",
        version=version,
        user="0:0" if is_rootless() else caller(),
        build_options=("--progress", "plain"),
        variables=BUILD_VARIABLES,
    )


def read_version(text: str, complaint: str, environ: Mapping[str, str]) -> str:
    """Return client and server version from the JSON of `docker version`.

    Raises:
        InfrastructureError: The client is too old, or no server answered.
    """
    try:
        answer: dict[str, Any] = json.loads(text)
    except ValueError:
        answer = {}
    client = str((answer.get("Client") or {}).get("Version", ""))
    numbers = tuple(int(part) for part in re.findall(r"\d+", client)[:2])
    if numbers and numbers < OLDEST:
        raise InfrastructureError(f"docker {client} is older than {OLDEST[0]}.{OLDEST[1]}")
    server = answer.get("Server")
    if not server:
        raise InfrastructureError(explain_silence(complaint, environ))
    words = f"docker {client}, server {server.get('Version', 'unknown')}"
    names = [str(part.get("Name", "")) for part in server.get("Components") or ()]
    return words + (" (podman)" if any("podman" in name.lower() for name in names) else "")


def explain_silence(complaint: str, environ: Mapping[str, str]) -> str:
    """Return why the daemon did not answer, in a line."""
    address = environ.get("DOCKER_HOST") or "the default socket"
    if "permission denied" in complaint.lower():
        return f"this user may not speak to the docker daemon at {address}"
    return f"the `docker` command is here, but no daemon answers at {address}"


def is_rootless() -> bool:
    """Return whether the daemon runs without root: then its user 0 is the caller."""
    done = run(
        ["docker", "info", "--format", "{{json .SecurityOptions}}"], timeout_seconds=ANSWER_SECONDS
    )
    return done.code == 0 and "rootless" in done.stdout
