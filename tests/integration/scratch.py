"""Small real repositories that use ci_tools from their own tree, as a fresh clone does."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
OUTSIDE = ("ENGINE", "ONLY", "BASE_IMAGE", "GITHUB_ACTIONS", "PYTHONPATH", "PYTEST_ADDOPTS")
EXCLUDED = (
    'pytest.mark.excluded("expensive", reason="takes minutes to run", owner="@team", '
    'review_by="2099-01-01")'
)


@dataclass(frozen=True)
class Scratch:
    """A repository in a temporary folder."""

    root: Path

    def write(self, path: str, text: str) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def lock(self, *lines: str) -> None:
        """Write a roster lock by hand, sorted."""
        self.write("tests/roster/roster.lock", "".join(f"{line}\n" for line in sorted(lines)))

    def start(self, *arguments: str, **variables: str) -> subprocess.Popen[str]:
        inherited = {key: value for key, value in os.environ.items() if key not in OUTSIDE}
        return subprocess.Popen(
            [sys.executable, "-S", "-m", "ci_tools", *arguments],
            cwd=self.root,
            env=inherited | variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        process = self.start(*arguments, **variables)
        out, err = process.communicate(timeout=300)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def git(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *arguments],
            cwd=self.root,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def commit(self, message: str) -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)
        return self.git("rev-parse", "HEAD")

    def json(self, path: str) -> dict[str, Any]:
        data = json.loads((self.root / path).read_text(encoding="utf-8"))
        assert isinstance(data, dict)
        return data

    def latest(self) -> dict[str, Any]:
        """The verdict of the last local run."""
        return self.json(".ci-tools/results/latest/verdict.json")

    def rules(self) -> list[str]:
        return [finding["rule"] for finding in self.latest()["findings"]]


def make_scratch(root: Path) -> Scratch:
    """A repository with the project's own tool, lock and Dockerfile, and two tests.

    It shares the environments below the project's `.ci-tools/`, so that each is made once.
    """
    scratch = Scratch(root)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "ci_tools", root / "ci_tools", ignore=ignored)
    shutil.copytree(ROOT / "requirements", root / "requirements")
    shutil.copytree(ROOT / "containers", root / "containers")
    for name in (".dockerignore", ".gitattributes", "Makefile"):
        shutil.copy(ROOT / name, root / name)
    scratch.write(
        "pyproject.toml",
        '[tool.ci_tools]\nroster = ["tests/roster"]\npackages = ["ci_tools"]\n'
        "[tool.ci_tools.run]\ntests_per_chunk = 2\nfile_timeout_seconds = 20\n"
        "[tool.pytest.ini_options]\n"
        'addopts = ["--import-mode=importlib", "--strict-markers"]\npythonpath = ["."]\n'
        'markers = ["excluded: set aside"]\n',
    )
    scratch.write(".gitignore", "/.ci-tools\n__pycache__/\n/results/\n")
    scratch.write("tests/roster/test_a.py", "def test_one():\n    assert 1 + 1 == 2\n")
    scratch.write("tests/roster/test_b.py", "def test_two():\n    assert 2 + 2 == 4\n")
    scratch.lock("gate tests/roster/test_a.py::test_one", "gate tests/roster/test_b.py::test_two")
    environments = ROOT / ".ci-tools" / "venvs"
    environments.mkdir(parents=True, exist_ok=True)
    (root / ".ci-tools").mkdir()
    (root / ".ci-tools" / "venvs").symlink_to(environments)
    scratch.git("init", "-q", "-b", "main")
    scratch.commit("start")
    return scratch
