"""Answers "did CI run X?" and never says yes without a record that shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ci_tools.roster.exclusion import Exclusion
from ci_tools.roster.lock import Lane, LockLine, RosterLock, static_name
from ci_tools.roster.scan import RosterFile
from ci_tools.roster.selection import is_selected


@dataclass(frozen=True, kw_only=True)
class Ran:
    """One recorded outcome of a test: where, on which commit, and how it ended."""

    where: str
    commit: str
    outcome: str
    is_gate: bool


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """What is known of one id.

    Attributes:
        test_id: The id, or the file for an exclusion that collects nothing.
        lane: Its lane; None when the lock does not have it.
        since: The commit that put it there; None when unknown.
        exclusion: Why it is excluded.
        runs: Recorded runs, newest first; empty means unknown, not "never".
    """

    test_id: str
    lane: Lane | None
    since: str | None
    exclusion: Exclusion | None
    runs: tuple[Ran, ...]


def find_lines(lock: RosterLock, word: str) -> tuple[LockLine, ...]:
    """Return the lock lines that a word names.

    An id, a test, a class, a file, a folder, or a part of a name when nothing else matches.
    """
    exact = tuple(line for line in lock.lines if is_selected(line.test_id, word))
    return exact or tuple(line for line in lock.lines if word and word in line.test_id)


def find_exclusion(line: LockLine, files: Sequence[RosterFile]) -> Exclusion | None:
    """Return why a locked id is excluded, as its file says; None for parameter marks."""
    file = next((file for file in files if file.path == line.path), None)
    if file is None or line.lane is Lane.GATE:
        return None
    name = static_name(line.test_id)
    for test in file.facts.tests:
        if test.name == name and test.exclusion is not None:
            return test.exclusion
    if file.exclusion is not None:
        return file.exclusion
    rest = [exclusion for _, exclusion in file.facts.exclusions]
    return rest[0] if len(rest) == 1 else None


def render_explanation(explanation: Explanation) -> str:
    """Return the answer as text; the first line alone answers the question."""
    rows = [f"{explanation.test_id}", f"  did CI run it?  {_answer(explanation)}"]
    rows.append(f"  lane:           {explanation.lane or 'none: it is not in the roster lock'}")
    if explanation.lane is not None:
        rows.append(f"  since:          {explanation.since or 'unknown'}")
    exclusion = explanation.exclusion
    if exclusion is not None:
        rows.append(f"  excluded as:    {exclusion.kind}: {exclusion.reason}")
        rows.append(f"  owner:          {exclusion.owner}, review by {exclusion.review_by}")
    for label, outcomes in (("last pass", ("passed",)), ("last fail", ("failed", "error"))):
        ran = next((r for r in explanation.runs if r.outcome in outcomes), None)
        text = "unknown" if ran is None else f"{ran.where} at {ran.commit[:12] or 'no commit'}"
        rows.append(f"  {label}:      {text}")
    return "\n".join(rows)


def _answer(explanation: Explanation) -> str:
    gate_runs = [ran for ran in explanation.runs if ran.is_gate]
    if gate_runs:
        return f"yes: {gate_runs[0].where}, {gate_runs[0].outcome}"
    if explanation.lane is Lane.EXCLUDED:
        return "no: it is excluded from the gate"
    if explanation.lane is None:
        return "no: no lane holds it"
    return "unknown: it is planned for every gate run, and no record of one is at hand"
