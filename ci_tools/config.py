"""`[tool.ci_tools]` of pyproject.toml: its keys, their defaults and their errors.

Decides nothing about tests: it turns the table into values and refuses what it does not know.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from ci_tools.errors import UsageError
from ci_tools.tree import Tree

ROSTER_LOCK = "roster.lock"


# The heavy imports of every test of this stack; none of them initialises a JAX backend.
DEFAULT_PRELOAD = (
    "pytest",
    "numpy",
    "scipy",
    "scipy.linalg",
    "scipy.optimize",
    "scipy.special",
    "scipy.stats",
    "jax",
    "jax.numpy",
    "jax.scipy",
    "numpyro",
    "numpyro.distributions",
    "numpyro.infer",
)


@dataclass(frozen=True, kw_only=True)
class ForeignExclusion:
    """An exclusion of a file that cannot carry a marker itself."""

    path: str
    kind: str
    reason: str
    owner: str
    review_by: str
    line: int


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """How chunks are cut and bounded.

    Attributes:
        file_timeout_seconds: Wall time that one test file may take, collection included.
        collect_timeout_seconds: Wall time that collecting one file may take.
        tests_per_chunk: The most tests one chunk may hold; a larger file is a chunk of its own.
        compilation_cache: Whether compiled programs are kept below `.ci-tools/` for later runs.
        preload: Modules that are imported once and forked from; none: a fresh process a file.
        file_memory_bytes: Memory one test process is expected to fit in; it decides how many run
            side by side, never whether one runs.
    """

    file_timeout_seconds: float = 600.0
    collect_timeout_seconds: float = 120.0
    tests_per_chunk: int = 240
    file_memory_bytes: int = 4 * 1024**3
    compilation_cache: bool = True
    preload: tuple[str, ...] = DEFAULT_PRELOAD


@dataclass(frozen=True, kw_only=True)
class Config:
    """The whole table.

    Attributes:
        roster: Folders of the roster, relative to the root.
        packages: Import packages that have to resolve to the tree under test.
        python: The Python minor version of the image.
        run: How chunks are cut and bounded.
        exclude: Exclusions of files that cannot carry a marker.
    """

    roster: tuple[str, ...] = ("tests/roster",)
    packages: tuple[str, ...] = ()
    python: str = "3.13"
    run: RunConfig = field(default_factory=RunConfig)
    exclude: tuple[ForeignExclusion, ...] = ()

    @property
    def roster_lock(self) -> str:
        """The roster lock's path relative to the root: in the first roster folder."""
        return f"{self.roster[0]}/{ROSTER_LOCK}"


def load_config(tree: Tree) -> Config:
    """Return the configuration of `tree`.

    Raises:
        UsageError: The file is not TOML, or the table holds an unknown key or a bad value.
    """
    try:
        text = tree.pyproject.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read pyproject.toml: {error}", path="pyproject.toml") from error
    return parse_config(text)


def parse_config(text: str) -> Config:
    """Return the configuration in the text of a pyproject.toml.

    Raises:
        UsageError: As `load_config`.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(
            f"not valid TOML: {error}", path="pyproject.toml", line=_error_line(str(error))
        ) from error
    tool = document.get("tool", {})
    table = tool.get("ci_tools", {}) if isinstance(tool, dict) else {}
    if not isinstance(table, dict):
        raise _Reader(text, {}).error("ci_tools", "[tool.ci_tools] must be a table")
    reader = _Reader(text, table)
    reader.known("roster", "packages", "python", "run", "exclude")
    run = _Reader(text, reader.table("run"))
    run.known(
        "file_timeout_seconds",
        "collect_timeout_seconds",
        "tests_per_chunk",
        "file_memory_bytes",
        "compilation_cache",
        "preload",
    )
    defaults = RunConfig()
    return Config(
        roster=reader.folders("roster", ("tests/roster",)),
        packages=reader.strings("packages", ()),
        python=reader.version("python", "3.13"),
        run=RunConfig(
            file_timeout_seconds=run.positive(
                "file_timeout_seconds", defaults.file_timeout_seconds
            ),
            collect_timeout_seconds=run.positive(
                "collect_timeout_seconds", defaults.collect_timeout_seconds
            ),
            tests_per_chunk=run.whole("tests_per_chunk", defaults.tests_per_chunk),
            file_memory_bytes=run.whole("file_memory_bytes", defaults.file_memory_bytes),
            compilation_cache=run.flag("compilation_cache", defaults.compilation_cache),
            preload=run.strings("preload", defaults.preload),
        ),
        exclude=_foreign_exclusions(text, table.get("exclude", [])),
    )


def _foreign_exclusions(text: str, rows: object) -> tuple[ForeignExclusion, ...]:
    if not isinstance(rows, list):
        raise _Reader(text, {}).error("exclude", "must be an array of tables")
    found: list[ForeignExclusion] = []
    for row in rows:
        reader = _Reader(text, row if isinstance(row, dict) else {})
        reader.known("path", "kind", "reason", "owner", "review_by")
        path = reader.text("path")
        if any(path == other.path for other in found):
            raise reader.error("exclude", f"{path} is excluded twice")
        found.append(
            ForeignExclusion(
                path=path,
                kind=reader.text("kind"),
                reason=reader.text("reason"),
                owner=reader.text("owner"),
                review_by=reader.text("review_by"),
                line=line_of(text, path) or line_of(text, "exclude") or 1,
            )
        )
    return tuple(found)


class _Reader:
    """Typed access to one table, with errors that carry the line."""

    def __init__(self, text: str, table: Mapping[str, Any]) -> None:
        self._text = text
        self._table = table

    def error(self, key: str, message: str) -> UsageError:
        return UsageError(
            f"[tool.ci_tools] {key}: {message}",
            path="pyproject.toml",
            line=line_of(self._text, key),
            fix="see docs/reference/configuration.md for the keys and their values",
        )

    def known(self, *keys: str) -> None:
        for key in self._table:
            if key not in keys:
                raise self.error(key, f"unknown key; known are {', '.join(keys)}")

    def table(self, key: str) -> Mapping[str, Any]:
        value = self._table.get(key, {})
        if not isinstance(value, dict):
            raise self.error(key, "must be a table")
        return value

    def text(self, key: str) -> str:
        value = self._table.get(key)
        if not isinstance(value, str) or not value:
            raise self.error(key, "must be a non-empty string")
        return value

    def flag(self, key: str, default: bool) -> bool:
        value = self._table.get(key, default)
        if not isinstance(value, bool):
            raise self.error(key, "must be true or false")
        return value

    def version(self, key: str, default: str) -> str:
        value = self._table.get(key, default)
        if not isinstance(value, str) or not re.fullmatch(r"3\.\d{1,2}", value):
            raise self.error(key, 'must be a Python minor version such as "3.13"')
        return value

    def strings(self, key: str, default: tuple[str, ...]) -> tuple[str, ...]:
        value = self._table.get(key, list(default))
        if not isinstance(value, list) or not all(isinstance(v, str) and v for v in value):
            raise self.error(key, "must be a list of non-empty strings")
        return tuple(value)

    def folders(self, key: str, default: tuple[str, ...]) -> tuple[str, ...]:
        value = self.strings(key, default)
        bad = [v for v in value if v.startswith("/") or ".." in v.split("/") or "\\" in v]
        if not value or bad:
            raise self.error(key, "must name at least one folder inside the repository")
        return tuple(PurePosixPath(v).as_posix() for v in value)

    def positive(self, key: str, default: float) -> float:
        value = self._table.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e15:
            raise self.error(key, "must be a positive number")
        return float(value)

    def whole(self, key: str, default: int) -> int:
        value = self.positive(key, default)
        if not value.is_integer():
            raise self.error(key, "must be a whole number")
        return int(value)


def line_of(text: str, needle: str) -> int | None:
    """Return the 1-based line on which `needle` first stands, for error messages."""
    for number, line in enumerate(text.splitlines(), start=1):
        if needle in line:
            return number
    return None


def _error_line(message: str) -> int | None:
    match = re.search(r"at line (\d+)", message)
    return int(match.group(1)) if match else None


def roster_folders(names: Sequence[str]) -> str:
    """Return the roster folders as words for a message."""
    return ", ".join(f"{name}/" for name in names)
