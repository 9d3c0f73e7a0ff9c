"""The commands `roster check`, `roster diff` and `roster explain`; `roster lock` is a lane's."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ci_tools.commands.roster_lock import make_lock
from ci_tools.config import load_config
from ci_tools.edges import git
from ci_tools.errors import ExitCode
from ci_tools.findings import render_findings
from ci_tools.lanes.preflight import load_diff, load_roster_input
from ci_tools.roster.check import check_roster, find_overdue
from ci_tools.roster.diff import check_removals, render_diff
from ci_tools.roster.explain import Explanation, find_exclusion, find_lines, render_explanation
from ci_tools.roster.history import find_runs, load_runs
from ci_tools.roster.lock import encode_id
from ci_tools.tree import find_tree


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the family to the command line."""
    parser = subparsers.add_parser("roster", help="which tests there are, and in which lane")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    check = commands.add_parser("check", help="hold the roster lock against the test files")
    check.set_defaults(handler=_check)
    lock = commands.add_parser("lock", help="collect every file and write the roster lock")
    lock.add_argument("--engine", help="docker, podman or venv (default: the first that serves)")
    lock.set_defaults(handler=make_lock)
    diff = commands.add_parser("diff", help="list the ids that moved since a base revision")
    diff.add_argument("base", metavar="BASE", help="a revision, for instance origin/main")
    diff.set_defaults(handler=_diff)
    explain = commands.add_parser("explain", help='answer "did CI run this test?"')
    explain.add_argument("word", metavar="ID", help="an id, a file, a folder or a part of a name")
    explain.add_argument(
        "--records", type=Path, action="append", default=[], help="a folder with verdict.json files"
    )
    explain.set_defaults(handler=_explain)


def _check(args: argparse.Namespace) -> ExitCode:
    tree = find_tree(args.root or Path.cwd())
    loaded = load_roster_input(tree, load_config(tree))
    findings = [*loaded.form, *check_roster(loaded.roster)]
    for warning in find_overdue(loaded.roster):
        print(f"warning: {warning}", file=sys.stderr)
    if findings:
        print(render_findings(findings))
        print(f"roster: {len(findings)} findings")
        return ExitCode.RED
    files = sum(file.is_test_file for file in loaded.files)
    print(f"roster: {len(loaded.lock.lines)} locked ids in {files} test files agree")
    return ExitCode.GREEN


def _diff(args: argparse.Namespace) -> ExitCode:
    tree = find_tree(args.root or Path.cwd())
    config = load_config(tree)
    fork = git.merge_base(tree.root, args.base)
    diff = load_diff(tree, config, fork)
    print(render_diff(diff))
    findings = check_removals(diff, git.messages_since(tree.root, fork), config.roster_lock)
    if findings:
        print(render_findings(findings))
    return ExitCode.RED if findings else ExitCode.GREEN


def _explain(args: argparse.Namespace) -> ExitCode:
    tree = find_tree(args.root or Path.cwd())
    config = load_config(tree)
    loaded = load_roster_input(tree, config)
    runs = load_runs([tree.state / "results", *args.records])
    lines = find_lines(loaded.lock, args.word)
    for line in lines:
        since = git.introduced_by(
            tree.root, f"{line.lane} {encode_id(line.test_id)}", config.roster_lock
        )
        explanation = Explanation(
            test_id=line.test_id,
            lane=line.lane,
            since=since,
            exclusion=find_exclusion(line, loaded.files),
            runs=find_runs(runs, line.test_id),
        )
        print(render_explanation(explanation))
    if not lines:
        missing = Explanation(test_id=args.word, lane=None, since=None, exclusion=None, runs=())
        print(render_explanation(missing))
    return ExitCode.GREEN if lines else ExitCode.RED
