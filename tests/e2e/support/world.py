"""The world around a scratch tree: a registry with the published images, engines, a Docker API."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.support.containers import Store, make_store, serve_docker_api, serve_registry
from tests.e2e.support.images import Published, publish_base, publish_gate, set_base, set_image
from tests.e2e.support.machine import require_programs

ROOT = Path(__file__).resolve().parents[3]
CACHE = ROOT / ".ci-tools" / "cache"
# All that an image is built from, and the tool that builds it.
COPIED = ("ci_tools", "containers", "requirements", "pyproject.toml", ".dockerignore")


@dataclass(frozen=True, kw_only=True)
class World:
    """What every end-to-end test finds.

    Attributes:
        folder: Where all of it lies.
        registry: `host:port`.
        base: The base image in the registry.
        image: The gate's image in the registry, built from this tree's inputs on that base.
        builder: The store that the image was built in.
        puller: A store that has only what was pulled.
        docker_host: The Docker API of the puller.
    """

    folder: Path
    registry: str
    base: Published
    image: Published
    builder: Store
    puller: Store
    docker_host: str

    def pin(self, root: Path) -> None:
        """Make the tree at `root` the one whose image is published."""
        set_base(root, self.base)
        set_image(root, self.image)


def find_base_archive() -> Path:
    """Return a minimal Debian with Python 3.13, made once."""
    archive = CACHE / "base-trixie.tar"
    if not archive.exists():
        archive.parent.mkdir(parents=True, exist_ok=True)
        part = archive.with_suffix(".part.tar")
        packages = "--include=ca-certificates,python3,python3-venv,git"
        subprocess.run(["mmdebstrap", "--variant=minbase", packages, "trixie", part], check=True)
        part.replace(archive)
    return archive


def copy_inputs(root: Path) -> None:
    """Copy what an image is built from to `root`."""
    root.mkdir()
    for name in COPIED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, root / name)


@contextlib.contextmanager
def make_world() -> Iterator[World]:
    """Build and publish the image, and serve it, for the length of the block."""
    require_programs()
    archive = find_base_archive()
    folder = Path(tempfile.mkdtemp(prefix="jax-gate-"))
    folder.chmod(0o755)
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        port = stack.enter_context(serve_registry(folder / "registry"))
        builder, puller = (_make_store(folder, name, port, stack) for name in ("build", "pull"))
        registry = f"127.0.0.1:{port}"
        base = publish_base(builder, archive, registry)
        copy_inputs(folder / "inputs")
        set_base(folder / "inputs", base)
        yield World(
            folder=folder,
            registry=registry,
            base=base,
            image=publish_gate(builder, folder / "inputs", registry),
            builder=builder,
            puller=puller,
            docker_host=stack.enter_context(serve_docker_api(puller, folder / "run-pull")),
        )


def _make_store(folder: Path, name: str, port: int, stack: contextlib.ExitStack) -> Store:
    run_folder = folder / f"run-{name}"
    run_folder.mkdir()
    store = make_store(folder / name, name=name, run_folder=run_folder, registry_port=port)
    stack.callback(store.remove)
    return store
