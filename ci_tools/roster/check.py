"""Holds the roster lock against the test files: every test in exactly one lane, nothing unlocked.

Decides from names that can be read without importing; exact parameter ids are held against the
lock by the verdict, from what each file really collected.
"""

from __future__ import annotations

import datetime
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ci_tools.findings import Finding, Kind
from ci_tools.roster.exclusion import (
    Exclusion,
    ExclusionKind,
    find_problems,
    is_overdue,
    unmet_need,
)
from ci_tools.roster.lock import Lane, LockLine, RosterLock, static_name
from ci_tools.roster.markers import StaticTest
from ci_tools.roster.scan import RosterFile

LOCK_FIX = "make roster-lock"
LANE_FIX = "make roster-lock; an excluded mark counts only where it is written out in the file"
_VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
REMOVAL_FIX = (
    "restore the test, or run `make roster-lock` and commit with the trailer "
    "`Roster-Removed: <why>`"
)


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
        for finding in _check_file(file, by_file.get(file.path, []), given)
    ]
    known = {file.path for file in given.files}
    for path, lines in by_file.items():
        if path not in known:
            findings += [_missing(line, given.lock_path, "its file is gone") for line in lines]
    findings += [
        _finding(
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
        for line, exclusion in _all_exclusions(file)
        if is_overdue(exclusion, given.today)
    ]


def _all_exclusions(file: RosterFile) -> Iterator[tuple[int, Exclusion]]:
    yield from file.facts.exclusions
    if file.foreign is not None and file.exclusion is not None:
        yield file.foreign.line, file.exclusion


def _check_file(
    file: RosterFile, lines: Sequence[LockLine], given: RosterInput
) -> Iterator[Finding]:
    yield from _check_exclusions(file, given)
    if file.facts.syntax_error is not None and file.foreign is None:
        line, message = file.facts.syntax_error
        yield _finding(
            "syntax-error",
            f"not Python {_VERSION} ({message}), so its tests cannot be accounted for",
            "mend the file, or name it in [[tool.ci_tools.exclude]] as legacy",
            path=file.path,
            line=line,
        )
    elif file.exclusion is not None:
        yield from _check_excluded_file(file, lines, given.lock_path)
    elif not file.is_test_file:
        yield from _check_support_file(file, lines, given.lock_path)
    else:
        yield from _check_test_file(file, lines, given.lock_path)


def _check_exclusions(file: RosterFile, given: RosterInput) -> Iterator[Finding]:
    for line, exclusion in _all_exclusions(file):
        is_foreign = file.foreign is not None and line == file.foreign.line
        problems = find_problems(exclusion)
        needs = unmet_need(exclusion.needs, given.locked_packages)
        problems += [f"needs {need!r}, which the image's lock installs" for need in needs]
        for problem in problems:
            yield _finding(
                "bad-exclusion",
                f"exclusion of {file.path}: {problem}",
                'write excluded("<kind>", reason="...", owner="@team", review_by="YYYY-MM-DD")',
                path="pyproject.toml" if is_foreign else file.path,
                line=line,
            )


def _check_excluded_file(
    file: RosterFile, lines: Sequence[LockLine], lock_path: str
) -> Iterator[Finding]:
    line = file.facts.module_line
    if not lines:
        yield _finding(
            "unlocked-file",
            f"{file.path} is excluded and the lock does not know it, so it is in no lane",
            LOCK_FIX,
            path=file.path,
            line=line,
        )
    for locked in lines:
        if locked.lane is Lane.GATE:
            yield _lane_differs(locked, file.path, line, Lane.EXCLUDED)
    is_file_entry = any(locked.test_id == file.path for locked in lines)
    is_expensive = file.exclusion is not None and file.exclusion.kind == ExclusionKind.EXPENSIVE
    if is_expensive and is_file_entry:
        yield _finding(
            "empty-file",
            f"{file.path} is expensive, has to collect and pass, and collects nothing",
            "add a test, or choose another kind",
            path=file.path,
            line=line,
        )
    if lines and not is_file_entry:
        yield from _unlocked(file, lines)
    for locked in lines:
        why = _why_not_listed(file, locked, is_file_entry)
        if why:
            yield _missing(locked, lock_path, why)


def _why_not_listed(file: RosterFile, locked: LockLine, is_file_entry: bool) -> str:
    """Why listing an excluded file would not give this entry; empty when it may."""
    assert file.exclusion is not None
    if locked.test_id == file.path:
        return ""
    if is_file_entry:
        return f"{file.path} is locked as a whole file"
    if file.exclusion.kind in (ExclusionKind.MANUAL, ExclusionKind.LEGACY):
        return f"a {file.exclusion.kind} file is not collected, it is locked as a whole file"
    name = static_name(locked.test_id)
    is_defined = any(test.name == name for test in file.facts.tests)
    return "" if is_defined or _may_exist(file, name) else f"{file.path} does not define it"


def _check_support_file(
    file: RosterFile, lines: Sequence[LockLine], lock_path: str
) -> Iterator[Finding]:
    if file.facts.tests:
        first = file.facts.tests[0]
        yield _finding(
            "no-lane",
            f"{first.name} is in a file that pytest does not collect by its name, so it is in "
            "no lane",
            "move it into a file named test_*.py, or exclude the file with a marker",
            path=file.path,
            line=first.line,
        )
    for locked in lines:
        yield _missing(locked, lock_path, "its file is no test file")


def _check_test_file(
    file: RosterFile, lines: Sequence[LockLine], lock_path: str
) -> Iterator[Finding]:
    facts = file.facts
    if not facts.tests and not facts.is_open:
        yield _finding(
            "empty-file",
            f"{file.path} is gated and defines no test, and a file that collects nothing reads "
            "as a pass",
            "add a test, remove the file, or exclude it as manual",
            path=file.path,
            line=1,
        )
    elif not lines:
        yield _finding(
            "no-lane",
            f"{file.path} is in no lane: the lock holds none of its tests",
            LOCK_FIX,
            path=file.path,
            line=facts.tests[0].line if facts.tests else 1,
        )
    else:
        yield from _unlocked(file, lines)
    tests = {test.name: test for test in facts.tests}
    for locked in lines:
        name = static_name(locked.test_id)
        if name in tests:
            yield from _check_lane(file, locked, tests[name])
        elif not _may_exist(file, name):
            yield _missing(locked, lock_path, f"{file.path} does not define it")


def _unlocked(file: RosterFile, lines: Sequence[LockLine]) -> Iterator[Finding]:
    locked = {static_name(line.test_id) for line in lines}
    for test in file.facts.tests:
        if test.is_certain and test.name not in locked:
            yield _finding(
                "unlocked-id",
                f"{file.path}::{test.name} is not locked yet, so its loss would go unseen",
                LOCK_FIX,
                path=file.path,
                line=test.line,
                test_id=f"{file.path}::{test.name}",
            )


def _check_lane(file: RosterFile, locked: LockLine, test: StaticTest) -> Iterator[Finding]:
    if test.exclusion is not None and locked.lane is Lane.GATE:
        yield _lane_differs(locked, file.path, test.line, Lane.EXCLUDED)
    is_decided = not file.facts.has_open_lanes and not file.facts.is_open
    if test.exclusion is None and locked.lane is Lane.EXCLUDED and is_decided:
        yield _lane_differs(locked, file.path, test.line, Lane.GATE)


def _may_exist(file: RosterFile, name: str) -> bool:
    """Whether collection can find a name that the file does not define in plain sight."""
    if file.facts.is_open or not name:
        return file.facts.is_open
    parts = name.split("::")
    prefixes = ["::".join(parts[:count]) for count in range(1, len(parts))]
    return any(prefix in file.facts.open_classes for prefix in prefixes)


def _lane_differs(locked: LockLine, path: str, line: int | None, lane: Lane) -> Finding:
    return _finding(
        "lane-differs",
        f"{locked.test_id} is locked as {locked.lane} and its file says {lane}",
        LANE_FIX,
        path=path,
        line=line,
        test_id=locked.test_id,
    )


def _missing(locked: LockLine, lock_path: str, why: str) -> Finding:
    return _finding(
        "missing-id",
        f"{locked.test_id} is locked and vanished: {why}",
        REMOVAL_FIX,
        path=lock_path,
        line=locked.line,
        test_id=locked.test_id,
    )


def _finding(
    rule: str,
    message: str,
    fix: str,
    *,
    path: str,
    line: int | None,
    test_id: str | None = None,
) -> Finding:
    return Finding(
        rule=f"roster/{rule}",
        kind=Kind.ROSTER,
        message=message,
        fix=fix,
        path=path,
        line=line,
        test_id=test_id,
    )
