"""No damage to the records of a green run leaves the verdict green, and none breaks the tool."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci_tools.edges.actions import render_annotations
from ci_tools.records.lines import parse_lines
from ci_tools.verdict.decide import Demand, Verdict, decide
from ci_tools.verdict.evidence import ChunkRecord, Evidence
from ci_tools.verdict.report.machine import render_json, render_junit
from ci_tools.verdict.report.people import render_markdown, render_text
from tests.unit.builders import A, Run, make_run, render_journal, to_evidence

Place = tuple[str, int | None]  # a chunk's folder, and a file's index or None for its own journal


@dataclass(frozen=True)
class Stored:
    """A run whose journals are bytes, as they lie in files."""

    run: Run
    journals: dict[Place, bytes]

    def verdict(self) -> Verdict:
        evidence = replace(to_evidence(self.run), chunks=tuple(self._chunks()))
        plan = self.run.plan
        assert plan is not None
        return decide(evidence, Demand(is_blocking=True, expected_plan=plan.hash))

    def _chunks(self) -> Iterator[ChunkRecord]:
        for folder, chunk in self.run.chunks.items():
            files = {i: d for (f, i), d in self.journals.items() if f == folder and i is not None}
            yield ChunkRecord(
                folder=folder,
                journal=parse_lines(self.journals[folder, None]),
                environment=chunk.environment,
                files={index: parse_lines(data) for index, data in files.items()},
            )

    def with_journal(self, place: Place, data: bytes) -> Stored:
        return Stored(self.run, {**self.journals, place: data})

    def with_lines(self, place: Place, alter: Callable[[list[bytes]], object]) -> Stored:
        lines = self.journals[place].splitlines(keepends=True)
        alter(lines)
        return self.with_journal(place, b"".join(lines))

    def lines(self) -> Iterator[tuple[Place, int]]:
        for place, data in self.journals.items():
            for number in range(data.count(b"\n")):
                yield place, number


def store(run: Run) -> Stored:
    journals: dict[Place, bytes] = {}
    for folder, chunk in run.chunks.items():
        journals[folder, None] = render_journal(chunk.journal)
        for index, events in chunk.files.items():
            journals[folder, index] = render_journal(events)
    return Stored(run, journals)


GREEN = store(make_run())
SMALL = store(make_run({A: ("test_one",)}, {}))
LINES = list(GREEN.lines())
names = st.text(st.characters(codec="utf-8", exclude_characters=":"), min_size=1, max_size=8)
rosters = st.dictionaries(
    st.integers(0, 99).map("tests/roster/test_{}.py".format),
    st.lists(names.map("test_{}".format), min_size=1, max_size=4, unique=True),
    min_size=1,
    max_size=4,
)
runs = st.builds(
    lambda gate, limit: store(make_run(gate, {}, tests_per_chunk=limit)),
    rosters,
    st.integers(1, 6),
)


@given(runs)
def test_a_whole_run_is_green_whatever_its_ids(stored: Stored) -> None:
    assert stored.verdict().is_green


@pytest.mark.parametrize(("place", "number"), LINES)
def test_a_lost_a_doubled_and_a_broken_line_are_red(place: Place, number: int) -> None:
    lost = GREEN.with_lines(place, lambda lines: lines.pop(number))
    doubled = GREEN.with_lines(place, lambda lines: lines.insert(number, lines[number]))
    broken = GREEN.with_lines(place, lambda lines: lines.__setitem__(number, b"{}\n"))
    for damaged in (lost, doubled, broken):
        assert not damaged.verdict().is_green


@given(runs, st.data())
def test_a_lost_line_of_any_run_is_red(stored: Stored, data: st.DataObject) -> None:
    place, number = data.draw(st.sampled_from(list(stored.lines())))
    assert not stored.with_lines(place, lambda lines: lines.pop(number)).verdict().is_green


@given(runs, st.data())
def test_two_swapped_lines_are_red(stored: Stored, data: st.DataObject) -> None:
    place = data.draw(st.sampled_from(list(stored.journals)))
    count = stored.journals[place].count(b"\n")
    one, other = data.draw(st.lists(st.integers(0, count - 1), min_size=2, max_size=2, unique=True))

    def swap(lines: list[bytes]) -> None:
        lines[one], lines[other] = lines[other], lines[one]

    assert not stored.with_lines(place, swap).verdict().is_green


@given(st.data())
def test_two_swapped_journals_are_red(data: st.DataObject) -> None:
    pair = data.draw(st.lists(st.sampled_from(list(GREEN.journals)), min_size=2, max_size=2))
    one, other = pair
    swapped = GREEN.with_journal(one, GREEN.journals[other])
    swapped = swapped.with_journal(other, GREEN.journals[one])
    assert swapped.verdict().is_green is (one == other)


@pytest.mark.parametrize("place", SMALL.journals)
def test_a_journal_that_is_cut_at_any_byte_is_red(place: Place) -> None:
    whole = SMALL.journals[place]
    assert SMALL.with_journal(place, whole).verdict().is_green
    for length in range(len(whole)):
        assert not SMALL.with_journal(place, whole[:length]).verdict().is_green, length


@given(runs, st.data())
def test_a_lost_journal_of_any_run_is_red(stored: Stored, data: st.DataObject) -> None:
    files = [place for place in stored.journals if place[1] is not None]
    lost = data.draw(st.sampled_from(files))
    kept = {place: content for place, content in stored.journals.items() if place != lost}
    assert not Stored(stored.run, kept).verdict().is_green


@pytest.mark.parametrize("folder", GREEN.run.chunks)
def test_a_lost_chunk_or_environment_record_is_red(folder: str) -> None:
    run = copy.deepcopy(GREEN.run)
    run.chunks[folder].environment = None
    assert not Stored(run, GREEN.journals).verdict().is_green
    del run.chunks[folder]
    assert not Stored(run, GREEN.journals).verdict().is_green


def test_a_lost_preflight_is_red() -> None:
    run = copy.deepcopy(GREEN.run)
    run.preflight = None
    assert not Stored(run, GREEN.journals).verdict().is_green


values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=4,
)
KEYS = sorted({key for data in GREEN.journals.values() for row in data.splitlines()
               for key in json.loads(row)} | {"message", "detail", "line", "subtest", "expected",
                                              "not_started", "outcome", "signal"})  # fmt: skip
EVENTS = ("start", "selected", "phase", "subtest", "collect-report", "internal-error", "refused",
          "finish", "interrupted", "file-start", "file-end", "chunk-start")  # fmt: skip


def render_everything(verdict: Verdict) -> None:
    json.loads(render_json(verdict))
    render_junit(verdict).encode("utf-8")
    render_markdown(verdict)
    render_text(verdict)
    render_annotations(verdict.findings)


@settings(max_examples=150)
@given(
    st.sampled_from(LINES), st.dictionaries(st.sampled_from(KEYS), values, min_size=1), st.data()
)
def test_any_value_in_any_field_is_judged_and_never_breaks_the_tool(
    line: tuple[Place, int], fields: dict[str, Any], data: st.DataObject
) -> None:
    place, number = line
    name = data.draw(st.none() | st.sampled_from(EVENTS))

    def alter(lines: list[bytes]) -> None:
        event = json.loads(lines[number]) | fields | ({} if name is None else {"event": name})
        lines[number] = json.dumps(event).encode("ascii") + b"\n"

    render_everything(GREEN.with_lines(place, alter).verdict())


@given(st.sampled_from([*sorted(GREEN.run.first.environment or {}), "image.name"]), values)
def test_any_environment_record_is_judged(key: str, value: Any) -> None:
    run = copy.deepcopy(GREEN.run)
    environment = run.first.environment
    assert environment is not None
    if key == "image.name":
        environment["image"]["name"] = value
    else:
        environment[key] = value
    render_everything(Stored(run, GREEN.journals).verdict())


@given(st.sampled_from(LINES), st.binary(max_size=20))
def test_any_bytes_in_the_place_of_a_line_are_red(line: tuple[Place, int], row: bytes) -> None:
    place, number = line
    original = GREEN.journals[place].splitlines(keepends=True)[number]
    damaged = GREEN.with_lines(place, lambda lines: lines.__setitem__(number, row + b"\n"))
    assert damaged.verdict().is_green is (row + b"\n" == original)


def test_no_evidence_at_all_is_rendered() -> None:
    empty = Evidence(plan=None, preflight=None, chunks=())
    render_everything(decide(empty, Demand(is_blocking=True)))
