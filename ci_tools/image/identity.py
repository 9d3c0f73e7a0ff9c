"""An environment as its users see it: what is asked, what it is, how a command is run in it.

Values and one protocol; the engines implement it and `execute` drives it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from ci_tools.tree import Tree

LOCKFILE_LABEL = "lockfile environment, not the image"
ENFORCED = "enforced"


class EnvironmentKind(StrEnum):
    """Where an environment came from."""

    PUBLISHED = "published"
    LOCAL_BUILD = "local-build"
    LOCKFILE = "lockfile"


@dataclass(frozen=True, kw_only=True)
class PassedOver:
    """An engine that could not serve, and why."""

    engine: str
    reason: str

    def __str__(self) -> str:
        return f"passed over {self.engine}: {self.reason}"


@dataclass(frozen=True, kw_only=True)
class EnvironmentIdentity:
    """One environment.

    Attributes:
        engine: `docker`, `podman` or `venv`.
        kind: An `EnvironmentKind`.
        name: The image's name, the local build's tag, or the lockfile's path.
        digest: The published image's digest; empty for the other kinds.
        image_id: The image's id in the engine; empty for a lockfile environment.
        inputs: The inputs hash: the image's own label, or the tree's for a lockfile environment.
        engine_version: For humans.
        label: What every line of a report says about it; empty for the published image.
        limits: For `memory`, `network` and `tree`: `enforced`, or why it is not.
    """

    engine: str
    kind: str
    name: str
    digest: str
    image_id: str
    inputs: str
    engine_version: str
    label: str
    limits: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "engine": self.engine,
            "kind": self.kind,
            "name": self.name,
            "digest": self.digest,
            "image_id": self.image_id,
            "inputs": self.inputs,
            "engine_version": self.engine_version,
            "label": self.label,
            "limits": dict(self.limits),
        }


@dataclass(frozen=True, kw_only=True)
class EnvironmentRequest:
    """What is asked of the engines.

    Attributes:
        tree: The tree whose lock and inputs count.
        engine: The one engine to use, or None for the first that can serve.
        allow_local_build: Whether an image may be built here where none is published for the
            tree's inputs.
        in_ci: Whether this is CI, where the lockfile environment is refused.
        base_image: Replaces the Dockerfile's default base.
        ca_bundle: A certificate bundle for pip inside the build.
        report: Takes progress, a line at a time.
    """

    tree: Tree
    engine: str | None
    allow_local_build: bool
    in_ci: bool
    base_image: str | None
    ca_bundle: Path | None
    report: Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Launch:
    """The surroundings of one command.

    Attributes:
        tree: The root of the tree under test; seen read-only where the engine can.
        results: The one writable folder; it exists.
        memory_bytes: The memory limit; None for no limit.
        variables: Added to the environment inside; nothing of the host's environment is.
        name: Unique among the launches on this machine: `[a-z0-9][a-z0-9-]*`.
        cache: A folder of compiled programs, seen read-only where the engine can; None: none.
    """

    tree: Path
    results: Path
    memory_bytes: int | None
    variables: Mapping[str, str]
    name: str
    cache: Path | None = None

    @property
    def report_name(self) -> str:
        """The file in `results` in which the launcher says how the command went."""
        return f".launch-{self.name}.jsonl"


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How a command ended, as its launcher saw it.

    Attributes:
        code: The command's own exit code; 128 + N for signal N.
        oom_kills: How often the kernel killed a process of the container at its memory limit;
            None where the engine has no control group of its own.
    """

    code: int
    oom_kills: int | None


class ReadyEnvironment(Protocol):
    """An environment that can run commands.

    `execute.run_inside` is the way to use it: it calls the methods in order.
    """

    @property
    def identity(self) -> EnvironmentIdentity:
        """What to record."""

    @property
    def passed_over(self) -> tuple[PassedOver, ...]:
        """The engines tried before this one."""

    @property
    def tree_inside(self) -> str:
        """Where a command sees the tree."""

    @property
    def python(self) -> str:
        """The interpreter inside."""

    def results_inside(self, results: Path) -> str:
        """Return where a command sees the results folder."""

    def cache_inside(self, cache: Path) -> str:
        """Return where a command sees the launch's cache folder."""

    def command(self, argv: Sequence[str], launch: Launch) -> list[str]:
        """Return the host's command line that runs `argv` inside."""

    def environment(self, launch: Launch) -> dict[str, str]:
        """Return the whole environment of that command line."""

    def settle(self, launch: Launch, code: int) -> Ending:
        """Return how the command ended, once the command line has ended with `code`.

        Raises:
            InfrastructureError: The engine, not the command, failed.
        """

    def stop(self, launch: Launch) -> None:
        """Remove what an interrupted launch left behind; harmless after a clean end."""


def local_build_label(inputs: str) -> str:
    """Return what reports say about an image that was built on this machine."""
    return f"local build {inputs[:16]}, not the published image"
