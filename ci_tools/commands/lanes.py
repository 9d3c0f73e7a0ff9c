"""The commands of the lanes: `plan`, `run`, `verdict` and `ci-local`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from ci_tools.config import load_config
from ci_tools.edges import actions
from ci_tools.errors import CiToolsError, ExitCode
from ci_tools.findings import Kind, render_findings
from ci_tools.image.check import ImageMismatchError
from ci_tools.image.engines.obtain import obtain_environment
from ci_tools.lanes.chunk import ChunkRun, run_chunk
from ci_tools.lanes.conclude import conclude
from ci_tools.lanes.local import LocalRequest, label_lines, plan_lane, run_local
from ci_tools.lanes.preflight import finding_of, load_roster_input, run_preflight, write_preflight
from ci_tools.lanes.request import make_environment_request
from ci_tools.planning.format import load_plan, render_matrix, render_plan
from ci_tools.planning.plan import Plan
from ci_tools.records.layout import PLAN, PREFLIGHT
from ci_tools.tree import Tree, find_tree
from ci_tools.verdict.decide import Demand
from ci_tools.verdict.evidence import write_refusal

JOB_RESULT_VARIABLES = {"plan": "PLAN_RESULT", "chunk": "CHUNK_RESULT"}


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the family to the command line."""
    local = subparsers.add_parser("ci-local", help="run the gate's lane on this machine")
    local.add_argument("--engine", help="docker, podman or venv (default: the first that serves)")
    local.add_argument("--only", help="ids, files or folders to run; the verdict is then partial")
    local.set_defaults(handler=_local)
    plan = subparsers.add_parser("plan", help="check the tree and cut its roster into chunks")
    plan.add_argument("--results", type=Path, required=True, help="gets plan.json")
    plan.add_argument("--base", help="the revision that roster removals are counted from")
    plan.add_argument("--only", default="", help="plan a part; the verdict is then partial")
    _add_policy(plan)
    plan.set_defaults(handler=_plan)
    run = subparsers.add_parser("run", help="run one chunk of a plan")
    run.add_argument("--plan", type=Path, required=True, help="the plan.json")
    run.add_argument("--chunk", type=int, required=True, help="the chunk's number")
    run.add_argument("--results", type=Path, required=True, help="gets the chunk's records")
    run.add_argument("--engine", help="docker, podman or venv (default: the first that serves)")
    run.set_defaults(handler=_run)
    verdict = subparsers.add_parser("verdict", help="conclude from a folder of records")
    verdict.add_argument("--records", type=Path, required=True, help="the records of one run")
    verdict.add_argument("--results", type=Path, required=True, help="gets the verdict")
    _add_policy(verdict)
    verdict.set_defaults(handler=_verdict)


def _add_policy(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--blocking", action="store_true", help="only the published image can be green"
    )
    parser.add_argument(
        "--github", action="store_true", help="write job outputs, the summary and annotations"
    )


def _report(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _local(args: argparse.Namespace) -> ExitCode:
    tree = find_tree(args.root or Path.cwd())
    config = load_config(tree)
    only = args.only if args.only is not None else os.environ.get("ONLY", "")
    return run_local(
        LocalRequest(
            tree=tree,
            config=config,
            environment=make_environment_request(tree, config, args.engine, _report),
            only=only,
            report=_report,
        )
    )


def _plan(args: argparse.Namespace) -> ExitCode:
    tree = find_tree(args.root or Path.cwd())
    config = load_config(tree)
    args.results.mkdir(parents=True, exist_ok=True)
    preflight = run_preflight(tree, config, base=args.base or None, is_blocking=args.blocking)
    write_preflight(args.results / PREFLIGHT, preflight)
    for notice in preflight.notices:
        _report(f"notice: {notice}")
    if preflight.findings:
        print(render_findings(preflight.findings))
        if args.github:
            print(actions.render_annotations(preflight.findings), end="")
        return ExitCode.RED
    lock = load_roster_input(tree, config).lock
    plan = plan_lane(tree, config, lock, args.only)
    (args.results / PLAN).write_text(render_plan(plan), encoding="utf-8")
    if args.github:
        actions.write_outputs({"matrix": render_matrix(plan), "plan-hash": plan.hash})
    print(f"plan {plan.hash[:12]}: {plan.test_count} tests in {len(plan.chunks)} chunks")
    return ExitCode.GREEN


def _run(args: argparse.Namespace) -> ExitCode:
    tree = find_tree(args.root or Path.cwd())
    config = load_config(tree)
    plan = load_plan(args.plan)
    plan.chunk(args.chunk)
    request = make_environment_request(tree, config, args.engine, _report)
    try:
        ready = obtain_environment(request)
    except CiToolsError as error:
        kind = Kind.IMAGE if isinstance(error, ImageMismatchError) else Kind.INFRASTRUCTURE
        write_refusal(args.results, args.chunk, finding_of("environment", kind, error))
        raise
    run = ChunkRun(
        tree=tree,
        config=config,
        environment=ready,
        results=args.results,
        report=label_lines(_report, ready.identity.label),
    )
    return run_chunk(run, plan, args.chunk)


def _verdict(args: argparse.Namespace) -> ExitCode:
    tree = find_tree(args.root or Path.cwd())
    return conclude(
        tree,
        args.records,
        args.results,
        Demand(
            is_blocking=args.blocking,
            expected_plan=_expected_plan(tree) if args.blocking else None,
        ),
        _report,
        job_results=_job_results(os.environ),
        is_github=args.github,
    )


def _expected_plan(tree: Tree) -> str:
    """The hash of the plan that this tree gives; a word that no plan has when it gives none."""
    try:
        config = load_config(tree)
        plan: Plan = plan_lane(tree, config, load_roster_input(tree, config).lock, "")
    except CiToolsError as error:
        _report(f"this tree gives no plan: {error}")
        return "none"
    return plan.hash


def _job_results(variables: Mapping[str, str]) -> dict[str, str]:
    found = {name: variables.get(variable) for name, variable in JOB_RESULT_VARIABLES.items()}
    return {name: value for name, value in found.items() if value}
