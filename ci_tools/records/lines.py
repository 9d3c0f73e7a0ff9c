"""Numbered JSON lines: written one at a time as things happen, read back with every gap named.

Each line is an object whose `n` counts from 0. A reader can therefore tell a whole journal from
one that lost a line, has one twice, or was cut in the middle of a write.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SCHEMA = 1
MAX_JOURNAL_BYTES = 256 * 1024**2


@dataclass(frozen=True, kw_only=True)
class Lines:
    """The events of a journal.

    Attributes:
        events: The readable lines in order.
        problems: What is wrong with the numbering or the text, one sentence each.
    """

    events: tuple[Mapping[str, Any], ...]
    problems: tuple[str, ...]


class LineWriter:
    """Appends events to a new file, each in a single `write` that is not buffered.

    Args:
        path: The journal; it must not exist yet.

    Raises:
        FileExistsError: A journal is there already: a run never appends to another run's.
    """

    def __init__(self, path: Path) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        self._descriptor = os.open(path, flags, 0o644)
        self._owner = os.getpid()
        self._count = 0

    @property
    def count(self) -> int:
        """The number of lines written so far."""
        return self._count

    def write(self, event: str, **fields: Any) -> None:
        """Append one event; a forked child of the writer writes nothing."""
        if os.getpid() != self._owner:
            return
        line = json.dumps({"n": self._count, "event": event, **fields}, separators=(",", ":"))
        data = line.encode("ascii") + b"\n"
        while data:
            data = data[os.write(self._descriptor, data) :]
        self._count += 1

    def close(self) -> None:
        """Close the file; nothing can be written afterwards."""
        os.close(self._descriptor)


def parse_lines(data: bytes) -> Lines:
    """Return the events in the bytes of a journal; broken input becomes problems."""
    events: list[Mapping[str, Any]] = []
    problems: list[str] = []
    rows = data.split(b"\n")
    if rows.pop() != b"":
        problems.append("the last line was cut in the middle of a write")
    for number, row in enumerate(rows):
        event = _parse_row(row)
        if event is None:
            problems.append(f"line {number + 1} is not an event")
            continue
        if event["n"] != number:
            problems.append(f"line {number + 1} is numbered {event['n']}, expected {number}")
            break
        events.append(event)
    return Lines(events=tuple(events), problems=tuple(problems))


def _parse_row(row: bytes) -> Mapping[str, Any] | None:
    try:
        event = json.loads(row)
    except (ValueError, RecursionError):
        return None
    if not isinstance(event, dict) or not isinstance(event.get("event"), str):
        return None
    return event if type(event.get("n")) is int else None


def load_lines(path: Path) -> Lines:
    """Return the events of the journal at `path`; a file that cannot be read is a problem."""
    try:
        if path.is_symlink() or not path.is_file():
            return Lines(events=(), problems=("the journal is missing",))
        if path.stat().st_size > MAX_JOURNAL_BYTES:
            return Lines(events=(), problems=(f"the journal is over {MAX_JOURNAL_BYTES} bytes",))
        return parse_lines(path.read_bytes())
    except OSError as error:
        return Lines(events=(), problems=(f"the journal cannot be read: {error.strerror}",))
