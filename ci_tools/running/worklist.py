"""The worklist: all that the supervisor inside the environment has to know, in one file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ci_tools.errors import UsageError
from ci_tools.running.schedule import Schedule

WORKLIST = "worklist.json"


@dataclass(frozen=True, kw_only=True)
class WorkFile:
    """One file to run; `ids` as in `Job.ids`."""

    path: str
    ids: tuple[str, ...] | None


@dataclass(frozen=True, kw_only=True)
class Worklist:
    """What one supervisor does.

    Attributes:
        plan: The plan's hash; empty for a listing.
        chunk: The chunk's number.
        lane: `gate` or `excluded`.
        files: The files, in the order in which they start.
        packages: Import packages that have to resolve below the tree.
        lock: The hashed lock of the environment, relative to the tree.
        timeout_seconds: Wall time for one file.
        file_memory_bytes: Memory that one file is expected to fit in.
        preload: Modules that are imported once, for all files; none: a fresh process a file.
        order: The places of the files in the order in which they should start; empty: as listed.
        peaks: The memory in bytes that each file is expected to need; empty: `file_memory_bytes`.
        cache: Where compiled programs of earlier runs are; empty: nowhere.
        list_only: Collect and write the ids, run nothing.
    """

    plan: str
    chunk: int
    lane: str
    files: tuple[WorkFile, ...]
    packages: tuple[str, ...]
    lock: str
    timeout_seconds: float
    file_memory_bytes: int
    preload: tuple[str, ...] = ()
    order: tuple[int, ...] = ()
    peaks: tuple[int, ...] = ()
    cache: str = ""
    list_only: bool = False


def make_schedule(worklist: Worklist, workers: int, budget_bytes: int) -> Schedule:
    """Return the schedule of a worklist; an order that is not one of its files is left out."""
    places = range(len(worklist.files))
    order = worklist.order if sorted(worklist.order) == list(places) else tuple(places)
    peaks = worklist.peaks if len(worklist.peaks) == len(places) else ()
    default = worklist.file_memory_bytes
    needs = {place: peaks[place] if peaks else default for place in places}
    return Schedule(order, needs, workers, budget_bytes)


def write_worklist(folder: Path, worklist: Worklist) -> None:
    """Write the worklist into a chunk's folder."""
    text = json.dumps(asdict(worklist), separators=(",", ":")) + "\n"
    (folder / WORKLIST).write_text(text, encoding="utf-8")


def load_worklist(folder: Path) -> Worklist:
    """Return the worklist in a chunk's folder; raise UsageError when there is none to use."""
    path = folder / WORKLIST
    try:
        return _parse_worklist(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"the worklist cannot be used: {error!r}",
            path=str(path),
            fix="let `ci_tools run` or `make ci-local` start the chunk: they write it",
        ) from error


def _parse_worklist(data: Mapping[str, Any]) -> Worklist:
    files = tuple(
        WorkFile(path=row["path"], ids=None if row["ids"] is None else tuple(row["ids"]))
        for row in data["files"]
    )
    names = {key: tuple(data[key]) for key in ("packages", "preload", "order", "peaks")}
    return Worklist(**{**data, **names, "files": files})
