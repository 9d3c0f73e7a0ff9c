"""Numbered JSON lines: written one at a time as things happen, read back with every gap named.

Each line is an object whose `n` counts from 0. A reader can therefore tell a whole journal from
one that lost a line, has one twice, or was cut in the middle of a write.
"""

from __future__ import annotations

import json
import os
import stat
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
    rows = data.decode("latin-1").split("\n")  # never fails; what is not ASCII is refused below
    if rows.pop() != "":
        problems.append("the last line was cut in the middle of a write")
    for number, event in enumerate(map(_parse_row, rows)):
        if event is None:
            problems.append(f"line {number + 1} is not an event")
        elif event["n"] != number:
            problems.append(f"line {number + 1} is numbered {event['n']}, expected {number}")
            break
        else:
            events.append(event)
    return Lines(events=tuple(events), problems=tuple(problems))


def _parse_row(row: str) -> Mapping[str, Any] | None:
    """Return the one event that fills a row exactly as the writer writes it, else None."""
    try:
        event, end = _decode(row)
    except (ValueError, RecursionError):
        return None
    is_whole = end == len(row) and row.isascii() and type(event) is dict
    if is_whole and type(event.get("n")) is int and type(event.get("event")) is str:
        return event  # type: ignore[no-any-return]
    return None


_decode = json.JSONDecoder().raw_decode  # half the time of `json.loads`


def load_lines(path: Path) -> Lines:
    """Return the events of the journal at `path`; a file that cannot be read is a problem."""
    data = read_regular(path, MAX_JOURNAL_BYTES)
    return parse_lines(data) if isinstance(data, bytes) else Lines(events=(), problems=(data,))


def read_regular(path: Path, limit: int) -> bytes | str:
    """Return the bytes of a plain file of at most `limit` bytes, else what is wrong with it.

    Links, pipes and devices are refused: records of a fork's pull request are foreign.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return "the file is missing"
    except OSError as error:
        return f"the file cannot be opened: {error.strerror}"
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return "it is not a plain file"
        if status.st_size > limit:
            return f"the file is over {limit} bytes"
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(limit + 1)
    except OSError as error:
        return f"the file cannot be read: {error.strerror}"
    finally:
        os.close(descriptor)
