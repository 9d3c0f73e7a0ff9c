"""The one door to git."""

from __future__ import annotations

from pathlib import Path

from ci_tools.edges.process import run
from ci_tools.errors import InfrastructureError, UsageError


def _git(root: Path, *arguments: str, check: bool = True) -> str | None:
    done = run(["git", "-C", str(root), *arguments])
    if done.code == 0:
        return done.stdout
    if check:
        raise InfrastructureError(f"git {arguments[0]} failed: {done.last_lines()}")
    return None


def head_commit(root: Path) -> str:
    """Return the commit that is checked out; empty where there is no repository or commit."""
    try:
        return (_git(root, "rev-parse", "--verify", "-q", "HEAD", check=False) or "").strip()
    except InfrastructureError:
        return ""


def is_dirty(root: Path) -> bool | None:
    """Return whether tracked files differ from the commit; None where git cannot tell."""
    try:
        text = _git(root, "status", "--porcelain", "--untracked-files=no", check=False)
    except InfrastructureError:
        return None
    return None if text is None else bool(text.strip())


def merge_base(root: Path, base: str) -> str:
    """Return the commit at which HEAD left `base`.

    Raises:
        UsageError: `base` is no commit here, or shares no history (a shallow clone).
    """
    if base.startswith("-"):
        raise UsageError(f"{base!r} is not a revision")
    if _git(root, "rev-parse", "--verify", "-q", f"{base}^{{commit}}", check=False) is None:
        raise UsageError(
            f"the base {base!r} is not a commit of this clone",
            fix="fetch it; in a workflow check out with fetch-depth: 0",
        )
    found = _git(root, "merge-base", base, "HEAD", check=False)
    if not found:
        raise UsageError(
            f"HEAD and {base!r} share no history in this clone",
            fix="fetch the whole history; in a workflow check out with fetch-depth: 0",
        )
    return found.strip()


def file_at(root: Path, revision: str, path: str) -> str | None:
    """Return the text of a file at a revision; None where it did not exist."""
    listed = _git(root, "ls-tree", "--name-only", revision, "--", path)
    return _git(root, "show", f"{revision}:{path}") if listed and listed.strip() else None


def messages_since(root: Path, revision: str) -> tuple[str, ...]:
    """Return the messages of the commits that HEAD has and `revision` has not, newest first."""
    text = _git(root, "log", "--format=%B%x00", f"{revision}..HEAD") or ""
    return tuple(message.strip() for message in text.split("\0") if message.strip())


def introduced_by(root: Path, line: str, path: str) -> str | None:
    """Return `hash date subject` of the newest commit that brought `line` into a file."""
    text = _git(
        root, "log", "--format=%h %cs %s", f"-S{line}", "--max-count=1", "--", path, check=False
    )
    return text.strip() or None if text else None


def list_files(root: Path) -> tuple[str, ...]:
    """Return the tracked files and those that git does not ignore, relative to the root."""
    text = _git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard") or ""
    return tuple(sorted({name for name in text.split("\0") if name}))
