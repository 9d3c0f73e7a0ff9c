"""Remembers below `.ci-tools/` what files cost in an environment on this machine."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

from ci_tools.planning.costs import (
    Cost,
    History,
    add_observations,
    parse_history,
    render_history,
)
from ci_tools.records.layout import CHUNK_JOURNAL
from ci_tools.records.lines import load_lines


def load_history(path: Path) -> History:
    """Return the history in a file; a file that is missing or damaged remembers nothing."""
    try:
        return parse_history(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return {}


def remember(path: Path, folder: Path) -> None:
    """Add what the chunk in `folder` took to the history at `path`; a loss costs only time."""
    observed = read_costs(folder)
    if not observed:
        return
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}.part")
        text = render_history(add_observations(load_history(path), observed))
        part.write_text(text, encoding="utf-8")
        part.replace(path)


def read_costs(folder: Path) -> Mapping[str, Cost]:
    """Return what each file of a chunk took whose process ended with code 0."""
    found: dict[str, Cost] = {}
    for event in load_lines(folder / CHUNK_JOURNAL).events:
        if event["event"] == "file-end" and event.get("exit_code") == 0:
            seconds = event.get("seconds")
            peak = event.get("peak_pss_bytes") or event.get("peak_bytes")
            if isinstance(seconds, float) and isinstance(peak, int):
                found[str(event.get("path"))] = Cost(seconds, peak)
    return found
