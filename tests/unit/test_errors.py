"""What an error says, the exit codes, and the JSON form of a finding."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_tools.errors import (
    CiToolsError,
    ExitCode,
    IncompleteError,
    InfrastructureError,
    UsageError,
    render_place,
)
from ci_tools.findings import Finding, Kind, parse_finding, render_findings

FINDING = Finding(rule="a/b", kind=Kind.ROSTER, message="m", fix="f")
texts = st.text(st.characters(), max_size=5)


def test_the_exit_codes_are_the_contract() -> None:
    assert {code.name: code.value for code in ExitCode} == {
        "GREEN": 0,
        "RED": 1,
        "USAGE": 2,
        "INCOMPLETE": 3,
        "INFRASTRUCTURE": 4,
        "BUG": 70,
        "INTERRUPTED": 130,
    }


@pytest.mark.parametrize(
    ("error", "code"),
    [(UsageError, 2), (IncompleteError, 3), (InfrastructureError, 4), (CiToolsError, 70)],
)
def test_an_error_carries_its_exit_code(error: type[CiToolsError], code: int) -> None:
    assert error("x").exit_code == code


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, "it broke"),
        ({"path": "a.py"}, "a.py: it broke"),
        ({"path": "a.py", "line": 3}, "a.py:3: it broke"),
        ({"line": 3}, "it broke"),
        ({"path": "a.py", "fix": "mend it"}, "a.py: it broke\n  fix: mend it"),
    ],
)
def test_an_error_says_what_where_and_how_to_mend_it(options: Any, text: str) -> None:
    assert str(UsageError("it broke", **options)) == text


def test_a_place_is_a_path_and_a_line() -> None:
    assert [render_place(None, 3), render_place("a", None), render_place("a", 3)] == [
        "",
        "a",
        "a:3",
    ]


@given(
    st.builds(
        Finding,
        rule=texts,
        kind=st.sampled_from(Kind),
        message=texts,
        fix=texts,
        path=st.none() | texts,
        line=st.none() | st.integers(),
        test_id=st.none() | texts,
    )
)
def test_a_finding_reads_back(finding: Finding) -> None:
    assert parse_finding(finding.to_json()) == finding


@pytest.mark.parametrize(
    "change",
    [
        {"rule": None},
        {"rule": 7},
        {"message": []},
        {"fix": {}},
        {"kind": "sad"},
        {"kind": None},
        {"path": 7},
        {"test_id": ["x"]},
    ],
)
def test_what_is_no_finding_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="not a"):
        parse_finding(FINDING.to_json() | change)
    for key in ("rule", "kind", "message", "fix"):
        with pytest.raises(ValueError, match="not a"):
            parse_finding({k: v for k, v in FINDING.to_json().items() if k != key})


def test_findings_as_text() -> None:
    placed = Finding(rule="a/c", kind=Kind.IMAGE, message="n", fix="g", path="x.py", line=2)
    named = Finding(rule="a/d", kind=Kind.TEST, message="o", fix="h", test_id="x.py::y")
    assert render_findings([FINDING, placed, named]) == (
        "[roster] m (a/b)\n    fix: f\n"
        "[image] x.py:2: n (a/c)\n    fix: g\n"
        "[test] x.py::y: o (a/d)\n    fix: h"
    )
