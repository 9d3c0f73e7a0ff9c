"""A scratch copy of this repository with a small roster, pinned to an image in the registry."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.support.machine import run

ROOT = Path(__file__).resolve().parents[3]
# Real roster files: a part is enough, and the whole suite runs in the main job.
ROSTER = ("test_noise_floor.py", "test_potential.py", "test_long_chains.py")
IDENTITY = ("-c", "user.name=scratch", "-c", "user.email=scratch@example.org")


@dataclass(frozen=True)
class Repository:
    """A git repository in a folder."""

    root: Path

    def git(self, *arguments: str) -> str:
        return run(["git", *IDENTITY, *arguments], cwd=self.root).strip()

    def commit(self, message: str) -> str:
        """Commit everything and return the commit."""
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)
        return self.git("rev-parse", "HEAD")

    def clone(self, folder: Path) -> Repository:
        """Return a clone on a branch of its own."""
        run(["git", "clone", "-q", self.root, folder])
        clone = Repository(folder)
        clone.git("checkout", "-q", "-B", "change")
        return clone

    def read(self, path: str) -> str:
        return (self.root / path).read_text(encoding="utf-8")

    def write(self, path: str, text: str) -> None:
        (self.root / path).write_text(text, encoding="utf-8")


def copy_tree(folder: Path) -> Repository:
    """Return the files that git knows here, with the small roster, not yet a repository."""
    names = run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT)
    for name in filter(None, names.split("\0")):
        is_left_out = name.startswith("tests/") and not name.startswith("tests/roster/support/")
        if (ROOT / name).is_file() and (not is_left_out or _is_kept(name)):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    lines = (ROOT / "tests/roster/roster.lock").read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if any(f"/{name}" in line for name in ROSTER)]
    (folder / "tests/roster/roster.lock").write_text(
        "".join(f"{line}\n" for line in kept), encoding="utf-8"
    )
    return Repository(folder)


def _is_kept(name: str) -> bool:
    return name in {f"tests/roster/{kept}" for kept in ROSTER}


def start_history(repository: Repository) -> str:
    """Make the copy a repository with one commit, and return the commit."""
    repository.git("init", "-q", "-b", "main")
    return repository.commit("start")
