"""The verdict for other tools: `verdict.json` and JUnit XML."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET

from ci_tools.roster.lock import file_of
from ci_tools.verdict.decide import Verdict
from ci_tools.verdict.outcomes import Outcome, TestResult
from ci_tools.verdict.report.words import conclusion_of, render_headline

SCHEMA = 1
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render_json(verdict: Verdict) -> str:
    """Return the text of `verdict.json`."""
    plan = verdict.plan
    data = {
        "schema": SCHEMA,
        "conclusion": conclusion_of(verdict),
        "is_gate": verdict.is_gate,
        "exit_code": int(verdict.exit_code),
        "headline": render_headline(verdict),
        "kinds": [kind.value for kind in verdict.kinds],
        "lane": plan.lane.value if plan else None,
        "scope": plan.scope.value if plan else None,
        "selection": list(plan.selection) if plan else [],
        "plan": plan.hash if plan else None,
        "commit": plan.commit if plan else None,
        "environment": {**verdict.environment, "label": verdict.label},
        "counts": {outcome.value: count for outcome, count in sorted(verdict.counts.items())},
        "findings": [finding.to_json() for finding in verdict.findings],
        "outcomes": {
            test_id: {"outcome": result.outcome.value, "seconds": round(result.seconds, 6)}
            for test_id, result in verdict.results.items()
        },
    }
    return json.dumps(data, indent=1) + "\n"


def render_junit(verdict: Verdict) -> str:
    """Return JUnit XML for other tools: one test case for each planned id.

    Findings that belong to no single test are cases of their own, so that no reader sees green.
    """
    cases = [_case(test_id, result) for test_id, result in verdict.results.items()]
    for number, finding in enumerate(verdict.findings, start=1):
        if finding.test_id not in verdict.results:
            case = ET.Element("testcase", classname="ci_tools", name=f"{finding.rule} {number}")
            problem = ET.SubElement(case, "error", message=_clean(finding.message))
            problem.text = _clean(finding.fix)
            cases.append(case)
    suite = ET.Element(
        "testsuite",
        name="ci_tools",
        tests=str(len(cases)),
        failures=str(sum(case.find("failure") is not None for case in cases)),
        errors=str(sum(case.find("error") is not None for case in cases)),
        skipped="0",
    )
    suite.extend(cases)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ET.tostring(suite, encoding="unicode")


def _case(test_id: str, result: TestResult) -> ET.Element:
    path = file_of(test_id)
    case = ET.Element(
        "testcase",
        classname=_clean(path.removesuffix(".py").replace("/", ".")),
        name=_clean(test_id[len(path) + 2 :] or test_id),
        file=_clean(path),
        time=f"{result.seconds:.6f}",
    )
    if not result.outcome.is_green:
        tag = "failure" if result.outcome is Outcome.FAILED else "error"
        problem = ET.SubElement(case, tag, message=_clean(f"{result.outcome}: {result.message}"))
        problem.text = _clean(result.detail)
    return case


def _clean(text: str) -> str:
    """Return the text without what XML cannot carry."""
    return _NOT_XML.sub("\ufffd", text)
