"""Exit codes and the errors that carry them.

Every non-zero exit of the tool is one of `ExitCode`; an error names what is wrong, where, and
the command or edit that mends it.
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """The process exit codes of every command."""

    GREEN = 0
    RED = 1
    USAGE = 2
    INCOMPLETE = 3
    INFRASTRUCTURE = 4
    BUG = 70
    INTERRUPTED = 130


class CiToolsError(Exception):
    """A failure with a cause, a place and a fix.

    Args:
        message: What is wrong and why it matters, without a trailing full stop.
        path: The file at fault, relative to the repository root where possible.
        line: The 1-based line in `path`.
        fix: The command or the edit that mends it.
    """

    exit_code = ExitCode.BUG

    def __init__(
        self, message: str, *, path: str | None = None, line: int | None = None, fix: str = ""
    ) -> None:
        super().__init__(message)
        self.message = message
        self.path = path
        self.line = line
        self.fix = fix

    def __str__(self) -> str:
        place = render_place(self.path, self.line)
        text = f"{place}: {self.message}" if place else self.message
        return f"{text}\n  fix: {self.fix}" if self.fix else text


class UsageError(CiToolsError):
    """The command line, a configuration file or an input file is not usable (exit 2)."""

    exit_code = ExitCode.USAGE


class IncompleteError(CiToolsError):
    """Something that had to be there is missing (exit 3)."""

    exit_code = ExitCode.INCOMPLETE


class InfrastructureError(CiToolsError):
    """An engine, the network, the runner or the machine failed (exit 4)."""

    exit_code = ExitCode.INFRASTRUCTURE


def render_place(path: str | None, line: int | None) -> str:
    """Return `path:line`, `path` or an empty string."""
    if path is None:
        return ""
    return path if line is None else f"{path}:{line}"
