"""The commands `requirements check` and `requirements compile`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ci_tools.config import load_config
from ci_tools.errors import ExitCode
from ci_tools.findings import render_findings
from ci_tools.requirements.check import check_texts, load_requirements
from ci_tools.requirements.compile import compile_all
from ci_tools.tree import find_tree


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the family to the command line."""
    parser = subparsers.add_parser("requirements", help="the hashed lockfiles")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    check = commands.add_parser("check", help="hold every .txt against its .in, with no network")
    check.set_defaults(handler=_check)
    compile_parser = commands.add_parser("compile", help="compile every .in with hashes")
    compile_parser.add_argument(
        "--package", action="append", default=[], help="upgrade this package (repeatable)"
    )
    compile_parser.add_argument("--upgrade", action="store_true", help="upgrade everything")
    compile_parser.set_defaults(handler=_compile)


def _check(args: argparse.Namespace) -> ExitCode:
    given = load_requirements(find_tree(args.root or Path.cwd()))
    findings = check_texts(given)
    if findings:
        print(render_findings(findings))
        print(f"requirements: {len(findings)} findings")
        return ExitCode.RED
    count = sum(name.endswith(".txt") for name in given.texts)
    print(f"requirements: {count} locks belong to their inputs")
    return ExitCode.GREEN


def _compile(args: argparse.Namespace) -> ExitCode:
    tree = find_tree(args.root or Path.cwd())
    changed = compile_all(
        tree,
        load_config(tree).python,
        args.package,
        lambda line: print(line, file=sys.stderr, flush=True),
        is_upgrade=args.upgrade,
    )
    print(f"changed: {', '.join(changed)}" if changed else "nothing changed")
    return ExitCode.GREEN
