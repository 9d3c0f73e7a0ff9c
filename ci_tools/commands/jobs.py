"""`ci_tools jobs`: the one required check of a workflow that leaves no records."""

from __future__ import annotations

import argparse
import os

from ci_tools.errors import ExitCode
from ci_tools.findings import render_findings
from ci_tools.lanes.jobs import check_jobs, parse_needs


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    jobs = subparsers.add_parser(
        "jobs", help="red unless every job in the variable NEEDS succeeded"
    )
    jobs.set_defaults(handler=_check)


def _check(args: argparse.Namespace) -> ExitCode:
    results = parse_needs(os.environ.get("NEEDS", ""))
    findings = check_jobs(results)
    if findings:
        print(render_findings(findings))
        return ExitCode.RED
    print(f"{len(results)} jobs succeeded: {', '.join(sorted(results))}")
    return ExitCode.GREEN
