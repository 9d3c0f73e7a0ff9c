"""Holds the roster lock against the test files: every test in one lane, nothing unlocked."""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from ci_tools.findings import Finding
from ci_tools.roster.exclusion import is_overdue
from ci_tools.roster.file_check import all_exclusions, check_file
from ci_tools.roster.findings import missing_finding, roster_finding
from ci_tools.roster.lock import LockLine, RosterLock
from ci_tools.roster.scan import RosterFile


@dataclass(frozen=True, kw_only=True)
class RosterInput:
    """What the check decides from.

    Attributes:
        files: Every Python file of the roster folders.
        lock: The parsed lock.
        lock_path: Its path, for messages.
        locked_packages: Names of the distributions that the image's lock installs.
        foreign_paths: Paths that pyproject.toml excludes, with their line there.
        today: The date that `review_by` is compared with.
    """

    files: Sequence[RosterFile]
    lock: RosterLock
    lock_path: str
    locked_packages: Sequence[str]
    foreign_paths: Sequence[tuple[str, int]]
    today: datetime.date


def check_roster(given: RosterInput) -> list[Finding]:
    """Return a finding for every rule that the roster breaks, in the order of the files."""
    by_file: dict[str, list[LockLine]] = defaultdict(list)
    for line in given.lock.lines:
        by_file[line.path].append(line)
    findings = [
        finding
        for file in given.files
        for finding in check_file(
            file,
            by_file.get(file.path, []),
            lock_path=given.lock_path,
            locked_packages=given.locked_packages,
        )
    ]
    known = {file.path for file in given.files}
    for path, lines in by_file.items():
        if path not in known:
            findings += [
                missing_finding(line, given.lock_path, "its file is gone") for line in lines
            ]
    findings += [
        roster_finding(
            "foreign-path",
            f"{path} is excluded in [tool.ci_tools] and does not exist in the roster",
            "remove the entry, or mend its path",
            path="pyproject.toml",
            line=line,
        )
        for path, line in given.foreign_paths
        if path not in known
    ]
    return findings


def find_overdue(given: RosterInput) -> list[str]:
    """Return a warning for each exclusion whose date of review has passed."""
    return [
        f"{file.path}:{line}: review_by {exclusion.review_by} has passed ({exclusion.kind}; "
        f"owner {exclusion.owner}): decide again"
        for file in given.files
        for line, exclusion in all_exclusions(file)
        if is_overdue(exclusion, given.today)
    ]
