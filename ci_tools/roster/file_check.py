"""Holds one file of the roster against its lines in the lock.

Decides from names that can be read without importing; exact parameter ids are held against the
lock by the verdict, from what each file really collected.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from ci_tools.findings import Finding
from ci_tools.roster.exclusion import Exclusion, ExclusionKind, find_problems, unmet_need
from ci_tools.roster.findings import LOCK_FIX, lane_finding, missing_finding, roster_finding
from ci_tools.roster.lock import Lane, LockLine, static_name
from ci_tools.roster.markers import StaticTest
from ci_tools.roster.scan import RosterFile

_VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"


def check_file(
    file: RosterFile,
    lines: Sequence[LockLine],
    *,
    lock_path: str,
    locked_packages: Sequence[str],
) -> Iterator[Finding]:
    """Yield a finding for each rule that a file and its lines in the lock at `lock_path` break."""
    yield from _check_exclusions(file, locked_packages)
    if file.facts.syntax_error is not None and file.foreign is None:
        line, message = file.facts.syntax_error
        yield roster_finding(
            "syntax-error",
            f"not Python {_VERSION} ({message}), so its tests cannot be accounted for",
            "mend the file, or name it in [[tool.ci_tools.exclude]] as legacy",
            path=file.path,
            line=line,
        )
    elif file.exclusion is not None:
        yield from _check_excluded_file(file, lines, lock_path)
    elif not file.is_test_file:
        yield from _check_support_file(file, lines, lock_path)
    else:
        yield from _check_test_file(file, lines, lock_path)


def _check_exclusions(file: RosterFile, locked_packages: Sequence[str]) -> Iterator[Finding]:
    for line, exclusion in all_exclusions(file):
        is_foreign = file.foreign is not None and line == file.foreign.line
        problems = find_problems(exclusion)
        needs = unmet_need(exclusion.needs, locked_packages)
        problems += [f"needs {need!r}, which the image's lock installs" for need in needs]
        for problem in problems:
            yield roster_finding(
                "bad-exclusion",
                f"exclusion of {file.path}: {problem}",
                'write excluded("<kind>", reason="...", owner="@team", review_by="YYYY-MM-DD")',
                path="pyproject.toml" if is_foreign else file.path,
                line=line,
            )


def all_exclusions(file: RosterFile) -> Iterator[tuple[int, Exclusion]]:
    """Yield every exclusion of a file with its line, also one written in pyproject.toml."""
    yield from file.facts.exclusions
    if file.foreign is not None and file.exclusion is not None:
        yield file.foreign.line, file.exclusion


def _check_excluded_file(
    file: RosterFile, lines: Sequence[LockLine], lock_path: str
) -> Iterator[Finding]:
    line = file.facts.module_line
    if not lines:
        yield roster_finding(
            "unlocked-file",
            f"{file.path} is excluded and the lock does not know it, so it is in no lane",
            LOCK_FIX,
            path=file.path,
            line=line,
        )
    for locked in lines:
        if locked.lane is Lane.GATE:
            yield lane_finding(locked, file.path, line, Lane.EXCLUDED)
    is_file_entry = any(locked.test_id == file.path for locked in lines)
    is_expensive = file.exclusion is not None and file.exclusion.kind == ExclusionKind.EXPENSIVE
    if is_expensive and is_file_entry:
        yield roster_finding(
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
            yield missing_finding(locked, lock_path, why)


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
        yield roster_finding(
            "no-lane",
            f"{first.name} is in a file that pytest does not collect by its name, so it is in "
            "no lane",
            "move it into a file named test_*.py, or exclude the file with a marker",
            path=file.path,
            line=first.line,
        )
    for locked in lines:
        yield missing_finding(locked, lock_path, "its file is no test file")


def _check_test_file(
    file: RosterFile, lines: Sequence[LockLine], lock_path: str
) -> Iterator[Finding]:
    facts = file.facts
    if not facts.tests and not facts.is_open:
        yield roster_finding(
            "empty-file",
            f"{file.path} is gated and defines no test, and a file that collects nothing reads "
            "as a pass",
            "add a test, remove the file, or exclude it as manual",
            path=file.path,
            line=1,
        )
    elif not lines:
        yield roster_finding(
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
            yield missing_finding(locked, lock_path, f"{file.path} does not define it")


def _unlocked(file: RosterFile, lines: Sequence[LockLine]) -> Iterator[Finding]:
    locked = {static_name(line.test_id) for line in lines}
    for test in file.facts.tests:
        if test.is_certain and test.name not in locked:
            yield roster_finding(
                "unlocked-id",
                f"{file.path}::{test.name} is not locked yet, so its loss would go unseen",
                LOCK_FIX,
                path=file.path,
                line=test.line,
                test_id=f"{file.path}::{test.name}",
            )


def _check_lane(file: RosterFile, locked: LockLine, test: StaticTest) -> Iterator[Finding]:
    if test.exclusion is not None and locked.lane is Lane.GATE:
        yield lane_finding(locked, file.path, test.line, Lane.EXCLUDED)
    is_decided = not file.facts.has_open_lanes and not file.facts.is_open
    if test.exclusion is None and locked.lane is Lane.EXCLUDED and is_decided:
        yield lane_finding(locked, file.path, test.line, Lane.GATE)


def _may_exist(file: RosterFile, name: str) -> bool:
    """Whether collection can find a name that the file does not define in plain sight."""
    if file.facts.is_open or not name:
        return file.facts.is_open
    parts = name.split("::")
    prefixes = ["::".join(parts[:count]) for count in range(1, len(parts))]
    return any(prefix in file.facts.open_classes for prefix in prefixes)
