"""`verdict.json` and JUnit XML: readable for any text, and never green for a red verdict."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_tools.findings import Finding, Kind
from ci_tools.verdict.decide import Demand, Verdict, decide
from ci_tools.verdict.evidence import Evidence
from ci_tools.verdict.outcomes import Outcome, TestResult
from ci_tools.verdict.report.machine import render_json, render_junit
from tests.unit.builders import COMMIT, IMAGE, A, judge, make_run
from tests.unit.test_verdict_reds import ALL, run_of

texts = st.text(st.characters(), max_size=12)
results = st.builds(
    TestResult,
    outcome=st.sampled_from(Outcome),
    seconds=st.floats(0, 1e6),
    message=texts,
    detail=texts,
)
findings = st.builds(
    Finding,
    rule=texts,
    kind=st.sampled_from(Kind),
    message=texts,
    fix=texts,
    test_id=st.none() | texts,
)


def make_verdict(found: list[Finding], outcomes: dict[str, TestResult]) -> Verdict:
    return Verdict(
        is_green=not found and all(r.outcome.is_green for r in outcomes.values()),
        is_gate=False,
        plan=None,
        environment={},
        label="",
        findings=tuple(found),
        results=outcomes,
    )


def counts(text: str) -> dict[str, int]:
    suite = ET.fromstring(text.encode("utf-8"))
    names = ("tests", "failures", "errors", "skipped")
    found = {name: int(suite.get(name, "-1")) for name in names}
    assert found["tests"] == len(suite.findall("testcase"))
    assert found["failures"] == len(suite.findall("testcase/failure"))
    assert found["errors"] == len(suite.findall("testcase/error"))
    return found


@given(st.lists(findings, max_size=3), st.dictionaries(texts, results, max_size=4))
def test_junit_is_xml_and_counts_what_it_holds(
    found: list[Finding], outcomes: dict[str, TestResult]
) -> None:
    verdict = make_verdict(found, outcomes)
    total = counts(render_junit(verdict))
    assert (total["failures"] + total["errors"] == 0) is verdict.is_green
    assert total["tests"] >= len(outcomes)


@given(st.lists(findings, max_size=3), st.dictionaries(texts, results, max_size=4))
def test_the_json_reads_back(found: list[Finding], outcomes: dict[str, TestResult]) -> None:
    data = json.loads(render_json(make_verdict(found, outcomes)))
    assert {i: row["outcome"] for i, row in data["outcomes"].items()} == {
        test_id: result.outcome for test_id, result in outcomes.items()
    }
    assert data["findings"] == [finding.to_json() for finding in found]


@pytest.mark.parametrize("name", ALL)
def test_no_red_verdict_is_green_in_junit(name: str) -> None:
    total = counts(render_junit(judge(run_of(name))))
    assert total["failures"] + total["errors"] > 0


def test_a_green_verdict_is_green_in_junit() -> None:
    total = counts(render_junit(judge(make_run())))
    assert total == {"tests": 4, "failures": 0, "errors": 0, "skipped": 0}


def test_a_finding_about_a_test_that_passed_is_a_case_of_its_own() -> None:
    test_id = f"{A}::test_one"
    finding = Finding(rule="r", kind=Kind.ROSTER, message="m", fix="f", test_id=test_id)
    verdict = make_verdict([finding], {test_id: TestResult(outcome=Outcome.PASSED)})
    assert counts(render_junit(verdict))["errors"] == 1


def test_a_case_has_the_names_that_readers_expect() -> None:
    suite = ET.fromstring(render_junit(judge(make_run())))
    case = suite.findall("testcase")[1]
    expected = {"classname": "tests.roster.test_a", "name": "test_two[x y]", "file": A}
    assert dict(case.attrib) == {**expected, "time": "0.750000"}


def test_the_json_of_the_gate() -> None:
    run = make_run()
    assert run.plan is not None
    data = json.loads(render_json(judge(run)))
    wanted = {
        "schema": 1,
        "conclusion": "green",
        "is_gate": True,
        "exit_code": 0,
        "kinds": [],
        "lane": "gate",
        "scope": "full",
        "selection": [],
        "plan": run.plan.hash,
        "commit": COMMIT,
        "counts": {"passed": 4},
        "findings": [],
    }
    assert {key: data[key] for key in wanted} == wanted
    assert data["environment"]["digest"] == IMAGE.digest
    assert data["outcomes"][f"{A}::test_one"] == {"outcome": "passed", "seconds": 0.75}


def test_a_verdict_without_a_plan_is_written_as_well() -> None:
    evidence = Evidence(plan=None, preflight=None, chunks=())
    data = json.loads(render_json(decide(evidence, Demand(is_blocking=True))))
    assert (data["conclusion"], data["plan"], data["outcomes"]) == ("red", None, {})
