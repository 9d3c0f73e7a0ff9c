"""What pytest's reports say, beyond their outcome: read here, judged by the verdict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

DETAIL_CHARACTERS = 20_000
# Attributes of reports; a subtest's report is a copy of its test's and keeps them.
_EXPECTED = "ci_tools_expected"
_LINE = "ci_tools_line"
_OUTCOME = "ci_tools_outcome"
_HOLLOW = "ci_tools_hollow"


def note(
    report: pytest.TestReport, item: pytest.Item, call: pytest.CallInfo[None], *, is_hollow: bool
) -> None:
    """Keep in a report what is only known where pytest makes it."""
    vars(report)[_OUTCOME] = report.outcome
    vars(report)[_EXPECTED] = find_expectation(item, call, report)
    vars(report)[_LINE] = find_test_line(item, call)
    if is_hollow:
        vars(report)[_HOLLOW] = True


def read_fields(report: pytest.TestReport, root: Path) -> dict[str, Any]:
    """Return the fields of a report's event: empty for a plain pass."""
    fields = describe(report, root)
    first = getattr(report, _OUTCOME, report.outcome)
    if first not in ("passed", report.outcome) and not is_subtest(report):
        fields["changed_from"] = first
    if report.outcome == "passed" and getattr(report, _HOLLOW, False):
        fields["hollow"] = True
    if hasattr(report, "wasxfail"):
        fields["expected"] = getattr(report, _EXPECTED, None) or "loose"
        fields.setdefault("message", str(report.wasxfail))
    return fields


def is_subtest(report: pytest.TestReport) -> bool:
    """Return whether a report is of a sub-case: pytest's class, or a plugin's of that name."""
    return type(report).__name__.lower().startswith("subtest")


def find_expectation(
    item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport
) -> str | None:
    """Return how a test was expected to fail: `strict`, `loose`, `not-run`, or None.

    `pytest.xfail()` in a body ends the test wherever it stands, so it is loose under any mark.
    """
    if not hasattr(report, "wasxfail"):
        return None
    if call.excinfo is not None and isinstance(call.excinfo.value, pytest.xfail.Exception):
        return "not-run" if "[NOTRUN]" in str(report.wasxfail) else "loose"
    default = any(_ini(item.config, name) for name in ("strict_xfail", "xfail_strict", "strict"))
    marks = list(item.iter_markers("xfail"))
    is_strict = marks and all(bool(mark.kwargs.get("strict", default)) for mark in marks)
    return "strict" if is_strict else "loose"


def find_test_line(item: pytest.Item, call: pytest.CallInfo[None]) -> int | None:
    """Return the line in the test function itself at which it failed, however deep it raised."""
    if call.excinfo is None:
        return None
    name = getattr(item, "originalname", None) or item.name
    lines = [
        entry.lineno + 1
        for entry in call.excinfo.traceback
        if entry.name == name and Path(entry.path) == item.path
    ]
    return lines[-1] if lines else None


def _ini(config: pytest.Config, name: str) -> bool:
    try:
        return bool(config.getini(name))
    except (KeyError, ValueError):
        return False


def describe(report: pytest.CollectReport | pytest.TestReport, root: Path) -> dict[str, Any]:
    """Return message, place and detail of a report that is not a plain pass."""
    if report.outcome == "passed" and not is_subtest(report):  # type: ignore[arg-type]
        return {}
    fields: dict[str, Any] = {}
    longrepr = report.longrepr
    if isinstance(longrepr, tuple):
        path, line, message = longrepr
        fields = {"message": str(message), "path": _relative(str(path), root), "line": line}
    elif longrepr is not None:
        crash = getattr(longrepr, "reprcrash", None)
        detail = str(longrepr)
        message = str(crash.message) if crash else _last_line(detail)
        fields["message"] = message[:DETAIL_CHARACTERS]
        fields["detail"] = detail[-DETAIL_CHARACTERS:]
        fields |= _place(report, longrepr, root)
    context = getattr(report, "context", None)
    if context is not None:
        values = (f"{key}={value}" for key, value in context.kwargs.items())
        fields["subtest"] = " ".join([*([str(context.msg)] if context.msg else ()), *values])
    return fields


def _place(report: Any, longrepr: Any, root: Path) -> dict[str, Any]:
    """The line in the test itself, or in its file: where an annotation belongs."""
    file = report.nodeid.partition("::")[0]
    line = getattr(report, _LINE, None)
    if line is not None:
        return {"path": file, "line": line}
    entries = getattr(getattr(longrepr, "reprtraceback", None), "reprentries", ())
    places = [entry.reprfileloc for entry in entries if getattr(entry, "reprfileloc", None)]
    for place in reversed(places):
        if _relative(str(place.path), root) == file:
            return {"path": file, "line": place.lineno}
    location = getattr(report, "location", None)
    if location is not None and location[1] is not None:
        return {"path": file, "line": location[1] + 1}
    return {"path": file}


def _relative(path: str, root: Path) -> str:
    return path.removeprefix(f"{root}/")


def _last_line(text: str) -> str:
    lines = [line.removeprefix("E").strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""
