"""Compiles `*.in` to hashed locks with pip-compile from an environment of its own lock."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from ci_tools.edges.process import stream
from ci_tools.errors import InfrastructureError, UsageError
from ci_tools.provision.making import clean_variables
from ci_tools.provision.venvs import ensure_venv
from ci_tools.requirements.check import digest_of, load_requirements
from ci_tools.requirements.parse import (
    normalise,
    parse_input,
    parse_lock,
    render_header,
    strip_header,
)
from ci_tools.tree import Tree

LOCKING = "locking"
COMMAND = "make lock"
COMPILE_SECONDS = 900.0
PLATFORM = ("linux", "x86_64")
OPTIONS = (
    "--generate-hashes",
    "--strip-extras",
    "--allow-unsafe",
    "--no-emit-index-url",
    "--no-emit-find-links",
    "--no-emit-trusted-host",
    "--quiet",
)


def compile_all(
    tree: Tree,
    python_version: str,
    packages: Sequence[str],
    report: Callable[[str], None],
    *,
    is_upgrade: bool = False,
) -> list[str]:
    """Compile every input, those that others include first; return the names of changed locks.

    Versions that are locked stay where the input still allows them.

    Args:
        tree: The repository.
        python_version: The minor version that the locks are for.
        packages: Packages to upgrade, where a lock holds them.
        report: Gets the progress.
        is_upgrade: Upgrade everything.

    Raises:
        UsageError: A package is in no lock, an input cannot be read, or this machine is not of
            the platform that the locks are for.
        InfrastructureError: pip-compile failed; the old locks stay.
    """
    if (sys.platform, platform.machine()) != PLATFORM:
        raise UsageError(
            f"the locks are for {'/'.join(PLATFORM)}, this is {sys.platform}/{platform.machine()}: "
            "another platform may need other packages",
            fix="compile on Linux on x86-64, for instance in a container",
        )
    names = [normalise(package) for package in packages]
    texts = dict(load_requirements(tree).texts)
    holding = {name: _locked_names(texts.get(f"{name}.txt", "")) for name in order_inputs(texts)}
    for name in names:
        if not any(name in locked for locked in holding.values()):
            raise UsageError(f"{name!r} is in no lock", fix="make lock PACKAGE=<a locked name>")
    python = ensure_venv(
        name=LOCKING,
        lock=tree.requirements / f"{LOCKING}.txt",
        python_version=python_version,
        state=tree.state,
        report=report,
    )
    changed = []
    for stem in holding:
        upgrades = [f"--upgrade-package={name}" for name in names if name in holding[stem]]
        report(f"compiling {stem}.in")
        before = texts.get(f"{stem}.txt")
        texts[f"{stem}.txt"] = _compile(
            tree, python, stem, ["--upgrade"] if is_upgrade else upgrades
        )
        if texts[f"{stem}.txt"] != before:
            changed.append(f"{stem}.txt")
    return changed


def order_inputs(texts: dict[str, str]) -> list[str]:
    """Return the inputs' stems so that a lock that others include comes before them."""
    stems = sorted(name.removesuffix(".in") for name in texts if name.endswith(".in"))
    ordered: list[str] = []
    seen: set[str] = set()

    def visit(stem: str) -> None:
        if stem in seen or stem not in stems:
            return
        seen.add(stem)
        for include in parse_input(texts[f"{stem}.in"]).includes:
            visit(include.rpartition(".")[0])
        ordered.append(stem)

    for stem in stems:
        visit(stem)
    return ordered


def _locked_names(text: str) -> set[str]:
    return {pin.name for pin in parse_lock(text).pins}


def _compile(tree: Tree, python: Path, stem: str, upgrades: Sequence[str]) -> str:
    """Compile into a file beside the lock, and replace the lock only when it is whole."""
    target = tree.requirements / f"{stem}.txt"
    part = tree.requirements / f".{stem}.{os.getpid()}.txt"
    if target.exists():
        part.write_bytes(target.read_bytes())  # pip-compile keeps the versions that it finds
    last: list[str] = []
    try:
        code = stream(
            [
                *(str(python), "-m", "piptools", "compile", *OPTIONS, *upgrades),
                *(f"--output-file={part.name}", f"{stem}.in"),
            ],
            last.append,
            cwd=tree.requirements,
            env={**clean_variables(os.environ), "CUSTOM_COMPILE_COMMAND": COMMAND},
            timeout_seconds=COMPILE_SECONDS,
        )
        if code != 0:
            raise InfrastructureError(
                f"pip-compile failed on {stem}.in (exit {code}): {' / '.join(last[-3:])}",
                fix="read the conflict above and mend the .in file; the old lock is untouched",
            )
        text = _with_header(tree, stem, part.read_text(encoding="utf-8"))
        part.write_text(text, encoding="utf-8")
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
    return text


def _with_header(tree: Tree, stem: str, text: str) -> str:
    body = strip_header(text)
    return render_header(digest_of(load_requirements(tree).texts, stem), body) + body
