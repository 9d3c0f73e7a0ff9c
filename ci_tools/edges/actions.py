"""The files and commands of GitHub Actions: outputs, the job summary, annotations."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path

from ci_tools.errors import InfrastructureError
from ci_tools.findings import Finding, flatten

MAX_ANNOTATIONS = 10
MAX_SUMMARY_BYTES = 1024 * 1024 - 1024


def is_ci(variables: Mapping[str, str]) -> bool:
    """Return whether this runs in GitHub Actions, where a lockfile environment is refused."""
    return variables.get("GITHUB_ACTIONS", "").lower() == "true"


def write_outputs(outputs: Mapping[str, str]) -> None:
    """Append job outputs; a value may hold anything, new lines included.

    Raises:
        InfrastructureError: `GITHUB_OUTPUT` is not set or cannot be written.
    """
    rows = []
    for name, value in outputs.items():
        fence = f"ci_tools_{uuid.uuid4().hex}"
        rows.append(f"{name}<<{fence}\n{value}\n{fence}\n")
    _append("GITHUB_OUTPUT", "".join(rows))


def write_summary(markdown: str) -> None:
    """Append to the job page, cut to the size that GitHub shows.

    Raises:
        InfrastructureError: `GITHUB_STEP_SUMMARY` is not set or cannot be written.
    """
    data = markdown.encode("utf-8", "replace")
    if len(data) > MAX_SUMMARY_BYTES:
        cut = data[:MAX_SUMMARY_BYTES].decode("utf-8", "ignore")
        markdown = f"{cut}\n\n... cut here; the rest is in the artifact.\n"
    _append("GITHUB_STEP_SUMMARY", markdown)


def _append(variable: str, text: str) -> None:
    target = os.environ.get(variable)
    if not target:
        raise InfrastructureError(
            f"{variable} is not set, so this is no GitHub Actions job", fix="leave out --github"
        )
    try:
        with Path(target).open("a", encoding="utf-8", errors="replace") as file:
            file.write(text)
    except OSError as error:
        raise InfrastructureError(f"cannot write {variable}: {error.strerror}") from error


def render_annotations(findings: Iterable[Finding]) -> str:
    """Return workflow commands that annotate the findings at their lines.

    GitHub shows ten of a kind in one step; the last one says how many more there are.
    """
    rows = list(findings)
    shown = rows if len(rows) <= MAX_ANNOTATIONS else rows[: MAX_ANNOTATIONS - 1]
    lines = [_annotation(finding) for finding in shown]
    if len(shown) < len(rows):
        lines.append(f"::error title=ci_tools::and {len(rows) - len(shown)} more on the job page")
    return "".join(f"{line}\n" for line in lines)


def _annotation(finding: Finding) -> str:
    fields = {}
    if finding.path is not None:
        fields["file"] = finding.path
        if finding.line is not None:
            fields["line"] = str(finding.line)
    fields["title"] = f"{finding.kind}: {finding.rule}"
    properties = ",".join(f"{key}={_escape_property(value)}" for key, value in fields.items())
    return (
        f"::error {properties}::{_escape_data(finding.message)} - fix: {_escape_data(finding.fix)}"
    )


def _escape_data(text: str) -> str:
    return "%0A".join(flatten(line).replace("%", "%25") for line in text.split("\n"))


def _escape_property(text: str) -> str:
    return _escape_data(text).replace(":", "%3A").replace(",", "%2C")
