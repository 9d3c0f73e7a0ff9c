"""What recorded verdicts say about single tests; a folder without verdicts says nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ci_tools.roster.explain import Ran

_NOT_RUN = ("unaccounted", "skipped")


@dataclass(frozen=True, kw_only=True)
class RecordedRun:
    """One verdict: where it lies, when it was written, and what it says of each id."""

    where: str
    commit: str
    is_gate: bool
    written: float
    outcomes: Mapping[str, str]


def load_runs(folders: Iterable[Path]) -> list[RecordedRun]:
    """Return the readable verdicts below the folders, newest first."""
    runs = []
    for folder in folders:
        for path in sorted(folder.glob("**/verdict.json")):
            run = _load(path)
            if run is not None:
                runs.append(run)
    return sorted(runs, key=lambda run: run.written, reverse=True)


def _load(path: Path) -> RecordedRun | None:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        environment = data["environment"]
        place = environment["label"] or f"{environment['name']}@{environment['digest']}"
        return RecordedRun(
            where=f"{path.parent.name} in {place}",
            commit=str(data["commit"] or ""),
            is_gate=data["is_gate"] is True,
            written=path.stat().st_mtime,
            outcomes={i: str(row["outcome"]) for i, row in data["outcomes"].items()},
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def find_runs(runs: Iterable[RecordedRun], test_id: str) -> tuple[Ran, ...]:
    """Return the recorded outcomes of one id; one that was skipped or never ended did not run."""
    return tuple(
        Ran(
            where=run.where,
            commit=run.commit,
            outcome=run.outcomes[test_id],
            is_gate=run.is_gate,
        )
        for run in runs
        if run.outcomes.get(test_id, _NOT_RUN[0]) not in _NOT_RUN
    )
