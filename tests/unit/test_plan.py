"""The plan: everything that the lock gates, each id once; its file, and every change to it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_tools.errors import IncompleteError, UsageError
from ci_tools.planning.format import load_plan, parse_plan, render_matrix, render_plan, to_json
from ci_tools.planning.making import make_plan
from ci_tools.planning.plan import Plan, Scope
from ci_tools.roster.lock import Lane, RosterLock
from tests.unit.builders import A, B, C, make_lock, make_request, make_run

names = st.text(st.characters(), max_size=6)
rosters = st.dictionaries(
    st.integers(0, 30).map("tests/test_{}.py".format),
    st.lists(names, min_size=1, max_size=5, unique=True),
    min_size=1,
    max_size=8,
)


def plan_of(gate: dict[str, Any], excluded: dict[str, Any] | None = None, limit: int = 3) -> Plan:
    return make_plan(make_lock(gate, excluded), make_request(tests_per_chunk=limit))


def ids_of(plan: Plan) -> list[str]:
    return [i for chunk in plan.chunks for file in chunk.files for i in file.ids]


@given(rosters, st.integers(1, 9))
def test_every_gated_id_is_planned_once_with_its_file(gate: dict[str, Any], limit: int) -> None:
    plan = plan_of(gate, limit=limit)
    assert sorted(ids_of(plan)) == sorted(f"{p}::{n}" for p in gate for n in gate[p])
    paths = [file.path for chunk in plan.chunks for file in chunk.files]
    assert sorted(paths) == sorted(gate)
    assert [chunk.number for chunk in plan.chunks] == list(range(1, len(plan.chunks) + 1))
    assert plan.test_count == len(ids_of(plan))


@given(rosters, st.integers(1, 9))
def test_a_plan_reads_back(gate: dict[str, Any], limit: int) -> None:
    plan = plan_of(gate, limit=limit)
    text = render_plan(plan)
    assert text.isascii()
    assert parse_plan(json.loads(text), "plan.json") == plan
    assert plan_of(gate, limit=limit).hash == plan.hash


def test_excluded_ids_go_along_with_their_file_and_are_not_planned() -> None:
    plan = plan_of({A: ["test_a"]}, {A: ["test_slow"], B: ["test_b"]})
    (file,) = plan.chunks[0].files
    assert (file.path, file.ids, file.excluded) == (A, (f"{A}::test_a",), (f"{A}::test_slow",))


def test_the_excluded_lane_is_planned_from_the_excluded_ids() -> None:
    lock = make_lock({A: ["test_a"]}, {B: ["test_b"]})
    request = make_request()
    plan = make_plan(lock, type(request)(**{**vars(request), "lane": Lane.EXCLUDED}))
    assert ids_of(plan) == [f"{B}::test_b"]


def test_a_selection_makes_the_plan_partial() -> None:
    lock = make_lock({A: ["test_a", "test_b"], B: ["test_c"]})
    plan = make_plan(lock, make_request(selection=(f"{A}::test_b",)))
    assert (plan.scope, ids_of(plan)) == (Scope.PARTIAL, [f"{A}::test_b"])
    whole = make_plan(lock, make_request(selection=("tests",)))
    assert whole.scope is Scope.PARTIAL
    assert whole.hash != make_plan(lock, make_request()).hash


def test_what_selects_nothing_and_what_holds_nothing_are_errors() -> None:
    with pytest.raises(UsageError, match="matches no id"):
        make_plan(make_lock({A: ["test_a"]}), make_request(selection=(B,)))
    for lock in (RosterLock(()), make_lock({}, {A: ["test_a"]})):
        with pytest.raises(IncompleteError, match="proves nothing"):
            make_plan(lock, make_request())


def test_a_chunk_is_found_by_its_number() -> None:
    plan = plan_of({A: ["test_a"], B: ["test_b"]}, limit=1)
    assert plan.chunk(2).number == 2
    with pytest.raises(UsageError, match="has 2 chunks, none is number 3"):
        plan.chunk(3)
    assert json.loads(render_matrix(plan)) == {"chunk": [1, 2]}


def change(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    """A copy of JSON data with the value at a path replaced."""
    copied = json.loads(json.dumps(data))
    target = copied
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = value
    return copied


def paths_of(data: Any, prefix: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = data.items() if isinstance(data, dict) else enumerate(data)
    found = []
    for key, value in items:
        found.append((*prefix, key))
        if isinstance(value, dict | list):
            found += paths_of(value, (*prefix, key))
    return found


WHOLE = to_json(plan_of({A: ["a", "b"], B: ["c"], C: ["d"]}, {A: ["slow"]}))
VALUES: tuple[Any, ...] = ("x", "", None, 7, 1.5, [], {}, ["x"], float("inf"))


@pytest.mark.parametrize("path", paths_of(WHOLE), ids=str)
def test_a_changed_plan_is_refused(path: tuple[Any, ...]) -> None:
    for value in VALUES:
        changed = change(WHOLE, path, value)
        if changed != WHOLE:
            with pytest.raises(UsageError, match=r"not a plan|was changed"):
                parse_plan(changed, "plan.json")


@pytest.mark.parametrize("key", WHOLE)
def test_a_plan_without_a_part_is_refused(key: str) -> None:
    with pytest.raises(UsageError, match="not a plan"):
        parse_plan({k: v for k, v in WHOLE.items() if k != key}, "plan.json")


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '"x"', "[" * 100_000])
def test_a_file_that_is_no_plan_is_a_usage_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match="plan"):
        load_plan(path)
    with pytest.raises(UsageError, match="cannot read"):
        load_plan(tmp_path / "gone.json")


def test_a_plan_is_loaded_from_its_file(tmp_path: Path) -> None:
    plan = make_run().plan
    assert plan is not None
    (tmp_path / "plan.json").write_text(render_plan(plan), encoding="utf-8")
    assert load_plan(tmp_path / "plan.json") == plan
