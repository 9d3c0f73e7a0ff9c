"""Did CI run it? Never a yes without a record, never a record of another kind of run."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from ci_tools.roster.explain import (
    Explanation,
    Ran,
    find_exclusion,
    find_lines,
    render_explanation,
)
from ci_tools.roster.history import find_runs, load_runs
from ci_tools.roster.lock import Lane, LockLine, RosterLock
from ci_tools.roster.markers import read_facts
from ci_tools.roster.scan import RosterFile
from ci_tools.verdict.report.machine import render_json
from tests.unit.builders import A, judge, make_lock, make_run, passed, phase
from tests.unit.test_check import SLOW

ONE = f"{A}::test_one"
RAN = Ran(where="run-7", commit="c0ffee" * 6, outcome="passed", is_gate=True)
PLANNED = Explanation(test_id=ONE, lane=Lane.GATE, since="abc 2030", exclusion=None, runs=())
LOCK = make_lock({A: ("test_one", "test_one[x]", "test_two")}, {"b.py": ("test_slow",)})


def answer(explanation: Explanation) -> str:
    return render_explanation(explanation).splitlines()[1].partition("?")[2].strip()


def test_yes_only_for_a_recorded_gate_run() -> None:
    assert answer(replace(PLANNED, runs=(RAN,))) == "yes: run-7, passed"
    assert answer(replace(PLANNED, runs=(replace(RAN, is_gate=False),))).startswith("unknown")
    assert answer(PLANNED).startswith("unknown")


def test_a_run_in_which_it_failed_is_a_run() -> None:
    assert answer(replace(PLANNED, runs=(replace(RAN, outcome="failed"),))) == "yes: run-7, failed"


def test_no_for_what_no_gate_holds() -> None:
    assert answer(replace(PLANNED, lane=Lane.EXCLUDED)) == "no: it is excluded from the gate"
    assert answer(replace(PLANNED, lane=None)) == "no: no lane holds it"


def test_the_last_pass_and_the_last_fail_are_the_newest_of_their_kind() -> None:
    runs = (
        replace(RAN, where="new", outcome="failed"),
        replace(RAN, where="mid", commit=""),
        replace(RAN, where="old", outcome="error"),
    )
    rows = render_explanation(replace(PLANNED, runs=runs)).splitlines()
    assert rows[-2:] == [
        "  last pass:      mid at no commit",
        "  last fail:      new at c0ffeec0ffee",
    ]
    assert render_explanation(PLANNED).splitlines()[-2:] == [
        "  last pass:      unknown",
        "  last fail:      unknown",
    ]


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        (ONE, [ONE, f"{A}::test_one[x]"]),
        (A, [ONE, f"{A}::test_one[x]", f"{A}::test_two"]),
        ("test_two", [f"{A}::test_two"]),
        ("slow", ["b.py::test_slow"]),
        ("", []),
        ("nowhere", []),
    ],
)
def test_the_lines_that_a_word_names(word: str, expected: list[str]) -> None:
    assert [line.test_id for line in find_lines(LOCK, word)] == expected


def test_why_a_test_is_excluded() -> None:
    source = f"@{SLOW}\ndef test_slow(): pass\ndef test_quick(): pass"
    files = [RosterFile(facts=read_facts("b.py", source.encode()))]
    slow = LockLine(Lane.EXCLUDED, "b.py::test_slow[1]")
    exclusion = find_exclusion(slow, files)
    assert exclusion is not None
    assert "expensive: takes ten minutes" in render_explanation(
        replace(PLANNED, lane=Lane.EXCLUDED, exclusion=exclusion)
    )
    assert find_exclusion(LockLine(Lane.GATE, "b.py::test_quick"), files) is None
    assert find_exclusion(slow, []) is None


def test_a_file_and_a_parameter_are_explained() -> None:
    whole = [RosterFile(facts=read_facts("b.py", f"pytestmark = {SLOW}\nrun()".encode()))]
    assert find_exclusion(LockLine(Lane.EXCLUDED, "b.py"), whole) is not None
    source = f"P = pytest.param(1, marks={SLOW})\ndef test_a(p): pass"
    one = [RosterFile(facts=read_facts("b.py", source.encode()))]
    assert find_exclusion(LockLine(Lane.EXCLUDED, "b.py::test_a[1]"), one) is not None


def write(folder: Path, text: str, written: float) -> None:
    folder.mkdir(parents=True)
    (folder / "verdict.json").write_text(text, encoding="utf-8")
    os.utime(folder / "verdict.json", (written, written))


def test_recorded_verdicts_are_read_newest_first(tmp_path: Path) -> None:
    write(tmp_path / "a" / "old", render_json(judge(make_run())), 1000.0)
    part = judge(make_run(selection=(ONE,)), is_blocking=False)
    write(tmp_path / "b" / "new", render_json(part), 2000.0)
    runs = load_runs([tmp_path / "a", tmp_path / "b", tmp_path / "nowhere"])
    found = find_runs(runs, ONE)
    assert [(ran.is_gate, ran.outcome) for ran in found] == [(False, "passed"), (True, "passed")]
    assert found[0].where.startswith("new in ghcr.io/owner/gate@sha256:")
    assert find_runs(runs, f"{A}::test_three") == ()


def test_a_test_that_did_not_run_has_no_run(tmp_path: Path) -> None:
    run = make_run()
    del run.chunks["chunk-001"]
    write(tmp_path / "red", render_json(judge(run)), 1.0)
    assert find_runs(load_runs([tmp_path]), ONE) == ()


def test_a_test_that_was_skipped_did_not_run(tmp_path: Path) -> None:
    run = make_run()
    skipped = phase(ONE, "setup", "skipped", message="no GPU")
    run.replace_test(ONE, [passed(ONE)[0], skipped, phase(ONE, "teardown")])
    write(tmp_path / "red", render_json(judge(run)), 1.0)
    runs = load_runs([tmp_path])
    assert find_runs(runs, ONE) == ()
    assert [ran.outcome for ran in find_runs(runs, f"{A}::test_two[x y]")] == ["passed"]


@pytest.mark.parametrize(
    "change",
    [
        {"outcomes": [1]},
        {"outcomes": {ONE: 7}},
        {"environment": {}},
        {"environment": None},
        {"is_gate": "true"},
        {"is_gate": 1},
        {"commit": None},
    ],
    ids=str,
)
def test_a_foreign_verdict_is_never_a_yes(tmp_path: Path, change: Mapping[str, object]) -> None:
    data = json.loads(render_json(judge(make_run(selection=(ONE,)), is_blocking=False))) | change
    write(tmp_path / "x", json.dumps(data), 1.0)
    runs = find_runs(load_runs([tmp_path]), ONE)
    assert not any(ran.is_gate for ran in runs)
    assert not answer(replace(PLANNED, runs=runs)).startswith("yes")


@pytest.mark.parametrize("text", ["", "{", "[]", "7", "null", "[" * 100_000, '{"a": "\ud800"}'])
def test_a_file_that_is_no_verdict_says_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "verdict.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    assert load_runs([tmp_path]) == []


def test_an_empty_lock_names_nothing() -> None:
    assert find_lines(RosterLock(()), "test") == ()
