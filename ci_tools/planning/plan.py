"""The plan: which ids have to run, in which chunk, in which environment; its file format."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from ci_tools.errors import IncompleteError, UsageError
from ci_tools.planning.chunking import chunk_files
from ci_tools.roster.lock import Lane, RosterLock, file_of
from ci_tools.roster.selection import select_ids

SCHEMA = 1


class Scope(StrEnum):
    """Whether a plan holds every gated id or a part that somebody asked for."""

    FULL = "full"
    PARTIAL = "partial"


@dataclass(frozen=True, kw_only=True)
class ExpectedImage:
    """The image that the plan is for: as `image.lock` has it; empty digest: unpublished."""

    name: str
    digest: str
    inputs: str


@dataclass(frozen=True, kw_only=True)
class PlannedFile:
    """One file: the ids that must have an outcome, and those the lock excludes."""

    path: str
    ids: tuple[str, ...]
    excluded: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class PlannedChunk:
    """The files of one job, in the order in which they start."""

    number: int
    files: tuple[PlannedFile, ...]

    @property
    def test_count(self) -> int:
        """How many ids the chunk holds."""
        return sum(len(file.ids) for file in self.files)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The whole plan; `hash` covers everything else."""

    lane: Lane
    scope: Scope
    selection: tuple[str, ...]
    commit: str
    image: ExpectedImage
    chunks: tuple[PlannedChunk, ...]
    hash: str = ""

    @property
    def test_count(self) -> int:
        """How many ids the plan holds."""
        return sum(chunk.test_count for chunk in self.chunks)

    def chunk(self, number: int) -> PlannedChunk:
        """Return one chunk.

        Raises:
            UsageError: There is no such chunk.
        """
        for chunk in self.chunks:
            if chunk.number == number:
                return chunk
        raise UsageError(f"the plan has {len(self.chunks)} chunks, none is number {number}")


@dataclass(frozen=True, kw_only=True)
class PlanRequest:
    """What a plan is made for: the lane, a selection (empty: everything), commit and image."""

    lane: Lane
    selection: tuple[str, ...]
    commit: str
    image: ExpectedImage
    tests_per_chunk: int


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
    return _with_hash(plan)


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


def to_json(plan: Plan) -> dict[str, Any]:
    """Return the JSON form of a plan."""
    return {
        "schema": SCHEMA,
        "lane": plan.lane.value,
        "scope": plan.scope.value,
        "selection": list(plan.selection),
        "commit": plan.commit,
        "image": {
            "name": plan.image.name,
            "digest": plan.image.digest,
            "inputs": plan.image.inputs,
        },
        "chunks": [
            {
                "number": chunk.number,
                "files": [
                    {"path": f.path, "ids": list(f.ids), "excluded": list(f.excluded)}
                    for f in chunk.files
                ],
            }
            for chunk in plan.chunks
        ],
        "hash": plan.hash,
    }


def _with_hash(plan: Plan) -> Plan:
    data = to_json(plan)
    del data["hash"]
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(text.encode("ascii")).hexdigest()
    return Plan(
        lane=plan.lane,
        scope=plan.scope,
        selection=plan.selection,
        commit=plan.commit,
        image=plan.image,
        chunks=plan.chunks,
        hash=digest,
    )


def parse_plan(data: Mapping[str, Any], path: str) -> Plan:
    """Return the plan whose JSON form is `data`.

    Raises:
        UsageError: It is not a plan, is of another schema, or its hash is not its own.
    """
    try:
        if data["schema"] != SCHEMA:
            raise ValueError(f"schema {data['schema']!r}, this version reads {SCHEMA}")
        plan = Plan(
            lane=Lane(data["lane"]),
            scope=Scope(data["scope"]),
            selection=tuple(map(str, data["selection"])),
            commit=str(data["commit"]),
            image=ExpectedImage(**{key: str(data["image"][key]) for key in _IMAGE_KEYS}),
            chunks=tuple(_parse_chunk(chunk) for chunk in data["chunks"]),
            hash=str(data["hash"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise UsageError(f"not a plan: {error!r}", path=path, fix="make a new plan") from error
    if _with_hash(plan).hash != plan.hash or to_json(plan) != data:
        raise UsageError("the plan was changed after it was made", path=path, fix="make a new plan")
    return plan


_IMAGE_KEYS = ("name", "digest", "inputs")


def _parse_chunk(data: Mapping[str, Any]) -> PlannedChunk:
    return PlannedChunk(
        number=int(data["number"]),
        files=tuple(
            PlannedFile(
                path=str(file["path"]),
                ids=tuple(map(str, file["ids"])),
                excluded=tuple(map(str, file["excluded"])),
            )
            for file in data["files"]
        ),
    )


def load_plan(path: Path) -> Plan:
    """Return the plan in the file at `path`.

    Raises:
        UsageError: The file is missing, is no JSON, or is not a plan.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"cannot read the plan: {error}", path=str(path)) from error
    if not isinstance(data, dict):
        raise UsageError("not a plan", path=str(path))
    return parse_plan(data, str(path))


def render_plan(plan: Plan) -> str:
    """Return the text of a plan's file."""
    return json.dumps(to_json(plan), separators=(",", ":")) + "\n"


def render_matrix(plan: Plan) -> str:
    """Return the GitHub matrix of a plan: chunk numbers only, the ids travel in the plan."""
    return json.dumps({"chunk": [chunk.number for chunk in plan.chunks]}, separators=(",", ":"))
