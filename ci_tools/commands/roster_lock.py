"""`roster lock`: collects the roster in an environment and writes `roster.lock`."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from ci_tools.config import load_config
from ci_tools.errors import ExitCode
from ci_tools.findings import render_findings
from ci_tools.image.engines.obtain import obtain_environment
from ci_tools.lanes.chunk import ChunkRun
from ci_tools.lanes.listing import list_roster
from ci_tools.lanes.local import label_lines, make_results_folder
from ci_tools.lanes.request import make_environment_request
from ci_tools.roster.lock import load_roster_lock, render_roster_lock
from ci_tools.roster.scan import scan_roster
from ci_tools.tree import Tree, find_tree


def make_lock(args: argparse.Namespace) -> ExitCode:
    """Write the lock, or name the files whose tests cannot be listed and write nothing."""
    tree = find_tree(args.root or Path.cwd())
    config = load_config(tree)
    ready = obtain_environment(make_environment_request(tree, config, args.engine, _report))
    run = ChunkRun(
        tree=tree,
        config=config,
        environment=ready,
        results=make_results_folder(tree),
        report=label_lines(_report, ready.identity.label),
    )
    lines, findings = list_roster(run, scan_roster(tree, config))
    if findings:
        print(render_findings(findings))
        print(f"{config.roster_lock} was not written: {len(findings)} files cannot be listed")
        return ExitCode.RED
    _write(tree, tree.root / config.roster_lock, render_roster_lock(lines))
    lock, _ = load_roster_lock(tree, config.roster_lock)
    print(f"{config.roster_lock}: {len(lock.lines)} entries")
    return ExitCode.GREEN


def _write(tree: Tree, path: Path, text: str) -> None:
    """Replace the lock in one step: an interrupted run leaves the old one whole."""
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def _report(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
