"""Computes a verdict from a folder of records and writes it down in every form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from ci_tools.edges import actions
from ci_tools.errors import ExitCode
from ci_tools.tree import Tree
from ci_tools.verdict.decide import Demand, Verdict, decide
from ci_tools.verdict.evidence import load_evidence
from ci_tools.verdict.report.machine import render_json, render_junit
from ci_tools.verdict.report.people import render_markdown, render_text


def conclude(
    tree: Tree,
    records: Path,
    output: Path,
    demand: Demand,
    report: Callable[[str], None],
    *,
    job_results: Mapping[str, str] | None = None,
    is_github: bool = False,
) -> ExitCode:
    """Decide on the records, write the verdict into `output`, print it, return its exit code."""
    verdict = decide(load_evidence(records, job_results or {}), demand)
    write_verdict(output, verdict)
    print(render_text(verdict), flush=True)
    if is_github:
        actions.write_summary(render_markdown(verdict))
        print(actions.render_annotations(verdict.findings), end="", flush=True)
    report(f"verdict: {tree.relative(output.resolve() / 'verdict.json')}")
    return verdict.exit_code


def write_verdict(output: Path, verdict: Verdict) -> None:
    """Write `verdict.json`, `summary.md` and `junit.xml`."""
    output.mkdir(parents=True, exist_ok=True)
    for name, text in (
        ("verdict.json", render_json(verdict)),
        ("summary.md", render_markdown(verdict)),
        ("junit.xml", render_junit(verdict)),
    ):
        (output / name).write_text(text, encoding="utf-8", errors="replace")
