"""`ci_tools image inputs|build|check|exec`."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from ci_tools.edges.actions import is_ci
from ci_tools.edges.machine import find_memory_bytes
from ci_tools.errors import ExitCode, InfrastructureError, UsageError
from ci_tools.findings import render_findings
from ci_tools.image.check import check_image
from ci_tools.image.engines.build import build_image, local_tag
from ci_tools.image.engines.images import find_image, pull_image
from ci_tools.image.engines.obtain import (
    choose_engines,
    find_dialect,
    name_ways_out,
    obtain_environment,
)
from ci_tools.image.execute import new_launch_name, run_inside
from ci_tools.image.identity import EnvironmentRequest, Launch, PassedOver
from ci_tools.image.inputs import compute_inputs
from ci_tools.image.lock import ImageLock, load_image_lock
from ci_tools.image.settings import find_ca_bundle, parse_size
from ci_tools.image.words import Engine
from ci_tools.tree import Tree, find_tree


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the `image` family to the command line."""
    family = subparsers.add_parser("image", help="the pinned image: inputs, build, check, exec")
    leaves = family.add_subparsers(dest="image_command", required=True)
    inputs = leaves.add_parser("inputs", help="print the inputs hash of the tree")
    inputs.set_defaults(handler=print_inputs)
    build = leaves.add_parser("build", help="build the image here and print its id")
    build.set_defaults(handler=build_here)
    check = leaves.add_parser("check", help="compare tree, image.lock and the image's own label")
    check.add_argument("--no-engine", action="store_true", help="do not look at the image itself")
    check.set_defaults(handler=check_here)
    execute = leaves.add_parser("exec", help="run a command in the image, exactly as lanes do")
    execute.add_argument("--results", type=Path, metavar="DIR", help="the one writable folder")
    execute.add_argument("--memory", type=parse_size, metavar="SIZE", help="for instance 4GiB")
    execute.add_argument("argv", nargs="+", metavar="CMD", help="the command, after `--`")
    execute.set_defaults(handler=execute_here)
    for leaf in (build, check, execute):
        leaf.add_argument("--engine", default=os.environ.get("ENGINE"), help=", ".join(Engine))
    for leaf in (inputs, build, check, execute):
        leaf.add_argument(
            "--base-image",
            default=os.environ.get("BASE_IMAGE"),
            metavar="REF",
            help="replaces the Dockerfile's base; it is part of the inputs",
        )


def print_inputs(args: argparse.Namespace) -> ExitCode:
    """Print the inputs hash."""
    print(compute_inputs(_tree(args), args.base_image or None).hash)
    return ExitCode.GREEN


def build_here(args: argparse.Namespace) -> ExitCode:
    """Build the image from the tree, whether or not one is here, and print its id."""
    tree = _tree(args)
    lock, inputs = load_image_lock(tree), compute_inputs(tree, args.base_image or None)
    ca_bundle = find_ca_bundle(os.environ)
    passed: list[PassedOver] = []
    for engine in _container_engines(args.engine):
        try:
            facts = build_image(
                find_dialect(engine),
                tree,
                local_tag(lock, inputs),
                inputs,
                ca_bundle=ca_bundle,
                report=_report,
            )
        except InfrastructureError as error:
            _pass_over(engine, error, args.engine, passed)
            continue
        _report(f"built {local_tag(lock, inputs)} with {engine}")
        print(facts.image_id)
        return ExitCode.GREEN
    raise _nobody(passed)


def check_here(args: argparse.Namespace) -> ExitCode:
    """Compare tree, lock and label; print findings, or one line that says what agrees."""
    tree = _tree(args)
    lock, inputs = load_image_lock(tree), compute_inputs(tree, args.base_image or None)
    looks = lock.is_published and not args.no_engine
    label = _read_label(lock, args.engine) if looks else None
    findings = check_image(lock, inputs, label)
    if findings:
        print(render_findings(findings))
        return ExitCode.RED
    seen = "tree, lock and image" if label is not None else "tree and lock (image not looked at)"
    print(f"{seen} agree on inputs {inputs.hash}")
    return ExitCode.GREEN


def execute_here(args: argparse.Namespace) -> ExitCode | int:
    """Run a command in the environment; the exit code is the command's own."""
    tree = _tree(args)
    in_ci = is_ci(os.environ)
    request = EnvironmentRequest(
        tree=tree,
        engine=args.engine or None,
        allow_local_build=not in_ci,
        in_ci=in_ci,
        base_image=args.base_image or None,
        ca_bundle=find_ca_bundle(os.environ),
        report=_report,
    )
    environment = obtain_environment(request)
    launch = Launch(
        tree=tree.root,
        results=(args.results or tree.state / "results" / "exec").resolve(),
        memory_bytes=args.memory or find_memory_bytes(),
        variables={},
        name=new_launch_name("exec"),
    )
    ending = run_inside(environment, args.argv, launch)
    if ending.oom_kills:
        _report(f"the kernel killed {ending.oom_kills} process(es) at the memory limit")
    return ending.code


def _read_label(lock: ImageLock, engine_name: str | None) -> str:
    """Return the published image's own label, from the first container engine that has it."""
    passed: list[PassedOver] = []
    for engine in _container_engines(engine_name):
        try:
            dialect = find_dialect(engine)
            facts = find_image(dialect, lock.reference)
            if facts is None or lock.digest not in facts.digests:
                facts = pull_image(dialect, lock.reference, _report)
            return facts.inputs or ""
        except InfrastructureError as error:
            _pass_over(engine, error, engine_name, passed)
    raise _nobody(passed, "; or `image check --no-engine` to compare tree and lock alone")


def _container_engines(name: str | None) -> list[Engine]:
    engines: list[Engine] = [e for e in choose_engines(name, in_ci=False) if e != Engine.VENV]
    if not engines:
        raise UsageError("ENGINE=venv holds no image", fix="name docker or podman")
    return engines


def _pass_over(
    engine: Engine, error: InfrastructureError, named: str | None, passed: list[PassedOver]
) -> None:
    if named:
        raise name_ways_out(error) from error
    passed.append(PassedOver(engine=engine, reason=error.message))
    _report(str(passed[-1]))


def _nobody(passed: list[PassedOver], more: str = "") -> InfrastructureError:
    reasons = "; ".join(f"{over.engine}: {over.reason}" for over in passed)
    return InfrastructureError(
        f"no container engine can serve ({reasons})", fix=f"start docker or install podman{more}"
    )


def _tree(args: argparse.Namespace) -> Tree:
    return find_tree(args.root or Path.cwd())


def _report(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
