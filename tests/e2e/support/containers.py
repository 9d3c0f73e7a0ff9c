"""Container engines of the test run's own: configuration, stores, a registry and a Docker API.

Nothing here touches the machine's configuration of podman or its images: everything is named by
environment variables and lies in two folders.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.support.machine import accepts, answers, clean_environment, free_port, run, serve

# runc without default limits starts where the machine may not raise them; file locks keep this
# run's containers apart from the machine's own.
ENGINE_TEXT = """\
[containers]
default_ulimits = []
[engine]
runtime = "runc"
lock_type = "file"
events_logger = "file"
tmp_dir = "{run}/libpod"
"""
# With a longer path podman runs, but what it starts at a container's end does not: every run then
# waits twenty seconds for it.
LONGEST_RUN_ROOT = 50
STORE_TEXT = """\
[storage]
driver = "overlay"
graphroot = "{store}"
runroot = "{run}/c"
[storage.options.overlay]
skip_mount_home = "true"
"""
REGISTRIES_TEXT = """\
[[registry]]
location = "127.0.0.1:{port}"
insecure = true
"""
REGISTRY_TEXT = """\
version: 0.1
log: {{level: error, accesslog: {{disabled: true}}}}
storage: {{filesystem: {{rootdirectory: {folder}}}}}
http: {{addr: "127.0.0.1:{port}"}}
"""


@dataclass(frozen=True, kw_only=True)
class Store:
    """One store of images and containers, as a machine of its own would have it.

    Attributes:
        folder: Where it lies.
        environment: What makes podman use it, with the rest of a clean environment.
    """

    folder: Path
    environment: dict[str, str]

    def podman(self, *arguments: str | Path) -> str:
        """Run podman on this store and return what it printed."""
        return run(["podman", *arguments], env=self.environment).strip()

    def remove(self) -> None:
        """Delete the store, with what podman left mounted in it."""
        for mount in _mounts_below(self.folder):
            run(["umount", mount])
        if os.getuid() != 0:
            self.podman("unshare", "rm", "-rf", self.folder)
        shutil.rmtree(self.folder, ignore_errors=True)


def make_store(folder: Path, *, name: str, run_folder: Path, registry_port: int) -> Store:
    """Return a store in `folder` that knows the registry, without using it yet.

    Raises:
        RuntimeError: The run folder's path is too long for podman.
    """
    if len(f"{run_folder}/c") > LONGEST_RUN_ROOT:
        raise RuntimeError(f"{run_folder}/c is too long for podman\n  fix: set TMPDIR to /tmp")
    texts = {
        "CONTAINERS_CONF": ENGINE_TEXT.format(run=run_folder),
        "CONTAINERS_STORAGE_CONF": STORE_TEXT.format(store=folder, run=run_folder),
        "CONTAINERS_REGISTRIES_CONF": REGISTRIES_TEXT.format(port=registry_port),
    }
    environment = clean_environment()
    for variable, text in texts.items():
        path = run_folder / f"{name}-{variable.lower()}"
        path.write_text(text, encoding="utf-8")
        environment[variable] = str(path)
    folder.mkdir(parents=True, exist_ok=True)
    return Store(folder=folder, environment=environment)


@contextlib.contextmanager
def serve_registry(folder: Path) -> Iterator[int]:
    """Serve a registry from `folder` on a free port of the loopback interface."""
    port = free_port()
    folder.mkdir()
    config = folder / "config.yml"
    config.write_text(REGISTRY_TEXT.format(folder=folder / "data", port=port), encoding="utf-8")
    with serve(
        ["docker-registry", "serve", config],
        is_ready=lambda: accepts(port),
        log=folder / "log",
    ):
        yield port


@contextlib.contextmanager
def serve_docker_api(store: Store, run_folder: Path) -> Iterator[str]:
    """Serve the Docker API on a store; the value is for `DOCKER_HOST`."""
    socket = run_folder / "podman.sock"
    address = f"unix://{socket}"
    with serve(
        ["podman", "system", "service", "--time=0", address],
        is_ready=lambda: answers(socket),
        log=run_folder / "service.log",
        env=store.environment,
    ):
        yield address


def containers_in(store: Store) -> list[str]:
    """Return the names of all containers that a store still has."""
    rows = json.loads(store.podman("ps", "--all", "--format", "json") or "[]")
    return [str(row["Names"][0]) for row in rows]


def _mounts_below(folder: Path) -> list[str]:
    """Return the mount points below a folder, the deepest first."""
    rows = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    points = [row.split()[1] for row in rows]
    return sorted((p for p in points if Path(p).is_relative_to(folder)), reverse=True)
