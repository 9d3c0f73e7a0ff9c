"""What files cost: observed, remembered as a few values each, and predicted for the next run.

Costs decide when a file runs and beside what, never whether it runs: a damaged or missing history
makes a run slower, nothing else.
"""

from __future__ import annotations

import heapq
import json
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SCHEMA = 1
KEPT = 9  # observations of one file; the median of so many is not moved by a few bad ones
UNSEEN_QUANTILE = 0.75
MAX_SECONDS, MAX_BYTES = 1e7, 1 << 60


@dataclass(frozen=True)
class Cost:
    """What one file took: wall seconds of its process, and its peak memory in bytes."""

    seconds: float
    peak_bytes: int


History = Mapping[str, Sequence[Cost]]


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """What the files of a run are expected to cost.

    Attributes:
        costs: By file, in the order asked for.
        unseen: The files that no run has measured.
    """

    costs: Mapping[str, Cost]
    unseen: tuple[str, ...]


def parse_history(text: str) -> dict[str, list[Cost]]:
    """Return the observations in a history's text; what is damaged or absurd is left out."""
    try:
        data: Any = json.loads(text)
        rows = data["files"].items() if data["schema"] == SCHEMA else ()
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return {}
    history = {}
    for path, observed in rows:
        if isinstance(observed, list):
            costs = [cost for row in observed if (cost := _parse_cost(row)) is not None]
            if costs:
                history[str(path)] = costs[-KEPT:]
    return history


def _parse_cost(row: object) -> Cost | None:
    if not isinstance(row, list) or len(row) != 2:
        return None
    seconds, peak = row
    if type(seconds) not in (int, float) or type(peak) is not int:
        return None
    is_sane = math.isfinite(seconds) and 0 <= seconds <= MAX_SECONDS and 0 < peak <= MAX_BYTES
    return Cost(float(seconds), peak) if is_sane else None


def render_history(history: History) -> str:
    """Return the text of a history."""
    files = {
        path: [[round(cost.seconds, 3), cost.peak_bytes] for cost in costs]
        for path, costs in sorted(history.items())
    }
    return json.dumps({"schema": SCHEMA, "files": files}, separators=(",", ":")) + "\n"


def add_observations(history: History, observed: Mapping[str, Cost]) -> dict[str, list[Cost]]:
    """Return a history with one more observation for each file; the oldest give way."""
    merged = {path: list(costs) for path, costs in history.items()}
    for path, cost in observed.items():
        merged[path] = [*merged.get(path, []), cost][-KEPT:]
    return merged


def forecast(history: History, paths: Sequence[str], default: Cost) -> Forecast:
    """Return what files are expected to cost: the median of what was seen.

    A file that was never seen counts as the 75th percentile of those that were, or as `default`
    where there are none.
    """
    known = {path: _median(history[path]) for path in paths if history.get(path)}
    typical = _quantile(known.values(), default)
    return Forecast(
        costs={path: known.get(path, typical) for path in paths},
        unseen=tuple(path for path in paths if path not in known),
    )


def _median(costs: Sequence[Cost]) -> Cost:
    return Cost(
        statistics.median(cost.seconds for cost in costs),
        int(statistics.median(cost.peak_bytes for cost in costs)),
    )


def _quantile(costs: Iterable[Cost], default: Cost) -> Cost:
    rows = list(costs)
    if not rows:
        return default
    place = min(len(rows) - 1, math.ceil(UNSEEN_QUANTILE * len(rows)) - 1)
    seconds = sorted(cost.seconds for cost in rows)
    peaks = sorted(cost.peak_bytes for cost in rows)
    return Cost(seconds[place], peaks[place])


def order_files(found: Forecast) -> list[str]:
    """Return the files, the longest first; of two alike the unseen one, then by name."""
    unseen = set(found.unseen)
    return sorted(
        found.costs, key=lambda path: (-found.costs[path].seconds, path not in unseen, path)
    )


def makespan(seconds: Iterable[float], workers: int) -> float:
    """Return when the last of these files ends, each started by the first worker that is free."""
    free = [0.0] * max(1, workers)
    last = 0.0
    for duration in seconds:
        end = heapq.heappop(free) + duration
        last = max(last, end)
        heapq.heappush(free, end)
    return last


def lower_bound(costs: Iterable[Cost], workers: int, budget_bytes: int) -> float:
    """Return the time that no schedule can be faster than.

    The larger of: all the work over all workers; the longest file; all memory-time over the budget.
    """
    rows = list(costs)
    work = sum(cost.seconds for cost in rows) / max(1, workers)
    longest = max((cost.seconds for cost in rows), default=0.0)
    memory = sum(cost.seconds * cost.peak_bytes for cost in rows) / max(1, budget_bytes)
    return max(work, longest, memory)
