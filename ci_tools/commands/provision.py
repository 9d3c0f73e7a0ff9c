"""The commands `with` and `clean`: tools in environments of their own, and their removal."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path

from ci_tools.config import load_config
from ci_tools.errors import ExitCode, InfrastructureError, UsageError
from ci_tools.provision.making import clean_variables
from ci_tools.provision.venvs import ensure_venv
from ci_tools.tree import find_tree


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the family to the command line."""
    parser = subparsers.add_parser("with", help="run a command in the environment of a lock")
    parser.add_argument("name", metavar="NAME", help="the lock requirements/NAME.txt")
    parser.add_argument("argv", nargs="+", metavar="CMD", help="the command, after `--`")
    parser.set_defaults(handler=_with)
    clean = subparsers.add_parser("clean", help="remove what jax-gate made below .ci-tools/")
    clean.set_defaults(handler=_clean)


def _with(args: argparse.Namespace) -> ExitCode:
    """Replace this process by the command, so that signals and exit codes are its own."""
    tree = find_tree(args.root or Path.cwd())
    if "/" in args.name or args.name.startswith("."):
        raise UsageError(f"{args.name!r} is no lock's name", fix="for instance: with test -- ...")
    python = ensure_venv(
        name=args.name,
        lock=tree.requirements / f"{args.name}.txt",
        python_version=load_config(tree).python,
        state=tree.state,
        report=lambda line: print(line, file=sys.stderr, flush=True),
    )
    variables = clean_variables(os.environ)
    path = f"{python.parent}{os.pathsep}{variables.get('PATH', os.defpath)}"
    variables |= {"PATH": path, "VIRTUAL_ENV": str(python.parents[1]), "PYTHONNOUSERSITE": "1"}
    program = shutil.which(args.argv[0], path=path)
    if program is None:
        raise UsageError(f"there is no program {args.argv[0]!r} in {args.name} or on PATH")
    sys.stdout.flush()
    try:
        os.execve(program, args.argv, variables)
    except OSError as error:
        raise InfrastructureError(f"cannot start {program}: {error.strerror}") from error


def _clean(args: argparse.Namespace) -> ExitCode:
    tree = find_tree(args.root or Path.cwd())
    if tree.state.is_dir() and not tree.state.is_symlink():
        shutil.rmtree(tree.state)
        print(f"removed {tree.relative(tree.state)}/")
    return ExitCode.GREEN
