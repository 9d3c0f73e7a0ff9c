"""What moved between two roster locks, and whether a removal says why."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ci_tools.findings import Finding, Kind
from ci_tools.roster.exclusion import MIN_REASON_LENGTH
from ci_tools.roster.lock import Lane, RosterLock

TRAILER = "Roster-Removed"
_TRAILER_LINE = re.compile(rf"^{TRAILER}:[ \t]*(.*)$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class RosterDiff:
    """The ids that differ between a base lock and this one, each sorted.

    Attributes:
        added: Ids that only this lock has, with their lane.
        removed: Ids that only the base has, with the lane they had.
        excluded: Ids that left the gate for the excluded lane.
        promoted: Ids that came into the gate.
    """

    added: tuple[tuple[Lane, str], ...]
    removed: tuple[tuple[Lane, str], ...]
    excluded: tuple[str, ...]
    promoted: tuple[str, ...]


def diff_locks(base: RosterLock, head: RosterLock) -> RosterDiff:
    """Return what moved from `base` to `head`."""
    before = {line.test_id: line.lane for line in base.lines}
    after = {line.test_id: line.lane for line in head.lines}
    moved = sorted(i for i in before.keys() & after.keys() if before[i] is not after[i])
    return RosterDiff(
        added=tuple((after[i], i) for i in sorted(after.keys() - before.keys())),
        removed=tuple((before[i], i) for i in sorted(before.keys() - after.keys())),
        excluded=tuple(i for i in moved if after[i] is Lane.EXCLUDED),
        promoted=tuple(i for i in moved if after[i] is Lane.GATE),
    )


def find_trailers(messages: Sequence[str]) -> tuple[str, ...]:
    """Return the reasons given in `Roster-Removed:` lines; too short a one is none.

    A line anywhere in a message counts: a squashed merge keeps it, and no longer at the end.
    """
    reasons = [m.strip() for text in messages for m in _TRAILER_LINE.findall(text)]
    return tuple(reason for reason in reasons if len(reason) >= MIN_REASON_LENGTH)


def check_removals(diff: RosterDiff, messages: Sequence[str], lock_path: str) -> list[Finding]:
    """Return a finding for each removed id when no commit message says why."""
    if find_trailers(messages):
        return []
    return [
        Finding(
            rule="roster/unexplained-removal",
            kind=Kind.ROSTER,
            message=f"{test_id} was removed from the {lane} lane and no commit says why",
            fix=f"amend a commit with the trailer `{TRAILER}: <why, {MIN_REASON_LENGTH} characters "
            "or more>`, or restore the test",
            path=lock_path,
            line=1,
            test_id=test_id,
        )
        for lane, test_id in diff.removed
    ]


def render_diff(diff: RosterDiff) -> str:
    """Return the diff as text, one id a line; a sentence when nothing moved."""
    rows = [f"+ {lane} {test_id}" for lane, test_id in diff.added]
    rows += [f"- {lane} {test_id}" for lane, test_id in diff.removed]
    rows += [f"> excluded {test_id}" for test_id in diff.excluded]
    rows += [f"< gate {test_id}" for test_id in diff.promoted]
    return "\n".join(rows) if rows else "the roster did not move"
