"""The command line: one argparse tree, and the exit code of every error.

Each family of commands registers itself; nothing is decided here.
"""

from __future__ import annotations

import argparse
import errno
import importlib
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from ci_tools import __version__
from ci_tools.errors import CiToolsError, ExitCode

# What a command cannot mend: the disk, the rights, and the limits of the machine.
MACHINE_ERRORS = frozenset(
    {
        errno.EACCES,
        errno.EDQUOT,
        errno.EIO,
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOMEM,
        errno.ENOSPC,
        errno.EPERM,
        errno.EROFS,
    }
)
MACHINE_FIX = "make room, or run as a user who may write there, and run the command again"
FAMILIES = (
    "ci_tools.commands.lanes",
    "ci_tools.commands.roster",
    "ci_tools.commands.image",
    "ci_tools.commands.requirements",
    "ci_tools.commands.provision",
    "ci_tools.commands.jobs",
)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of every command."""
    codes = ", ".join(f"{code.value} {code.name.lower()}" for code in ExitCode)
    parser = argparse.ArgumentParser(
        prog="ci-tools",
        description="Gate JAX and NumPyro code in a pinned container; every red says its kind.",
        epilog=f"exit codes: {codes}",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"ci-tools {__version__}")
    parser.add_argument(
        "--root", type=Path, help="the repository (default: found from this folder upward)"
    )
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for family in FAMILIES:
        importlib.import_module(family).register(subparsers)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    signal.signal(signal.SIGTERM, _terminate)
    try:
        args = build_parser().parse_args(arguments)
        return int(args.handler(args))
    except CiToolsError as error:
        print(f"error: {error}", file=sys.stderr)
        return int(error.exit_code)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return int(ExitCode.INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(ExitCode.INFRASTRUCTURE)
    except (OSError, MemoryError) as error:
        if not is_of_the_machine(error):
            return _report_bug()
        print(f"error: {error}\n  fix: {MACHINE_FIX}", file=sys.stderr)
        return int(ExitCode.INFRASTRUCTURE)
    except Exception:
        return _report_bug()


def _report_bug() -> int:
    traceback.print_exc()
    print("this is a bug in ci_tools: please report it with the lines above", file=sys.stderr)
    return int(ExitCode.BUG)


def is_of_the_machine(error: Exception) -> bool:
    """Return whether an error is the machine's: no room, no right, no memory."""
    return isinstance(error, MemoryError) or getattr(error, "errno", None) in MACHINE_ERRORS


def _terminate(number: int, frame: FrameType | None) -> None:
    """End on SIGTERM as on Ctrl-C, so that containers and records are not left behind."""
    raise KeyboardInterrupt
