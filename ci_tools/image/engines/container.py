"""A container image that is ready to run commands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ci_tools.edges.process import run
from ci_tools.errors import InfrastructureError
from ci_tools.image.engines import dialect as words
from ci_tools.image.engines.dialect import Dialect, run_arguments
from ci_tools.image.engines.inside import settle_report
from ci_tools.image.engines.survey import find_flaws, survey
from ci_tools.image.identity import ENFORCED, Ending, EnvironmentIdentity, Launch, PassedOver
from ci_tools.tree import Tree


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

    def cache_inside(self, cache: Path) -> str:
        """Return where a command sees the launch's cache folder."""
        return words.CACHE

    def command(self, argv: Sequence[str], launch: Launch) -> list[str]:
        """Return the host's command line that runs `argv` inside."""
        return run_arguments(self.dialect, self.image, argv, launch)

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
        InfrastructureError: A container does not start, does not see the tree, can write it,
            cannot write its results, has a network, or has another Python.
    """
    found, dialect, refusal = survey(dialect, image, tree)
    for flaw in find_flaws(found, python_version):
        raise InfrastructureError(f"{dialect.engine} runs the image, but {flaw}")
    if refusal:
        report(f"{dialect.engine}: the memory limit is not enforced: {refusal}")
    limits = {"memory": refusal or ENFORCED, "network": ENFORCED, "tree": ENFORCED}
    return ContainerEnvironment(
        dialect=dialect, image=image, identity=replace(identity, limits=limits)
    )
