"""A ready container image, and the survey that shows what its containers really are given."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ci_tools.edges.process import Completed, run
from ci_tools.errors import InfrastructureError
from ci_tools.image.engines import dialect as words
from ci_tools.image.engines.dialect import Dialect, run_arguments
from ci_tools.image.engines.inside import (
    launcher_arguments,
    program_text,
    settle_report,
)
from ci_tools.image.identity import ENFORCED, Ending, EnvironmentIdentity, Launch, PassedOver
from ci_tools.tree import Tree

SURVEY_MEMORY_BYTES = 512 * 1024**2
SURVEY_SECONDS = 120.0


@dataclass(frozen=True, kw_only=True)
class ContainerEnvironment:
    """An image that an engine holds; implements `identity.ReadyEnvironment`.

    Attributes:
        dialect: How to speak to the engine.
        image: What `run` is given: `name@digest`, or the id of a local build.
        identity: What to record.
        passed_over: The engines tried before.
    """

    dialect: Dialect
    image: str
    identity: EnvironmentIdentity
    passed_over: tuple[PassedOver, ...] = ()

    @property
    def tree_inside(self) -> str:
        """Where a command sees the tree."""
        return words.TREE

    @property
    def python(self) -> str:
        """The interpreter inside."""
        return words.PYTHON

    def results_inside(self, results: Path) -> str:
        """Return where a command sees the results folder."""
        return words.RESULTS

    def command(self, argv: Sequence[str], launch: Launch) -> list[str]:
        """Return the host's command line that runs `argv` inside."""
        return container_command(self.dialect, self.image, argv, launch)

    def environment(self, launch: Launch) -> dict[str, str]:
        """Return the environment of the engine's own program; nothing of it goes inside."""
        return self.dialect.host_environment()

    def settle(self, launch: Launch, code: int) -> Ending:
        """Return how the command ended; errors as `inside.settle_report`."""
        return settle_report(launch, code, self.dialect.engine)

    def stop(self, launch: Launch) -> None:
        """Remove the container of an interrupted launch, and its report."""
        options = ("--time", "0") if self.dialect.engine == "podman" else ()
        run(
            [self.dialect.engine, "rm", "--force", *options, launch.name],
            env=self.environment(launch),
            timeout_seconds=60,
        )
        (launch.results / launch.report_name).unlink(missing_ok=True)


def container_command(
    dialect: Dialect, image: str, argv: Sequence[str], launch: Launch
) -> list[str]:
    """Return the host's command line that runs `argv` in a container under the launcher."""
    launcher = launcher_arguments(
        python=words.PYTHON,
        report=f"{words.RESULTS}/{launch.report_name}",
        directory=words.TREE,
        scratch=words.SCRATCH,
        network="keep",
        count_oom=True,
    )
    return run_arguments(dialect, image, [*launcher, *argv], launch)


def ready_container(
    dialect: Dialect,
    image: str,
    identity: EnvironmentIdentity,
    *,
    tree: Tree,
    python_version: str,
    report: Callable[[str], None],
) -> ContainerEnvironment:
    """Return the environment after a survey from inside has shown that it is what it must be.

    Raises:
        InfrastructureError: A container does not start, does not see the tree, cannot write its
            results, has a network, or has another Python.
    """
    found, dialect, refusal = survey(dialect, image, tree)
    for complaint in find_complaints(found, python_version):
        raise InfrastructureError(f"{dialect.engine} runs the image, but {complaint}")
    if refusal:
        report(f"{dialect.engine}: the memory limit is not enforced: {refusal}")
    limits = {
        "memory": refusal or ENFORCED,
        "network": ENFORCED,
        "tree": "writable" if found["tree_writable"] else ENFORCED,
    }
    return ContainerEnvironment(
        dialect=dialect, image=image, identity=replace(identity, limits=limits)
    )


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
    command = container_command(dialect, image, [*argv, words.TREE, words.RESULTS, nonce], launch)
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


def find_complaints(found: dict[str, Any], python_version: str) -> list[str]:
    """Return what makes an environment unusable, as the ends of sentences."""
    complaints = []
    if not found["tree"]:
        complaints.append("does not see the tree (a daemon on another machine?)")
    if found["results"]:
        complaints.append(f"it cannot write the results folder: {found['results']}")
    elif not found["shared"]:
        complaints.append("what it writes does not arrive here (a daemon on another machine?)")
    elif not found["owned"]:
        complaints.append("what it writes belongs to another user")
    if found["interfaces"] not in ([], ["lo"]):
        complaints.append(f"it has network interfaces: {', '.join(found['interfaces'])}")
    if found["python"] != python_version:
        complaints.append(f"its Python is {found['python']} and not {python_version}")
    return complaints
