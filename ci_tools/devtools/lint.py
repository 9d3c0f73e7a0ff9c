"""Runs every linter on the files it is for; red when one is red or finds nothing to look at."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from ci_tools.edges.git import list_files
from ci_tools.edges.process import run
from ci_tools.errors import ExitCode
from ci_tools.tree import find_tree

LINT_SECONDS = 600.0


@dataclass(frozen=True, kw_only=True)
class Linter:
    """A linter: its command line, and the patterns of the files that are appended to it."""

    name: str
    argv: tuple[str, ...]
    patterns: tuple[str, ...]
    as_arguments: bool = True


WORKFLOWS = (".github/workflows/*.yml",)
LINTERS = (
    Linter(name="ruff", argv=("ruff", "check"), patterns=("*.py",)),
    Linter(name="ruff format", argv=("ruff", "format", "--check"), patterns=("*.py",)),
    Linter(
        name="mypy",
        argv=(
            "mypy",
            "--strict",
            "ci_tools",
            "tests/unit",
            "tests/integration",
            "tests/e2e",
        ),
        patterns=("ci_tools/*.py",),
        as_arguments=False,
    ),
    Linter(name="zizmor", argv=("zizmor", "--offline", "--no-progress"), patterns=WORKFLOWS),
    Linter(name="actionlint", argv=("actionlint",), patterns=WORKFLOWS),
    Linter(
        name="workflow schema",
        argv=("check-jsonschema", "--builtin-schema", "vendor.github-workflows"),
        patterns=WORKFLOWS,
    ),
    Linter(name="yamllint", argv=("yamllint", "--strict"), patterns=("*.yml", "*.yaml")),
    Linter(name="hadolint", argv=("hadolint",), patterns=("containers/*/Dockerfile",)),
    Linter(name="shellcheck", argv=("shellcheck",), patterns=("*.sh", ".ci/run")),
)


@dataclass(frozen=True, kw_only=True)
class LintResult:
    """How one linter ended, and what it printed."""

    name: str
    file_count: int
    code: int
    output: str
    seconds: float

    @property
    def is_green(self) -> bool:
        """A linter without files has checked nothing, which is no pass."""
        return self.code == 0 and self.file_count > 0


def run_linter(linter: Linter, files: Sequence[str], root: Path) -> LintResult:
    """Run one linter on the files that match its patterns."""
    matching = [name for name in files if any(fnmatch(name, p) for p in linter.patterns)]
    started = time.monotonic()
    if not matching:
        return LintResult(
            name=linter.name, file_count=0, code=0, output="no file matches", seconds=0.0
        )
    arguments = matching if linter.as_arguments else []
    done = run([*linter.argv, *arguments], cwd=root, timeout_seconds=LINT_SECONDS)
    return LintResult(
        name=linter.name,
        file_count=len(matching),
        code=done.code,
        output=f"{done.stdout}{done.stderr}",
        seconds=time.monotonic() - started,
    )


def main() -> int:
    """Run every linter, print the output of those that are red, and a line for each."""
    root = find_tree(Path.cwd()).root
    files = [name for name in list_files(root) if (root / name).is_file()]
    is_green = True
    for linter in LINTERS:
        result = run_linter(linter, files, root)
        is_green &= result.is_green
        if not result.is_green:
            print(result.output)
        word = "ok" if result.is_green else "RED"
        print(
            f"{word:4}{result.name} ({result.file_count} files, {result.seconds:.1f} s)",
            flush=True,
        )
    return int(ExitCode.GREEN if is_green else ExitCode.RED)


if __name__ == "__main__":
    sys.exit(main())
