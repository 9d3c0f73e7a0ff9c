"""Finds the Python files below the roster folders and reads what each says about itself."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from ci_tools.config import Config, ForeignExclusion, roster_folders
from ci_tools.errors import UsageError
from ci_tools.roster.exclusion import Exclusion
from ci_tools.roster.markers import FileFacts, read_facts
from ci_tools.tree import Tree

TEST_FILE_PATTERNS = ("test_*.py", "*_test.py")
_PASSED_OVER = ("__pycache__", "node_modules")


@dataclass(frozen=True, kw_only=True)
class RosterFile:
    """One Python file of the roster, with the exclusion that pyproject.toml gives it, if any."""

    facts: FileFacts
    foreign: ForeignExclusion | None = None

    @property
    def path(self) -> str:
        """The file, relative to the root."""
        return self.facts.path

    @property
    def is_test_file(self) -> bool:
        """Whether pytest would collect the file by its name."""
        return any(fnmatch(self.path.rsplit("/", 1)[-1], p) for p in TEST_FILE_PATTERNS)

    @property
    def exclusion(self) -> Exclusion | None:
        """The exclusion of the whole file, from its marker or from pyproject.toml."""
        if self.foreign is not None:
            return Exclusion(
                kind=self.foreign.kind,
                reason=self.foreign.reason,
                owner=self.foreign.owner,
                review_by=self.foreign.review_by,
            )
        return self.facts.module_exclusion


def scan_roster(tree: Tree, config: Config) -> tuple[RosterFile, ...]:
    """Return every Python file of the roster folders, sorted by path.

    Raises:
        UsageError: A roster folder does not exist, or a file cannot be read.
    """
    foreign = {exclusion.path: exclusion for exclusion in config.exclude}
    files: dict[str, RosterFile] = {}
    for folder in config.roster:
        if not (tree.root / folder).is_dir():
            raise UsageError(
                f"the roster folder {folder}/ does not exist",
                path="pyproject.toml",
                fix="create it, or mend `roster` in [tool.ci_tools]; "
                f"now: {roster_folders(config.roster)}",
            )
        for path in _python_files(tree.root / folder):
            name = tree.relative(path)
            files[name] = RosterFile(
                facts=read_facts(name, _read(path, name)), foreign=foreign.get(name)
            )
    return tuple(files[name] for name in sorted(files))


def _python_files(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f not in _PASSED_OVER)
        yield from (Path(parent, name) for name in sorted(names) if name.endswith(".py"))


def _read(path: Path, name: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read the file: {error.strerror}", path=name) from error
