"""The job description that a test process gets: what it may run and where it journals."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

JOB_VARIABLE = "CI_TOOLS_JOB"


@dataclass(frozen=True, kw_only=True)
class Job:
    """One file's job.

    Attributes:
        journal: Where the plugin writes its journal.
        plan: The plan's hash; empty for a listing.
        chunk: The chunk's number.
        path: The test file, relative to the root.
        ids: For a part: the only ids that may run. None: everything that is not excluded.
        lane: `gate` runs what carries no exclusion, `excluded` runs what does.
        packages: Import packages that have to resolve below the root.
        list_only: Collect and write the ids, run nothing.
    """

    journal: str
    plan: str
    chunk: int
    path: str
    ids: tuple[str, ...] | None
    lane: str
    packages: tuple[str, ...]
    list_only: bool = False


def render_job(job: Job) -> str:
    """Return the text of a job's file."""
    return json.dumps(asdict(job)) + "\n"


def parse_job(data: Mapping[str, Any]) -> Job:
    """Return the job whose JSON form is `data`.

    Raises:
        KeyError, TypeError: A field is missing or unknown.
    """
    ids = data["ids"]
    return Job(
        **{
            **data,
            "ids": None if ids is None else tuple(ids),
            "packages": tuple(data["packages"]),
        }
    )


def load_job(path: Path) -> Job:
    """Return the job in a file."""
    return parse_job(json.loads(path.read_text(encoding="utf-8")))
