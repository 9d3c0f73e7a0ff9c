"""The inputs hash: what an image is made of, as one number.

It covers the Dockerfile, the hashed lock and the reference of the base image; two trees with the
same hash build the same environment.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from ci_tools.errors import UsageError
from ci_tools.tree import Tree

_BASE = re.compile(r"^ARG[ \t]+BASE_IMAGE=(\S+)[ \t]*$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """What an image is made from.

    Attributes:
        hash: 64 hexadecimal digits.
        base_image: The reference of the base image that the hash covers.
        is_default_base: Whether it is the Dockerfile's own default.
    """

    hash: str
    base_image: str
    is_default_base: bool

    @property
    def short(self) -> str:
        """The first 16 digits, for tags and messages."""
        return self.hash[:16]


def compute_inputs(tree: Tree, base_image: str | None) -> Inputs:
    """Return the inputs of a tree; `base_image` replaces the Dockerfile's default.

    Raises:
        UsageError: A file is missing, or the Dockerfile names no default base image.
    """
    dockerfile = _read(tree, tree.dockerfile)
    requirements = _read(tree, tree.gate_requirements)
    text = dockerfile.decode("utf-8", errors="replace")
    default = parse_base_image(text, tree.relative(tree.dockerfile))
    base = base_image or default
    return Inputs(
        hash=hash_inputs(dockerfile, requirements, base),
        base_image=base,
        is_default_base=base == default,
    )


def hash_inputs(dockerfile: bytes, requirements: bytes, base_image: str) -> str:
    """Return the SHA-256, in hexadecimal, over the three parts, each with its length."""
    total = hashlib.sha256()
    for name, part in (
        ("dockerfile", dockerfile),
        ("requirements", requirements),
        ("base", base_image.encode()),
    ):
        total.update(f"{name} {len(part)}\n".encode())
        total.update(part)
    return total.hexdigest()


def parse_base_image(text: str, path: str) -> str:
    """Return the default of `ARG BASE_IMAGE` in the text of a Dockerfile.

    Raises:
        UsageError: There is none, or more than one.
    """
    found = _BASE.findall(text)
    if len(found) != 1:
        raise UsageError(
            f"expected one `ARG BASE_IMAGE=<reference>`, found {len(found)}, "
            "so the base image is not part of the inputs hash",
            path=path,
            line=1,
            fix="give ARG BASE_IMAGE its default before FROM",
        )
    return str(found[0]).strip("\"'")


def _read(tree: Tree, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"an input of the image cannot be read: {error.strerror}",
            path=tree.relative(path),
            fix="restore the file; `make lock` writes requirements/gate.txt",
        ) from error
