"""The verdict for people: text for a terminal, Markdown for the job page."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ci_tools.errors import render_place as render_file_place
from ci_tools.findings import Finding, Kind
from ci_tools.verdict.decide import Verdict
from ci_tools.verdict.report.words import render_headline, reproduce_command

MAX_ROWS = 50
MAX_CELL_CHARACTERS = 400
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")
MEANINGS = {
    Kind.TEST: "a test failed; whether this branch or its base broke it is not told apart here",
    Kind.MEMORY: "a test process needed more memory than there is",
    Kind.TIMEOUT: "a test file ran over its time limit",
    Kind.CRASH: "a test process ended before it had finished",
    Kind.ROSTER: "the tests that ran are not exactly the tests that are locked",
    Kind.IMAGE: "lockfile, Dockerfile and published image do not belong together",
    Kind.INFRASTRUCTURE: "the machinery failed: engine, network, runner or records",
}


def render_text(verdict: Verdict) -> str:
    """Return the verdict for a terminal: every finding with its fix, the headline last."""
    rows: list[str] = []
    for finding in verdict.findings[:MAX_ROWS]:
        place = render_file_place(finding.path, finding.line) or finding.test_id or ""
        rows.append(f"[{finding.kind}] {place + ': ' if place else ''}{_flat(finding.message)}")
        rows.append(f"    fix: {finding.fix}")
        if finding.kind in _REPRODUCIBLE:
            rows.append(f"    run: {reproduce_command(verdict, finding.test_id, finding.path)}")
    if len(verdict.findings) > MAX_ROWS:
        rows.append(f"... and {len(verdict.findings) - MAX_ROWS} more, all in verdict.json")
    return "\n".join([*rows, render_headline(verdict)])


_REPRODUCIBLE = (Kind.TEST, Kind.TIMEOUT, Kind.CRASH, Kind.MEMORY)


def render_markdown(verdict: Verdict) -> str:
    """Return the job page: the verdict, what each kind of red means, a table with the fixes."""
    mark = "✅" if verdict.is_green else "❌"
    rows = [f"## {mark} {_escape(render_headline(verdict))}", ""]
    if verdict.plan is not None and verdict.plan.commit:
        rows += [f"Commit `{verdict.plan.commit[:12]}`, plan `{verdict.plan.hash[:12]}`.", ""]
    if any(finding.kind in _REPRODUCIBLE for finding in verdict.findings):
        rows += [_render_repeat(verdict), ""]
    for kind in verdict.kinds:
        rows.append(f"- **{kind}**: {MEANINGS.get(kind, 'see the runbooks')}")
    if verdict.findings:
        rows += ["", *_table(verdict, verdict.findings)]
    return "\n".join(rows) + "\n"


def _render_repeat(verdict: Verdict) -> str:
    """How to get to the same tree and the same environment before a command of the table."""
    commit = verdict.plan.commit if verdict.plan is not None else ""
    checkout = f"`git checkout {commit[:12]}`, then " if commit else ""
    digest = verdict.environment.get("digest", "")
    same = f" in the same image, `{digest[:19]}`" if digest else " in the same environment"
    return f"To repeat a failure{same}: {checkout}the command in its row."


def _table(verdict: Verdict, findings: Sequence[Finding]) -> list[str]:
    rows = ["| kind | where | what | mend it or repeat it |", "|---|---|---|---|"]
    for finding in findings[:MAX_ROWS]:
        where = render_file_place(finding.path, finding.line) or finding.test_id or ""
        repeat = _escape(finding.fix)
        if finding.kind in _REPRODUCIBLE:
            repeat = _code(reproduce_command(verdict, finding.test_id, finding.path))
        cells = (finding.kind.value, _code(where), _escape(finding.message), repeat)
        rows.append(f"| {' | '.join(cells)} |")
    if len(findings) > MAX_ROWS:
        rows += ["", f"... and {len(findings) - MAX_ROWS} more, all in `verdict.json`."]
    return rows


def _flat(text: str) -> str:
    return _CONTROL.sub(" ", text)[:2000]


def _escape(text: str) -> str:
    """Return text from a log in a form that Markdown, HTML and mentions cannot act on."""
    flat = _CONTROL.sub(" ", text)
    if len(flat) > MAX_CELL_CHARACTERS:
        flat = flat[:MAX_CELL_CHARACTERS] + " ..."
    flat = flat.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    flat = re.sub(r"([\\`*_\[\]|~])", r"\\\1", flat)
    return flat.replace("@", "@\u200b").replace("#", "#\u200b")


def _code(text: str) -> str:
    """Return text as a code span that stays inside its table cell."""
    flat = _CONTROL.sub(" ", text)[:MAX_CELL_CHARACTERS].replace("|", "\\|")
    if not flat:
        return ""
    fence = "`" * (1 + max((len(run) for run in re.findall(r"`+", flat)), default=0))
    pad = " " if len(fence) > 1 else ""
    return f"{fence}{pad}{flat}{pad}{fence}"
