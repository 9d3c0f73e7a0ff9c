"""Images in an engine's store: look one up, pull it, and read what it says about itself."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ci_tools.edges.process import run, stream
from ci_tools.errors import InfrastructureError
from ci_tools.image.engines.dialect import Dialect
from ci_tools.image.words import INPUTS_LABEL

PULL_SECONDS = 3600.0
BEGIN_SECONDS = 15.0
BEGUN = ("Copying", "Getting image source", "Pulling fs layer", "Already exists")
CONNECT_SECONDS = 5.0
MAX_REASON = 100
DOCKER_HUB = {"docker.io": "registry-1.docker.io", "index.docker.io": "registry-1.docker.io"}


@dataclass(frozen=True, kw_only=True)
class ImageFacts:
    """What an engine says about an image.

    Attributes:
        image_id: `sha256:` and 64 hexadecimal digits.
        digests: The registry digests it is known by, without names.
        platform: `os/architecture`.
        labels: All labels.
    """

    image_id: str
    digests: tuple[str, ...]
    platform: str
    labels: Mapping[str, str]

    @property
    def inputs(self) -> str | None:
        """The inputs hash in the image's own label; None where it has none."""
        return self.labels.get(INPUTS_LABEL)


def find_image(dialect: Dialect, reference: str) -> ImageFacts | None:
    """Return the facts of an image in the engine's store; None where it is not there."""
    done = run(
        [dialect.engine, "image", "inspect", reference],
        env=dialect.host_environment(),
        timeout_seconds=60,
    )
    if done.code != 0:
        return None
    try:
        return parse_image_facts(json.loads(done.stdout))
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise InfrastructureError(
            f"{dialect.engine} describes {reference} in a form that cannot be read: {error!r}"
        ) from error


def parse_image_facts(document: Any) -> ImageFacts:
    """Return the facts in the JSON that `image inspect` prints.

    Raises:
        ValueError, KeyError, TypeError, IndexError: It has another form.
    """
    image = document[0]
    image_id = str(image["Id"]).removeprefix("sha256:")
    labels = (image.get("Config") or {}).get("Labels") or image.get("Labels") or {}
    return ImageFacts(
        image_id=f"sha256:{image_id}",
        digests=tuple(str(name).rpartition("@")[2] for name in image.get("RepoDigests") or ()),
        platform=f"{image['Os']}/{image['Architecture']}",
        labels={str(key): str(value) for key, value in labels.items()},
    )


def pull_image(dialect: Dialect, reference: str, report: Callable[[str], None]) -> ImageFacts:
    """Pull an image and return its facts.

    Raises:
        InfrastructureError: The registry cannot be reached, refuses, or has no such image.
    """
    try:
        lines = _pull(dialect, reference, report)
    except InfrastructureError as error:
        raise _cannot_pull(dialect, reference, error.message) from error
    facts = find_image(dialect, reference)
    if facts is None:
        raise _cannot_pull(dialect, reference, shorten_reason(lines[-1]) if lines else "no reason")
    return facts


def _pull(dialect: Dialect, reference: str, report: Callable[[str], None]) -> list[str]:
    """Pull, whatever the outcome, and return what the engine said.

    A registry that refuses is reported by the engine at once. One that swallows connections is
    not: then the pull has a moment to begin, by way of a mirror, before it is given up.
    """
    lines: list[str] = []

    def take(line: str) -> None:
        if line.strip():
            lines.append(line.strip())
            report(f"{dialect.engine}: {line.strip()}")

    command = [dialect.engine, "pull", reference]
    environment = dialect.host_environment()
    if is_silent(reference, os.environ):
        try:
            stream(command, take, env=environment, timeout_seconds=BEGIN_SECONDS)
            return lines
        except InfrastructureError as error:
            if not any(word in line for line in lines for word in BEGUN):
                raise InfrastructureError("the registry does not answer") from error
    stream(command, take, env=environment, timeout_seconds=PULL_SECONDS)
    return lines


def is_silent(reference: str, environ: Mapping[str, str]) -> bool:
    """Return whether the registry swallows connections; with a proxy that cannot be said."""
    if any(key.lower() in ("https_proxy", "http_proxy", "all_proxy") for key in environ):
        return False
    try:
        socket.create_connection(registry_address(reference), timeout=CONNECT_SECONDS).close()
    except TimeoutError:
        return True
    except OSError:
        pass
    return False


def _cannot_pull(dialect: Dialect, reference: str, reason: str) -> InfrastructureError:
    return InfrastructureError(
        f"cannot pull {reference}: {reason}",
        fix=f"check the network, and `{dialect.engine} login` for a private registry; a base "
        "image can be replaced by a copy with BASE_IMAGE=",
    )


def shorten_reason(line: str) -> str:
    """Return the end of a chain of causes, from the first cause that leaves it readable."""
    parts = line.split(": ")
    while len(parts) > 1 and len(": ".join(parts)) > MAX_REASON:
        parts.pop(0)
    return ": ".join(parts)


def registry_address(reference: str) -> tuple[str, int]:
    """Return host and port of the registry in a reference."""
    first, slash, _ = reference.partition("/")
    host = first if slash and (first == "localhost" or "." in first or ":" in first) else ""
    name, _, port = (host or "docker.io").partition(":")
    return DOCKER_HUB.get(name, name), int(port) if port.isdigit() else 443
