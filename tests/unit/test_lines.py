"""Journals: a line is on disk when `write` returns, and every gap has a name when it is read."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_tools.records.layout import chunk_folder, job_path, journal_path, log_path
from ci_tools.records.lines import LineWriter, load_lines, parse_lines, read_regular

fields = st.dictionaries(
    st.text("abcxyz", min_size=1, max_size=4),
    st.none() | st.booleans() | st.integers() | st.text(st.characters()),
    max_size=3,
)


@given(st.lists(fields, max_size=6))
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]]
) -> None:
    path = tmp_path_factory.mktemp("journal") / "j.jsonl"
    writer = LineWriter(path)
    for number, row in enumerate(rows):
        writer.write("note", **row)
        assert writer.count == number + 1
        assert len(load_lines(path).events) == number + 1
    writer.close()
    lines = load_lines(path)
    assert lines.problems == ()
    assert [dict(e) for e in lines.events] == [
        {"n": number, "event": "note", **row} for number, row in enumerate(rows)
    ]
    assert path.read_bytes().isascii()


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    writer = LineWriter(tmp_path / "j.jsonl")
    with pytest.raises(FileExistsError):
        LineWriter(tmp_path / "j.jsonl")
    writer.write("start")
    assert len(load_lines(tmp_path / "j.jsonl").events) == 1


def test_a_forked_child_writes_nothing(tmp_path: Path) -> None:
    writer = LineWriter(tmp_path / "j.jsonl")
    writer.write("start")
    if (child := os.fork()) == 0:
        writer.write("from-the-child")
        os._exit(0)
    os.waitpid(child, 0)
    writer.write("finish")
    lines = load_lines(tmp_path / "j.jsonl")
    assert ([e["event"] for e in lines.events], lines.problems) == (["start", "finish"], ())


def test_a_closed_journal_takes_nothing_more(tmp_path: Path) -> None:
    writer = LineWriter(tmp_path / "j.jsonl")
    writer.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        writer.write("late")


def row(number: object, event: object = "note", **more: object) -> bytes:
    return json.dumps({"n": number, "event": event, **more}).encode() + b"\n"


@pytest.mark.parametrize(
    ("data", "count", "problem"),
    [
        (b"", 0, None),
        (row(0) + row(1), 2, None),
        (row(0) + b" " + row(1), 1, "line 2 is not an event"),
        (row(0) + row(1)[:-1] + b" \n", 1, "line 2 is not an event"),
        (row(0) + row(1).replace(b"note", b"n\xc3\xb6te"), 1, "line 2 is not an event"),
        (row(0)[:-1], 0, "cut in the middle"),
        (row(0) + row(1)[:-3], 1, "cut in the middle"),
        (b"\n", 0, "line 1 is not an event"),
        (row(0) + b"\n" + row(2), 2, "line 2 is not an event"),
        (row(0) + b"nonsense\n" + row(2), 2, "line 2 is not an event"),
        (row(0) + b"\xff\n", 1, "line 2 is not an event"),
        (row(0) + b"\0\0\n", 1, "line 2 is not an event"),
        (row(0) + b"[1]\n", 1, "line 2 is not an event"),
        (row(0) + b'{"n":1}\n', 1, "line 2 is not an event"),
        (row(0) + row(1, 7), 1, "line 2 is not an event"),
        (row(0) + row("1"), 1, "line 2 is not an event"),
        (row(0) + row(True), 1, "line 2 is not an event"),
        (row(0) + row(1.0), 1, "line 2 is not an event"),
        (row(0) + row(None), 1, "line 2 is not an event"),
        (row(0) + row(1)[:-1] + b"," + row(2), 1, "line 2 is not an event"),
        (row(1), 0, "line 1 is numbered 1, expected 0"),
        (row(0) + row(0), 1, "line 2 is numbered 0, expected 1"),
        (row(0) + row(2), 1, "line 2 is numbered 2, expected 1"),
        (row(-1), 0, "line 1 is numbered -1, expected 0"),
        (row(0) + b"[" * 100_000 + b"\n", 1, "line 2 is not an event"),
        (row(0) + b"9" * 10_000 + b"\n", 1, "line 2 is not an event"),
        (b"\xef\xbb\xbf" + row(0), 0, "line 1 is not an event"),
        (row(0).replace(b"\n", b"\r\n"), 0, "line 1 is not an event"),
    ],
)
def test_each_gap_is_named(data: bytes, count: int, problem: str | None) -> None:
    lines = parse_lines(data)
    assert len(lines.events) == count
    if problem is None:
        assert lines.problems == ()
    else:
        assert any(problem in text for text in lines.problems)


@pytest.mark.parametrize(
    "rows",
    [
        [b'{"n":0,"event":"a"},{"n":1,"event":"b"}', b'{"n":2', b'"event":"c"}'],
        [b'{"n":0', b'"event":"a"}'],
        [b'{"n":0,"event":"a"}', b'{"n":1,"event":"b"},{"n":2,"event":"c"}'],
        [b'{"n":0,"event":"a"', b'"x":1},{"n":1,"event":"b"}'],
    ],
)
def test_events_are_lines_and_nothing_else(rows: list[bytes]) -> None:
    assert parse_lines(b"".join(row + b"\n" for row in rows)).problems


@given(st.binary(max_size=80))
def test_any_bytes_are_read_without_an_error(data: bytes) -> None:
    lines = parse_lines(data)
    assert not data or lines.problems or lines.events


def test_only_a_plain_file_is_read(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_bytes(row(0))
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(plain)
    assert load_lines(plain).problems == ()
    for name, problem in (
        ("gone", "missing"),
        ("pipe", "not a plain file"),
        (".", "not a plain file"),
        ("link", "cannot be opened"),
    ):
        lines = load_lines(tmp_path / name)
        assert lines.events == ()
        assert problem in lines.problems[0]


def test_a_file_over_the_limit_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"x" * 11)
    assert read_regular(tmp_path / "large", 11) == b"x" * 11
    assert read_regular(tmp_path / "large", 10) == "the file is over 10 bytes"


def test_where_things_lie() -> None:
    folder = chunk_folder(Path("r"), 7)
    paths = [folder, journal_path(folder, 3), job_path(folder, 3), log_path(folder, 12345)]
    assert [path.as_posix() for path in paths] == [
        "r/chunk-007",
        "r/chunk-007/files/0003.jsonl",
        "r/chunk-007/files/0003.job.json",
        "r/chunk-007/files/12345.log",
    ]
