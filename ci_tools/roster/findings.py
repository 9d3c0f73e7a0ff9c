"""The findings that the roster check makes."""

from __future__ import annotations

from ci_tools.findings import Finding, Kind
from ci_tools.roster.lock import Lane, LockLine

LOCK_FIX = "make roster-lock"
LANE_FIX = "make roster-lock; an excluded mark counts only where it is written out in the file"
REMOVAL_FIX = (
    "restore the test, or run `make roster-lock` and commit with the trailer "
    "`Roster-Removed: <why>`"
)


def lane_finding(locked: LockLine, path: str, line: int | None, lane: Lane) -> Finding:
    """Return that an id is locked in another lane than its file says."""
    return roster_finding(
        "lane-differs",
        f"{locked.test_id} is locked as {locked.lane} and its file says {lane}",
        LANE_FIX,
        path=path,
        line=line,
        test_id=locked.test_id,
    )


def missing_finding(locked: LockLine, lock_path: str, why: str) -> Finding:
    """Return that a locked id vanished, and why that is known."""
    return roster_finding(
        "missing-id",
        f"{locked.test_id} is locked and vanished: {why}",
        REMOVAL_FIX,
        path=lock_path,
        line=locked.line,
        test_id=locked.test_id,
    )


def roster_finding(
    rule: str,
    message: str,
    fix: str,
    *,
    path: str,
    line: int | None,
    test_id: str | None = None,
) -> Finding:
    """Return a finding of the kind `roster`."""
    return Finding(
        rule=f"roster/{rule}",
        kind=Kind.ROSTER,
        message=message,
        fix=fix,
        path=path,
        line=line,
        test_id=test_id,
    )
