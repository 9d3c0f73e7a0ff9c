"""A required check over jobs is green only if all of them succeeded."""

from __future__ import annotations

import json

import pytest

from ci_tools.cli import main
from ci_tools.errors import ExitCode, UsageError
from ci_tools.lanes.jobs import check_jobs, parse_needs


def needs(**results: str) -> str:
    return json.dumps({name: {"result": r, "outputs": {"x": "y"}} for name, r in results.items()})


def test_all_succeeded(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("NEEDS", needs(test="success", lint="success"))
    assert main(["jobs"]) == ExitCode.GREEN
    assert capsys.readouterr().out == "2 jobs succeeded: lint, test\n"


@pytest.mark.parametrize("result", ["failure", "cancelled", "skipped", "", "SUCCESS", "None"])
def test_anything_but_success_is_red(
    result: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NEEDS", needs(test=result, lint="success"))
    assert main(["jobs"]) == ExitCode.RED
    assert "job 'test' ended as" in capsys.readouterr().out


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "1", '{"a": 1}', '{"a": {}}', '{"a": null}', '["a"]']
)
def test_what_is_no_context_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match="NEEDS"):
        parse_needs(text)


def test_needing_nothing_proves_nothing() -> None:
    with pytest.raises(UsageError, match="proves nothing"):
        parse_needs("{}")


def test_every_job_that_did_not_succeed_is_named() -> None:
    found = check_jobs({"b": "failure", "a": "skipped", "c": "success"})
    assert [(finding.rule, finding.kind) for finding in found] == [
        ("jobs/skipped", "infrastructure"),
        ("jobs/failure", "test"),
    ]
