"""Makes the plan of a lane from the roster lock alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from ci_tools.errors import IncompleteError
from ci_tools.planning.chunking import chunk_files
from ci_tools.planning.format import with_hash
from ci_tools.planning.plan import Plan, PlannedChunk, PlannedFile, PlanRequest, Scope
from ci_tools.roster.lock import Lane, RosterLock, file_of
from ci_tools.roster.selection import select_ids


def make_plan(lock: RosterLock, request: PlanRequest) -> Plan:
    """Return the plan of a lane from the roster lock alone.

    Raises:
        UsageError: A selected word matches no id of the lane.
        IncompleteError: The lane holds no test at all.
    """
    planned = lock.ids(request.lane)
    if request.selection:
        planned = select_ids(planned, request.selection)
    if not planned:
        raise IncompleteError(
            f"the roster lock holds no {request.lane} id, and a lane without tests proves nothing",
            fix="make roster-lock",
        )
    chunks = _make_chunks(planned, lock, request)
    plan = Plan(
        lane=request.lane,
        scope=Scope.PARTIAL if request.selection else Scope.FULL,
        selection=request.selection,
        commit=request.commit,
        image=request.image,
        chunks=chunks,
    )
    return with_hash(plan)


def _make_chunks(
    planned: Sequence[str], lock: RosterLock, request: PlanRequest
) -> tuple[PlannedChunk, ...]:
    ids_by_file = _group(planned)
    excluded_by_file = _group(lock.ids(Lane.EXCLUDED))
    weights = {path: len(ids) for path, ids in ids_by_file.items()}
    return tuple(
        PlannedChunk(
            number=number,
            files=tuple(
                PlannedFile(
                    path=path,
                    ids=tuple(ids_by_file[path]),
                    excluded=tuple(excluded_by_file.get(path, ())),
                )
                for path in paths
            ),
        )
        for number, paths in enumerate(chunk_files(weights, request.tests_per_chunk), start=1)
    )


def _group(ids: Sequence[str]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = defaultdict(list)
    for test_id in ids:
        groups[file_of(test_id)].append(test_id)
    return dict(groups)
