"""`roster.lock`: its text form, and the line of everything that breaks it."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_tools.errors import UsageError
from ci_tools.roster.lock import (
    HEADER,
    Lane,
    LockLine,
    decode_id,
    encode_id,
    file_of,
    load_roster_lock,
    parse_roster_lock,
    render_roster_lock,
    static_name,
)
from ci_tools.tree import Tree

PATH = "tests/roster/roster.lock"
ids = st.text(st.characters(), min_size=1, max_size=12) | st.text(
    "ab \"'\\\n\r\t\0:[]/é\ud800\u2028\u00a0\u3000#", min_size=1, max_size=8
)
entries = st.dictionaries(ids, st.sampled_from(Lane), max_size=8)


def rules(text: str) -> list[tuple[str, int | None]]:
    return [(f.rule, f.line) for f in parse_roster_lock(text, PATH)[1]]


@given(entries)
def test_what_is_rendered_is_read_back_without_a_finding(lanes: dict[str, Lane]) -> None:
    text = render_roster_lock(LockLine(lane, test_id) for test_id, lane in lanes.items())
    assert text.startswith(HEADER)
    stored = text.encode("utf-8").decode("utf-8")
    lock, findings = parse_roster_lock(stored, PATH)
    assert findings == []
    assert {line.test_id: line.lane for line in lock.lines} == lanes
    assert [line.line for line in lock.lines] == list(range(3, 3 + len(lanes)))


@given(ids)
def test_an_id_has_exactly_one_form_on_one_line(test_id: str) -> None:
    text = encode_id(test_id)
    assert decode_id(text) == test_id
    assert len(text.splitlines()) == 1
    assert text == text.strip()


@given(st.text(st.characters(), max_size=8))
def test_another_form_of_an_id_is_refused(text: str) -> None:
    try:
        test_id = decode_id(text)
    except ValueError:
        return
    assert encode_id(test_id) == text


@pytest.mark.parametrize("test_id", ["a.py::test_é", "a.py::t[x y]", 'a.py::t["q"]', "a.py::t[😀]"])
def test_what_can_be_read_is_written_as_it_is(test_id: str) -> None:
    assert encode_id(test_id) == test_id


@pytest.mark.parametrize(
    "test_id", [" a", "a ", "a\n", "\0", '"a"', "\u202ea", "a\u200bb", "\ud800"]
)
def test_what_cannot_be_seen_is_written_as_a_json_string(test_id: str) -> None:
    assert encode_id(test_id).startswith('"')
    assert encode_id(test_id).isascii()


def test_the_form_does_not_depend_on_the_version_of_unicode() -> None:
    unassigned = [chr(n) for n in range(0x10000) if unicodedata.category(chr(n)) == "Cn"]
    assert len(unassigned) > 1000
    unassigned.remove("\u2065")  # lies among the marks that are never written as they are
    assert all(encode_id(character) == character for character in unassigned)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("# a comment\n\ngate a.py::b\n", []),
        ("gate a.py::b\ngate a.py::c", []),
        ("excluded a.py::c\ngate a.py::b\n", []),
        ("gate a.py::c\ngate a.py::b\n", [("roster/unsorted-line", 2)]),
        ("gate a.py::b\nexcluded a.py::c\n", [("roster/unsorted-line", 2)]),
        ("gate a\ngate c\ngate b\ngate d\n", [("roster/unsorted-line", 3)]),
        ("gate a.py::b\ngate a.py::b\n", [("roster/doubled-line", 2)]),
        ("excluded a.py::b\ngate a.py::b\n", [("roster/doubled-line", 2)]),
        ("gate\n", [("roster/malformed-line", 1)]),
        ("gate \n", [("roster/malformed-line", 1)]),
        ('gate ""\n', [("roster/malformed-line", 1)]),
        ("gate  a.py::b\n", [("roster/malformed-line", 1)]),
        ("gate a.py::b \n", [("roster/malformed-line", 1)]),
        ("Gate a.py::b\n", [("roster/malformed-line", 1)]),
        ("skip a.py::b\n", [("roster/malformed-line", 1)]),
        ("gate\ta.py::b\n", [("roster/malformed-line", 1)]),
        (" gate a.py::b\n", [("roster/malformed-line", 1)]),
        ('gate "a.py::b"\n', [("roster/malformed-line", 1)]),
        ('gate "a.py::b\n', [("roster/malformed-line", 1)]),
        ('gate "a\\n" \n', [("roster/malformed-line", 1)]),
        (
            "<<<<<<< ours\ngate a\n=======\n",
            [("roster/malformed-line", 1), ("roster/malformed-line", 3)],
        ),
        ("\ufeffgate a\n", [("roster/malformed-line", 1)]),
    ],
)
def test_each_broken_line_is_named(text: str, expected: list[tuple[str, int]]) -> None:
    assert rules(text) == expected


def test_a_line_in_both_lanes_says_so() -> None:
    _, findings = parse_roster_lock("excluded a.py::b\ngate a.py::b\n", PATH)
    assert "as excluded and as gate, first on line 1" in findings[0].message


@given(entries.filter(lambda lanes: len(lanes) > 1), st.data())
def test_a_doubled_or_moved_line_never_passes(lanes: dict[str, Lane], data: st.DataObject) -> None:
    text = render_roster_lock(LockLine(lane, test_id) for test_id, lane in lanes.items())
    head, lines = text.split("\n")[:2], text.split("\n")[2:-1]
    index = data.draw(st.integers(0, len(lines) - 1))
    doubled = [*head, *lines[: index + 1], *lines[index:]]
    moved = [*head, *lines[:index], *lines[index + 1 :], lines[index]]
    assert [rule for rule, _ in rules("\n".join(doubled))] == ["roster/doubled-line"]
    assert bool(rules("\n".join(moved))) is (index != len(lines) - 1)


@pytest.mark.parametrize(
    ("test_id", "path", "name"),
    [
        ("a/test_b.py::test_c", "a/test_b.py", "test_c"),
        ("a/test_b.py::TestC::test_d[1-x]", "a/test_b.py", "TestC::test_d"),
        ("a/test_b.py::test_c[x.py::y]", "a/test_b.py", "test_c"),
        ("a/test_b.py::test_c[a[b]]", "a/test_b.py", "test_c"),
        ("a/test_b.py::test_c[a/b ::]", "a/test_b.py", "test_c"),
        ("a/test_b.py", "a/test_b.py", ""),
        ("a[b]/test_b.py::test_c", "a[b]/test_b.py", "test_c"),
    ],
)
def test_the_parts_of_an_id(test_id: str, path: str, name: str) -> None:
    assert (file_of(test_id), static_name(test_id)) == (path, name)


def test_a_lock_that_cannot_be_read_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read") as missing:
        load_roster_lock(Tree(tmp_path), "roster.lock")
    assert (missing.value.path, missing.value.fix) == ("roster.lock", "make roster-lock")
    (tmp_path / "roster.lock").write_bytes(b"gate \xff\n")
    with pytest.raises(UsageError, match="cannot be read"):
        load_roster_lock(Tree(tmp_path), "roster.lock")
    (tmp_path / "roster.lock").write_text("gate a.py::é\r\n", encoding="utf-8")
    lock, findings = load_roster_lock(Tree(tmp_path), "roster.lock")
    assert (lock.ids(Lane.GATE), findings) == (("a.py::é",), [])
