"""Judges the jobs of a workflow that has one required check: every one of them succeeded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ci_tools.errors import UsageError
from ci_tools.findings import Finding, Kind

SUCCESS = "success"


def parse_needs(text: str) -> dict[str, str]:
    """Return the result of each job from the JSON of a workflow's `needs` context.

    Raises:
        UsageError: It is not such a context, or holds no job: a check that needs nothing proves
            nothing.
    """
    try:
        data: Mapping[str, Mapping[str, Any]] = json.loads(text)
        results = {str(name): str(job["result"]) for name, job in data.items()}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise UsageError(
            f"NEEDS does not hold the results of the jobs: {error!r}",
            fix="set NEEDS to ${{ toJSON(needs) }} in the step's env",
        ) from error
    if not results:
        raise UsageError(
            "NEEDS names no job, and a check that needs nothing proves nothing",
            fix="list every other job of the workflow under `needs`",
        )
    return results


def check_jobs(results: Mapping[str, str]) -> list[Finding]:
    """Return a finding for each job that did not succeed; a skipped job proved nothing."""
    return [
        Finding(
            rule=f"jobs/{result or 'unknown'}",
            kind=Kind.TEST if result == "failure" else Kind.INFRASTRUCTURE,
            message=f"job {name!r} ended as {result or 'unknown'!r}, not as {SUCCESS!r}",
            fix="read that job's log; the command in its step repeats it on any machine",
        )
        for name, result in sorted(results.items())
        if result != SUCCESS
    ]
