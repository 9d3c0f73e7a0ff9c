"""What a person sees while files run: one line for each file, and what it adds up to.

Nothing is decided here: what counts is in the journals.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from typing import Any

from ci_tools.findings import flatten
from ci_tools.records.lines import Lines
from ci_tools.running.children import Ended


def say(line: str) -> None:
    """Print a line of progress; that nobody reads it any more ends no run."""
    try:
        print(line, flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def render_end(number: int, total: int, path: str, ended: Ended, journal: Lines) -> str:
    """Return the line about a file that has ended, the `number`-th of `total`."""
    counts = summarise(journal)
    return (
        f"[{number:{len(str(total))}}/{total}] {flatten(path)}  {counts or _how(ended)}"
        f"  {ended.seconds:.1f} s  {ended.peak_bytes / 1e6:.0f} MB"
    )


def summarise(journal: Lines) -> str:
    """Return a file's outcomes as words; empty when it has none."""
    counts: Counter[str] = Counter()
    for event in journal.events:
        if event["event"] == "selected":
            counts["listed"] = len(event.get("gated", ())) + len(event.get("excluded", ()))
        elif event["event"] == "phase" and event.get("when") == "call":
            counts[str(event.get("outcome"))] += 1
        elif event["event"] == "phase" and event.get("outcome") != "passed":
            counts["skipped" if event.get("outcome") == "skipped" else "error"] += 1
        elif event["event"] == "collect-report":
            counts["collection " + str(event.get("outcome"))] += 1
    if len(counts) > 1:
        del counts["listed"]
    return ", ".join(f"{number} {word}" for word, number in sorted(counts.items()))


def _how(ended: Ended) -> str:
    if ended.ended_by != "exit":
        return f"ended by {ended.ended_by}"
    return f"signal {ended.signal}" if ended.signal else f"exit {ended.exit_code}"


def count_compilations(journal: Lines) -> Counter[str]:
    """Return how many programs a file asked for, and how many of them were there already."""
    counts: Counter[str] = Counter()
    for event in journal.events:
        if event["event"] == "compilations":
            counts.update({k: v for k, v in event.items() if k != "n" and isinstance(v, int)})
    return counts


def render_compilations(counts: Mapping[str, Any], earlier: int) -> str:
    """Return what the compilation cache did; a cache that was filled and never hit is inert.

    Args:
        counts: The sums of `count_compilations`.
        earlier: How many programs earlier runs had left.
    """
    requests, hits = counts.get("requests", 0), counts.get("hits", 0)
    if not requests:
        return ""
    if earlier and not hits:
        return (
            f"compilation cache inert: {earlier} programs are there and none of {requests} asked "
            "for was found"
        )
    return f"compilation cache: {hits} of {requests} programs were there already"
