"""Where things lie in a repository that jax-gate serves."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ci_tools.errors import UsageError


@dataclass(frozen=True)
class Tree:
    """A repository root and the fixed places below it."""

    root: Path

    @property
    def pyproject(self) -> Path:
        """The project file that holds `[tool.ci_tools]`."""
        return self.root / "pyproject.toml"

    @property
    def dockerfile(self) -> Path:
        """The Dockerfile of the CPU image."""
        return self.root / "containers" / "cpu" / "Dockerfile"

    @property
    def image_lock(self) -> Path:
        """The published image: name, digest, inputs hash."""
        return self.root / "containers" / "cpu" / "image.lock"

    @property
    def requirements(self) -> Path:
        """The folder of `*.in` and `*.txt` files."""
        return self.root / "requirements"

    @property
    def gate_requirements(self) -> Path:
        """The hashed lock that the image is built from."""
        return self.requirements / "gate.txt"

    @property
    def state(self) -> Path:
        """Everything that jax-gate makes on this machine: environments, caches, results."""
        return self.root / ".ci-tools"

    def relative(self, path: Path) -> str:
        """Return `path` relative to the root, with forward slashes, where it lies below it."""
        try:
            return path.relative_to(self.root).as_posix()
        except ValueError:
            return path.as_posix()


def find_tree(start: Path) -> Tree:
    """Return the tree that `start` lies in: the nearest folder upward with a pyproject.toml.

    Raises:
        UsageError: There is none.
    """
    for folder in (start.resolve(), *start.resolve().parents):
        if (folder / "pyproject.toml").is_file():
            return Tree(folder)
    raise UsageError(
        f"no pyproject.toml in {start} or any folder above it",
        fix="run the command inside the repository, or name it with --root",
    )
