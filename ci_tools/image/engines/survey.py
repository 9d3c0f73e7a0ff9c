"""A look from inside at what an engine's containers really are given.

Engines take options that the machine cannot keep; what counts is what a container sees.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from ci_tools.edges.process import Completed, run
from ci_tools.errors import InfrastructureError
from ci_tools.image.engines import dialect as words
from ci_tools.image.engines.dialect import Dialect, run_arguments
from ci_tools.image.engines.inside import program_text
from ci_tools.image.identity import Launch
from ci_tools.tree import Tree

SURVEY_MEMORY_BYTES = 512 * 1024**2
SURVEY_SECONDS = 120.0


def survey(dialect: Dialect, image: str, tree: Tree) -> tuple[dict[str, Any], Dialect, str]:
    """Run the survey in a container; without a memory limit only where the engine refuses that.

    Returns:
        What it found, the dialect to go on with, and why memory is not limited, if it is not.

    Raises:
        InfrastructureError: A container does not start, at the second attempt either.
    """
    done, found = run_survey(dialect, image, tree)
    if found is None:
        done, found = run_survey(dialect, image, tree)
    if found is not None and is_limited(found["memory_limit"]):
        return found, dialect, ""
    unlimited = replace(dialect, limits_memory=False)
    refusal = complaint(done.stderr)
    if found is not None:
        return found, unlimited, refusal or "no control group inside shows the limit"
    if is_about_memory(done.stderr):
        done, found = run_survey(unlimited, image, tree)
    if found is None:
        raise InfrastructureError(
            f"{dialect.engine} has the image but no container starts: "
            f"{complaint(done.stderr) or f'exit code {done.code}'}"
        )
    return found, unlimited, refusal


def complaint(stderr: str) -> str:
    """Return the last line in which an engine says something, hints at its help left out."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    return next((line for line in reversed(lines) if not line.startswith(("Run '", "See '"))), "")


def is_about_memory(stderr: str) -> bool:
    """Return whether an engine's complaint can be about a memory limit."""
    return any(word in stderr.lower() for word in ("memory", "cgroup", "swap", "resource limit"))


def is_limited(limit: int | None) -> bool:
    """Return whether the limit that a survey saw is at most the one it was given."""
    return limit is not None and limit <= SURVEY_MEMORY_BYTES


def run_survey(dialect: Dialect, image: str, tree: Tree) -> tuple[Completed, dict[str, Any] | None]:
    """Run the survey once; the findings are None where no container answered."""
    nonce = secrets.token_hex(8)
    tree.state.mkdir(parents=True, exist_ok=True)
    results = Path(tempfile.mkdtemp(prefix="survey-", dir=tree.state))
    launch = Launch(
        tree=tree.root,
        results=results,
        memory_bytes=SURVEY_MEMORY_BYTES,
        variables={},
        name=f"jax-gate-survey-{nonce}",
    )
    argv = [words.PYTHON, "-I", "-S", "-c", program_text("survey")]
    command = run_arguments(dialect, image, [*argv, words.TREE, words.RESULTS, nonce], launch)
    try:
        done = run(
            command, cwd=results, env=dialect.host_environment(), timeout_seconds=SURVEY_SECONDS
        )
        answer = results / "answer"
        shared = answer.is_file() and answer.read_text(encoding="utf-8") == nonce
        owned = shared and answer.stat().st_uid == os.getuid()
    finally:
        shutil.rmtree(results, ignore_errors=True)
    return done, _read_survey(done, shared=shared, owned=owned)


def _read_survey(done: Completed, *, shared: bool, owned: bool) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        return None
    return {**found, "shared": shared, "owned": owned}


def find_flaws(found: dict[str, Any], python_version: str) -> list[str]:
    """Return what makes an environment unusable, as the ends of sentences."""
    flaws = []
    if not found["tree"]:
        flaws.append("does not see the tree (a daemon on another machine?)")
    if found["tree_writable"]:
        flaws.append("it can write the tree")
    if found["results"]:
        flaws.append(f"it cannot write the results folder: {found['results']}")
    elif not found["shared"]:
        flaws.append("what it writes does not arrive here (a daemon on another machine?)")
    elif not found["owned"]:
        flaws.append("what it writes belongs to another user")
    if found["interfaces"] not in ([], ["lo"]):
        flaws.append(f"it has network interfaces: {', '.join(found['interfaces'])}")
    if found["python"] != python_version:
        flaws.append(f"its Python is {found['python']} and not {python_version}")
    return flaws
