"""The files and commands of GitHub Actions, parsed here as the runner parses them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_tools.edges.actions import (
    MAX_ANNOTATIONS,
    MAX_SUMMARY_BYTES,
    is_ci,
    render_annotations,
    write_outputs,
    write_summary,
)
from ci_tools.errors import InfrastructureError
from ci_tools.findings import Finding, Kind, flatten
from tests.unit.test_report_people import findings, hostile

COMMAND = re.compile(r"::error (?P<properties>[^:]*)::(?P<data>.*)")


def make_finding(message: str = "m", path: str | None = None, line: int | None = None) -> Finding:
    return Finding(rule="a/b", kind=Kind.TEST, message=message, fix="f", path=path, line=line)


def unescape(text: str) -> str:
    for code, character in (("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(code, character)
    return text


def test_an_annotation_stands_at_its_line() -> None:
    text = render_annotations([make_finding("m", "a.py", 3), make_finding("n", "b.py")])
    assert text.splitlines() == [
        "::error file=a.py,line=3,title=test%3A a/b::m - fix: f",
        "::error file=b.py,title=test%3A a/b::n - fix: f",
    ]


def test_without_a_path_there_is_no_place() -> None:
    assert render_annotations([make_finding()]) == "::error title=test%3A a/b::m - fix: f\n"
    assert render_annotations([]) == ""


def test_the_last_annotation_says_how_many_more_there_are() -> None:
    exact = render_annotations([make_finding()] * MAX_ANNOTATIONS).splitlines()
    assert (len(exact), "more" in exact[-1]) == (MAX_ANNOTATIONS, False)
    cut = render_annotations([make_finding()] * (MAX_ANNOTATIONS + 1)).splitlines()
    assert len(cut) == MAX_ANNOTATIONS
    assert cut[-1] == "::error title=ci_tools::and 2 more on the job page"


@given(st.lists(findings, min_size=1, max_size=3))
def test_each_finding_is_one_command_whatever_its_text(found: list[Finding]) -> None:
    lines = re.split(r"[\r\n]", render_annotations(found))
    assert lines.pop() == ""
    assert len(lines) == len(found)
    for line, finding in zip(lines, found, strict=True):
        match = COMMAND.fullmatch(line)
        assert match is not None
        pairs = dict(pair.split("=", 1) for pair in match["properties"].split(","))
        assert set(pairs) <= {"file", "line", "title"}
        if finding.path is not None:
            assert unescape(pairs["file"]) == "\n".join(map(flatten, finding.path.split("\n")))


@given(hostile.filter(lambda text: text.isprintable() and "##[" not in text))
def test_printable_text_reads_back(text: str) -> None:
    match = COMMAND.fullmatch(render_annotations([make_finding(text)]).strip("\n"))
    assert match is not None
    assert unescape(match["data"]) == f"{text} - fix: f"


@given(st.dictionaries(st.sampled_from(["matrix", "plan-hash"]), hostile))
def test_outputs_read_back(
    tmp_path_factory: pytest.TempPathFactory, outputs: dict[str, str]
) -> None:
    target = tmp_path_factory.mktemp("outputs") / "output"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GITHUB_OUTPUT", str(target))
        write_outputs(outputs)
    text = target.read_bytes().decode("utf-8")
    rows = re.findall(r"^([a-z-]+)<<(\w+)\n(.*?)\n\2\n", text, re.MULTILINE | re.DOTALL)
    expected = {n: v.encode("utf-8", "replace").decode() for n, v in outputs.items()}
    assert {name: value for name, _, value in rows} == expected


def test_the_summary_is_appended_and_cut_where_github_cuts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "summary"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(target))
    write_summary("one\n")
    write_summary("é" * MAX_SUMMARY_BYTES)
    text = target.read_text(encoding="utf-8")
    assert text.startswith("one\né")
    assert text.endswith("cut here; the rest is in the artifact.\n")
    assert target.stat().st_size <= 1024 * 1024 + 4


@pytest.mark.parametrize("write", [lambda: write_summary("x"), lambda: write_outputs({"a": "b"})])
def test_outside_of_a_job_it_says_so(
    write: object, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert callable(write)
    for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(InfrastructureError, match="is not set"):
        write()
    for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT"):
        monkeypatch.setenv(name, str(tmp_path))
    with pytest.raises(InfrastructureError, match="cannot write"):
        write()


@pytest.mark.parametrize(
    ("value", "expected"),
    [("true", True), ("True", True), ("false", False), ("", False), (None, False)],
)
def test_only_actions_is_ci(value: str | None, expected: bool) -> None:
    assert is_ci({} if value is None else {"GITHUB_ACTIONS": value}) is expected
