"""The verdict for people: text for a terminal, Markdown for the job page."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ci_tools.errors import render_place as render_file_place
from ci_tools.findings import Finding, Kind, flatten
from ci_tools.verdict.decide import Verdict
from ci_tools.verdict.report.words import render_headline, reproduce_command

MAX_ROWS = 50
MAX_CELL_CHARACTERS = 400
MAX_LINE_CHARACTERS = 2000
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
        head = f"{place}: {finding.message}" if place else finding.message
        rows.append(f"[{finding.kind}] {flatten(head)[:MAX_LINE_CHARACTERS]}")
        rows.append(f"    fix: {flatten(finding.fix)}")
        if finding.kind in _REPRODUCIBLE:
            rows.append(f"    run: {reproduce_command(verdict, finding.test_id, finding.path)}")
    if len(verdict.findings) > MAX_ROWS:
        rows.append(f"... and {len(verdict.findings) - MAX_ROWS} more, all in verdict.json")
    return "\n".join([*rows, flatten(render_headline(verdict))])


_REPRODUCIBLE = (Kind.TEST, Kind.TIMEOUT, Kind.CRASH, Kind.MEMORY)


def render_markdown(verdict: Verdict) -> str:
    """Return the job page: the verdict, what each kind of red means, a table with the fixes."""
    mark = "✅" if verdict.is_green else "❌"
    rows = [f"## {mark} {_escape(render_headline(verdict))}", ""]
    if verdict.plan is not None and verdict.plan.commit:
        commit, plan = _code(verdict.plan.commit[:12]), _code(verdict.plan.hash[:12])
        rows += [f"Commit {commit}, plan {plan}.", ""]
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
    checkout = f"{_code(f'git checkout {commit[:12]}')}, then " if commit else ""
    digest = verdict.environment.get("digest", "")
    same = f" in the same image, {_code(digest[:19])}" if digest else " in the same environment"
    return f"To repeat a failure{same}: {checkout}the command in its row."


def _table(verdict: Verdict, findings: Sequence[Finding]) -> list[str]:
    rows = ["| kind | where | what | mend it or repeat it |", "|---|---|---|---|"]
    for finding in findings[:MAX_ROWS]:
        where = render_file_place(finding.path, finding.line) or finding.test_id or ""
        repeat = _escape(finding.fix)
        if finding.kind in _REPRODUCIBLE:
            repeat = _code(reproduce_command(verdict, finding.test_id, finding.path))
        where = _code(where[:MAX_CELL_CHARACTERS])
        cells = (finding.kind.value, where, _escape(finding.message), repeat)
        rows.append(f"| {' | '.join(cells)} |")
    if len(findings) > MAX_ROWS:
        rows += ["", f"... and {len(findings) - MAX_ROWS} more, all in `verdict.json`."]
    return rows


def _escape(text: str) -> str:
    """Return foreign text in a form that Markdown, HTML, links and mentions cannot act on."""
    flat = flatten(text)
    if len(flat) > MAX_CELL_CHARACTERS:
        flat = flat[:MAX_CELL_CHARACTERS] + " ..."
    flat = flat.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    flat = re.sub(r"([\\`*_\[\]|~$])", r"\\\1", flat)
    return re.sub(r"([@#]|:(?=//)|(?i:www)(?=\.))", "\\1\u200b", flat)


def _code(text: str) -> str:
    """Return text as code that stays inside its table cell, to be copied as it stands."""
    flat = flatten(text)
    if "|" not in flat and "`" not in flat:
        return f"`{flat}`" if flat else ""
    # A row is cut at `|` before code spans are read, and renderers differ on `\\|`.
    return f"<code>{_NOT_PLAIN.sub(lambda match: f'&#{ord(match[0])};', flat)}</code>"


_NOT_PLAIN = re.compile(r"[^A-Za-z0-9 /-]")
