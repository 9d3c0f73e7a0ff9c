"""The verdict for other tools: `verdict.json` and JUnit XML."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from xml.sax.saxutils import escape, quoteattr

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
        "outcomes": None,
    }
    text = json.dumps(data, indent=1)
    rows = ",\n  ".join(_outcome_row(i, result) for i, result in verdict.results.items())
    return text.replace('"outcomes": null', f'"outcomes": {{\n  {rows}\n }}') + "\n"


def _outcome_row(test_id: str, result: TestResult) -> str:
    """One line of the file for one test: the encoder's own indentation is slow and long."""
    seconds = round(result.seconds, 6)
    return f'{json.dumps(test_id)}: {{"outcome": "{result.outcome.value}", "seconds": {seconds}}}'


def render_junit(verdict: Verdict) -> str:
    """Return JUnit XML for other tools: one test case for each planned id.

    Findings that belong to no single test are cases of their own, so that no reader sees green.
    """
    cases = [_case(test_id, result) for test_id, result in verdict.results.items()]
    failures = sum(result.outcome is Outcome.FAILED for result in verdict.results.values())
    errors = sum(not result.outcome.is_green for result in verdict.results.values()) - failures
    for number, finding in enumerate(verdict.findings, start=1):
        result = verdict.results.get(finding.test_id or "")
        if result is None or result.outcome.is_green:
            errors += 1
            problem = _problem("error", finding.message, finding.fix)
            name = _attribute(f"{finding.rule} {number}")
            cases.append(f'<testcase classname="ci_tools" name={name}>{problem}</testcase>')
    head = f'tests="{len(cases)}" failures="{failures}" errors="{errors}" skipped="0"'
    return "\n".join(
        [
            '<?xml version="1.0" encoding="utf-8"?>',
            f'<testsuite name="ci_tools" {head}>',
            *cases,
            "</testsuite>\n",
        ]
    )


def _case(test_id: str, result: TestResult) -> str:
    path = file_of(test_id)
    name = _attribute(test_id[len(path) + 2 :] or test_id)
    head = f'<testcase {_place(path)} name={name} time="{result.seconds:.6f}"'
    if result.outcome.is_green:
        return f"{head}/>"
    tag = "failure" if result.outcome is Outcome.FAILED else "error"
    problem = _problem(tag, f"{result.outcome}: {result.message}", result.detail)
    return f"{head}>{problem}</testcase>"


@lru_cache(maxsize=1)  # the cases of a file follow each other
def _place(path: str) -> str:
    class_name = path.removesuffix(".py").replace("/", ".")
    return f"classname={_attribute(class_name)} file={_attribute(path)}"


def _problem(tag: str, message: str, text: str) -> str:
    return f"<{tag} message={_attribute(message)}>{escape(_clean(text))}</{tag}>"


def _attribute(text: str) -> str:
    return quoteattr(_clean(text))


def _clean(text: str) -> str:
    """Return the text without what XML cannot carry."""
    return _NOT_XML.sub("\ufffd", text)
