"""The checks before a plan: lockfiles, image, roster and removals; their findings as a record."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ci_tools.config import Config, parse_config
from ci_tools.edges import git
from ci_tools.environment.capture import parse_hashes
from ci_tools.errors import CiToolsError, InfrastructureError, UsageError
from ci_tools.findings import Finding, Kind
from ci_tools.image.check import check_image
from ci_tools.image.inputs import compute_inputs
from ci_tools.image.lock import load_image_lock
from ci_tools.planning.plan import ExpectedImage
from ci_tools.requirements.check import check_requirements
from ci_tools.roster.check import RosterInput, check_roster, find_overdue
from ci_tools.roster.diff import RosterDiff, check_removals, diff_locks
from ci_tools.roster.lock import RosterLock, load_roster_lock, parse_roster_lock
from ci_tools.roster.scan import RosterFile, scan_roster
from ci_tools.tree import Tree


@dataclass(frozen=True, kw_only=True)
class Preflight:
    """What the checks found.

    Attributes:
        findings: What makes the lane red before anything runs.
        notices: What a person should know and what blocks nothing here.
    """

    findings: tuple[Finding, ...]
    notices: tuple[str, ...] = ()


def run_preflight(
    tree: Tree,
    config: Config,
    *,
    base: str | None,
    is_blocking: bool,
    base_image: str | None = None,
) -> Preflight:
    """Return the findings of every check; one that cannot run at all is a finding as well.

    Args:
        tree: The repository.
        config: Its configuration.
        base: The revision that removals are counted from; None: not checked.
        is_blocking: Whether an image that is not published, or not from these inputs, is red.
        base_image: A base image that stands in for the Dockerfile's.
    """
    findings: list[Finding] = []
    notices: list[str] = []
    findings += _attempt("requirements", Kind.IMAGE, lambda: check_requirements(tree))
    image = _attempt("image", Kind.IMAGE, lambda: _check_image(tree, base_image))
    blocking_rules = [f for f in image if is_blocking or f.rule not in _LOCAL_RULES]
    findings += blocking_rules
    notices += [f.message for f in image if f not in blocking_rules]
    try:
        given = load_roster_input(tree, config)
    except CiToolsError as error:
        findings.append(finding_of("roster", Kind.ROSTER, error))
    else:
        findings += [*given.form, *check_roster(given.roster)]
        notices += find_overdue(given.roster)
    if base is not None:
        findings += _attempt("roster", Kind.ROSTER, lambda: _check_removals(tree, config, base))
    return Preflight(findings=tuple(findings), notices=tuple(notices))


_LOCAL_RULES = ("image/unpublished", "image/inputs-changed")


def _attempt(family: str, kind: Kind, check: Callable[[], Sequence[Finding]]) -> list[Finding]:
    try:
        return list(check())
    except CiToolsError as error:
        return [finding_of(family, kind, error)]


def finding_of(family: str, kind: Kind, error: CiToolsError) -> Finding:
    """Return the finding that an error of a check stands for."""
    is_machine = isinstance(error, InfrastructureError)
    return Finding(
        rule=f"{family}/unusable",
        kind=Kind.INFRASTRUCTURE if is_machine else kind,
        message=error.message,
        path=error.path,
        line=error.line,
        fix=error.fix or "mend the file that is named",
    )


def _check_image(tree: Tree, base_image: str | None) -> list[Finding]:
    return check_image(load_image_lock(tree), compute_inputs(tree, base_image), None)


def expected_image(tree: Tree) -> ExpectedImage:
    """Return the image that `image.lock` names."""
    lock = load_image_lock(tree)
    return ExpectedImage(name=lock.name, digest=lock.digest, inputs=lock.inputs)


@dataclass(frozen=True, kw_only=True)
class LoadedRoster:
    """The input of the roster check, and the findings about the form of the lock."""

    roster: RosterInput
    form: tuple[Finding, ...]
    files: tuple[RosterFile, ...]
    lock: RosterLock


def load_roster_input(tree: Tree, config: Config) -> LoadedRoster:
    """Return all that the roster check decides from.

    Raises:
        UsageError: The lock or a file cannot be read.
    """
    lock, form = load_roster_lock(tree, config.roster_lock)
    files = scan_roster(tree, config)
    given = RosterInput(
        files=files,
        lock=lock,
        lock_path=config.roster_lock,
        locked_packages=load_locked_packages(tree),
        foreign_paths=[(exclusion.path, exclusion.line) for exclusion in config.exclude],
        today=datetime.datetime.now(datetime.UTC).date(),
    )
    return LoadedRoster(roster=given, form=tuple(form), files=files, lock=lock)


def load_locked_packages(tree: Tree) -> tuple[str, ...]:
    """Return the names in the gate's lock; empty when there is none: another check says so."""
    try:
        return tuple(parse_hashes(tree.gate_requirements.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError):
        return ()


def _check_removals(tree: Tree, config: Config, base: str) -> list[Finding]:
    fork = git.merge_base(tree.root, base)
    diff = load_diff(tree, config, fork)
    return check_removals(diff, git.messages_since(tree.root, fork), config.roster_lock)


def load_diff(tree: Tree, config: Config, revision: str) -> RosterDiff:
    """Return what moved between the lock at a revision and the lock in the tree.

    The old lock is where the revision's own configuration says: a roster that moved, or that the
    configuration no longer names, has lost its tests like any other.
    """
    path = _roster_lock_at(tree, revision) or config.roster_lock
    before = git.file_at(tree.root, revision, path)
    base_lock, _ = parse_roster_lock(before or "", path)
    head_lock, _ = load_roster_lock(tree, config.roster_lock)
    return diff_locks(base_lock, head_lock)


def _roster_lock_at(tree: Tree, revision: str) -> str | None:
    """Where a revision keeps its roster lock; None where its configuration cannot be read."""
    text = git.file_at(tree.root, revision, "pyproject.toml")
    try:
        return parse_config(text).roster_lock if text is not None else None
    except UsageError:
        return None


def write_preflight(path: Path, preflight: Preflight) -> None:
    """Write the record of the checks."""
    data = {
        "schema": 1,
        "findings": [finding.to_json() for finding in preflight.findings],
        "notices": list(preflight.notices),
    }
    path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
