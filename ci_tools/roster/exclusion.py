"""What an exclusion is: its kinds, its fields, and the rules one has to keep."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

MARKER = "excluded"
MIN_REASON_LENGTH = 12


class ExclusionKind(StrEnum):
    """Why a test is outside the gate; each is a claim that the excluded lane checks."""

    EXPENSIVE = "expensive"
    MANUAL = "manual"
    OPTIONAL = "optional"
    GPU = "gpu"
    BROKEN = "broken"
    LEGACY = "legacy"


@dataclass(frozen=True, kw_only=True)
class Exclusion:
    """One `excluded` marker as written; `kind` may be a word that is no kind.

    Attributes:
        kind: The first argument.
        reason: Why, at least `MIN_REASON_LENGTH` characters.
        owner: Who decides again.
        review_by: ISO date on which the decision is due again.
        needs: For `optional`: the packages that have to be absent.
        problems: What could not be read at all, for instance an argument that is no literal.
    """

    kind: str
    reason: str
    owner: str
    review_by: str
    needs: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


def find_problems(exclusion: Exclusion) -> list[str]:
    """Return what is wrong with an exclusion, one sentence each; empty when it is whole."""
    problems = list(exclusion.problems)
    if exclusion.kind not in list(ExclusionKind):
        kinds = ", ".join(ExclusionKind)
        problems.append(f"unknown kind {exclusion.kind!r}; kinds are {kinds}")
    if len(exclusion.reason.strip()) < MIN_REASON_LENGTH:
        problems.append(
            f"reason {exclusion.reason!r} is under {MIN_REASON_LENGTH} characters, which is none"
        )
    if not exclusion.owner.strip():
        problems.append("no owner, so nobody decides again")
    if _parse_date(exclusion.review_by) is None:
        problems.append(f"review_by {exclusion.review_by!r} is not a date such as 2027-03-01")
    unusable = [need for need in exclusion.needs if not is_name(need)]
    problems += [f"needs {need!r}, which is no package name" for need in unusable]
    if exclusion.kind == ExclusionKind.OPTIONAL and not exclusion.needs:
        problems.append('optional without needs=["package"], so the claim cannot be checked')
    return problems


def is_overdue(exclusion: Exclusion, today: datetime.date) -> bool:
    """Return whether the date of review has passed."""
    due = _parse_date(exclusion.review_by)
    return due is not None and due < today


def unmet_need(needs: Sequence[str], locked_names: Sequence[str]) -> tuple[str, ...]:
    """Return the needs that the lock installs, which would make `optional` untrue."""
    locked = {_normalise(name) for name in locked_names}
    return tuple(need for need in needs if _normalise(need) in locked)


def is_name(text: str) -> bool:
    """Return whether a text is the name of a distribution, without version or extras."""
    return re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?", text) is not None


def _normalise(name: str) -> str:
    """PEP 503 normal form of a distribution name."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _parse_date(text: str) -> datetime.date | None:
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
        return None
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        return None
