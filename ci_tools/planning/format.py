"""The plan's file: its JSON form, its hash, and the matrix that a workflow takes from it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ci_tools.errors import UsageError
from ci_tools.planning.plan import ExpectedImage, Plan, PlannedChunk, PlannedFile, Scope
from ci_tools.roster.lock import Lane

SCHEMA = 1
_IMAGE_KEYS = ("name", "digest", "inputs")


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


def with_hash(plan: Plan) -> Plan:
    """Return the plan with the hash of everything else in it."""
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
    if with_hash(plan).hash != plan.hash or to_json(plan) != data:
        raise UsageError("the plan was changed after it was made", path=path, fix="make a new plan")
    return plan


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
