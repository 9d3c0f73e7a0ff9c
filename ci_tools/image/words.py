"""Names that several parts of the image family share: references, digests, labels."""

from __future__ import annotations

import re
from enum import StrEnum

INPUTS_LABEL = "io.jax-gate.inputs"
BASE_ID_LABEL = "io.jax-gate.base-id"
BASE_NAME_LABEL = "org.opencontainers.image.base.name"

_HEX_64 = re.compile(r"[0-9a-f]{64}")
_COMPONENT = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_HOST = r"(?:localhost|[a-z0-9-]+(?:\.[a-z0-9-]+)+|[a-z0-9.-]+(?=:\d))(?::\d{1,5})?"
_NAME = re.compile(rf"{_HOST}(?:/{_COMPONENT})+")


class Engine(StrEnum):
    """What can run the gate's environment, in the order in which they are tried."""

    DOCKER = "docker"
    PODMAN = "podman"
    VENV = "venv"


def is_digest(text: str) -> bool:
    """Return whether `text` is `sha256:` and 64 lowercase hexadecimal digits."""
    algorithm, _, value = text.partition(":")
    return algorithm == "sha256" and _HEX_64.fullmatch(value) is not None


def is_inputs_hash(text: str) -> bool:
    """Return whether `text` is 64 lowercase hexadecimal digits."""
    return _HEX_64.fullmatch(text) is not None


def is_image_name(text: str) -> bool:
    """Return whether `text` is `host[:port]/path` with neither a tag nor a digest.

    The host is required: engines disagree on where a name without one comes from.
    """
    return _NAME.fullmatch(text) is not None
