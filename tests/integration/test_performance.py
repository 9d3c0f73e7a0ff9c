"""Bounds in CPU seconds, which a busy machine does not change: what waits for nothing is quick."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ci_tools.lanes.conclude import write_verdict
from ci_tools.planning.format import parse_plan, render_plan, to_json
from ci_tools.planning.making import make_plan
from ci_tools.roster.lock import Lane, LockLine, parse_roster_lock, render_roster_lock
from ci_tools.verdict.decide import Demand, decide
from ci_tools.verdict.evidence import load_evidence
from tests.unit.builders import Run, make_request, make_run, write_run

PLAN_SECONDS, VERDICT_SECONDS = 1.0, 3.0


@contextmanager
def within(seconds: float, what: str) -> Iterator[None]:
    began = time.process_time()
    yield
    used = time.process_time() - began
    print(f"{what}: {used:.2f} s of {seconds:g}")
    assert used < seconds


def test_a_plan_for_ten_thousand_files() -> None:
    ids = [f"tests/roster/part_{n % 97}/test_{n}.py::test_it" for n in range(10_000)]
    text = render_roster_lock(LockLine(Lane.GATE, test_id) for test_id in ids)
    with within(PLAN_SECONDS, "plan for 10,000 files"):
        lock, form = parse_roster_lock(text, "roster.lock")
        plan = make_plan(lock, make_request(tests_per_chunk=240))
        rendered = render_plan(plan)
    assert (form, plan.test_count, len(plan.chunks)) == ([], 10_000, 42)
    assert parse_plan(to_json(plan), "plan.json").hash in rendered


@pytest.fixture(scope="module")
def large() -> Run:
    gate = {
        f"tests/roster/test_{n:04d}.py": [f"test_something_{i}[x-{i}]" for i in range(100)]
        for n in range(1000)
    }
    return make_run(gate, {}, tests_per_chunk=240)


def test_a_verdict_over_a_hundred_thousand_outcomes(large: Run, tmp_path: Path) -> None:
    assert large.plan is not None
    write_run(large, tmp_path / "records")
    with within(VERDICT_SECONDS, "verdict over 100,000 outcomes"):
        evidence = load_evidence(tmp_path / "records", {})
        verdict = decide(evidence, Demand(is_blocking=True, expected_plan=large.plan.hash))
        write_verdict(tmp_path / "verdict", verdict)
    assert verdict.is_gate
    assert (len(verdict.results), verdict.is_green) == (100_000, True)
