"""A base image and the gate's image, built from the tree and published to the loopback registry."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.support.containers import Store
from tests.e2e.support.machine import run

BASE_DIGEST = re.compile(r"^ARG BASE_IMAGE=\S+$", re.MULTILINE)
BUILD_SECONDS = 600.0


@dataclass(frozen=True, kw_only=True)
class Published:
    """An image in the registry.

    Attributes:
        name: `host:port/path`.
        digest: `sha256:` and 64 hexadecimal digits, as the registry knows it.
    """

    name: str
    digest: str

    @property
    def reference(self) -> str:
        """`name@digest`."""
        return f"{self.name}@{self.digest}"


def publish(store: Store, image: str, name: str) -> Published:
    """Push an image of a store and return what the registry calls it."""
    digest_file = store.folder / "pushed-digest"
    store.podman("push", "--quiet", "--digestfile", digest_file, image, name)
    return Published(name=name, digest=digest_file.read_text(encoding="ascii").strip())


def publish_base(store: Store, archive: Path, registry: str) -> Published:
    """Import the root file system in `archive` and publish it as a base image."""
    image = store.podman("import", "--quiet", archive, "localhost/base:trixie")
    return publish(store, image, f"{registry}/base")


def publish_gate(store: Store, root: Path, registry: str) -> Published:
    """Build the gate's image from the tree at `root` with the project's command, and publish it."""
    output = run(
        ["python3", "-m", "ci_tools", "image", "build", "--engine", "podman"],
        cwd=root,
        env=store.environment,
        timeout_seconds=BUILD_SECONDS,
    )
    return publish(store, output.split()[-1], f"{registry}/gate-cpu")


def set_base(root: Path, base: Published) -> None:
    """Make a base image the default of the Dockerfile in the tree at `root`."""
    dockerfile = root / "containers" / "cpu" / "Dockerfile"
    text, count = BASE_DIGEST.subn(
        f"ARG BASE_IMAGE={base.reference}", dockerfile.read_text(encoding="utf-8"), count=1
    )
    if count != 1:
        raise RuntimeError(f"{dockerfile} has no default base image to replace")
    dockerfile.write_text(text, encoding="utf-8")


def set_image(root: Path, image: Published) -> None:
    """Pin an image, built from this tree's inputs, in the image lock of the tree at `root`."""
    inputs = run([sys.executable, "-m", "ci_tools", "image", "inputs"], cwd=root).strip()
    lock = root / "containers" / "cpu" / "image.lock"
    values = {
        "name": image.name,
        "digest": image.digest,
        "media": "manifest",
        "platform": "linux/amd64",
        "inputs": inputs,
        "published": "2000-01-01T00:00:00Z",
    }
    rows = [f'{key} = "{value}"\n' for key, value in values.items()]
    lock.write_text("".join(rows), encoding="utf-8")
