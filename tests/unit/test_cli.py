"""Every way a command can end has its documented exit code and its words."""

from __future__ import annotations

import argparse
import errno
import sys
from collections.abc import Callable
from types import ModuleType

import pytest

from ci_tools import cli
from ci_tools.errors import ExitCode, IncompleteError, InfrastructureError, UsageError


def run(monkeypatch: pytest.MonkeyPatch, act: Callable[[], ExitCode]) -> int:
    """Run a command line whose one command does `act`."""
    family = ModuleType("family_of_this_test")

    def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
        subparsers.add_parser("act").set_defaults(handler=lambda args: act())

    family.register = register  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, family.__name__, family)
    monkeypatch.setattr(cli, "FAMILIES", (family.__name__,))
    return cli.main(["act"])


def throw(error: BaseException) -> Callable[[], ExitCode]:
    def act() -> ExitCode:
        raise error

    return act


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (UsageError("bad", path="a.toml", line=3, fix="mend"), 2, "a.toml:3: bad\n  fix: mend"),
        (IncompleteError("gone"), 3, "error: gone"),
        (InfrastructureError("down"), 4, "error: down"),
        (OSError(errno.ENOSPC, "No space left on device", "/full/x"), 4, "'/full/x'\n  fix: make"),
        (PermissionError(errno.EACCES, "Permission denied", "/x"), 4, "Permission denied"),
        (OSError(errno.EROFS, "Read-only file system", "/x"), 4, "Read-only"),
        (MemoryError("no memory"), 4, "no memory"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (FileNotFoundError(errno.ENOENT, "No such file", "/x"), 70, "this is a bug in ci_tools"),
        (RuntimeError("oops"), 70, "RuntimeError: oops"),
    ],
)
def test_each_error_has_its_exit_code(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    code: int,
    words: str,
) -> None:
    assert run(monkeypatch, throw(error)) == code
    said = capsys.readouterr().err
    assert words in said
    assert ("Traceback" in said) is (code == ExitCode.BUG)


@pytest.mark.parametrize("code", ExitCode)
def test_a_command_decides_its_exit_code(monkeypatch: pytest.MonkeyPatch, code: ExitCode) -> None:
    assert run(monkeypatch, lambda: code) == code


@pytest.mark.parametrize("words", [[], ["nothing"], ["act", "--no-such"], ["--root"]])
def test_a_bad_command_line_is_usage(words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(words)
    assert ended.value.code == ExitCode.USAGE
