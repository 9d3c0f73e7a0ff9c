"""The embedded default: a virtual environment from the same hashed lock, without an image.

It shuts out the host's packages and variables and, where the kernel lets it, the network. It
cannot make the tree read-only or bound memory, and says so.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ci_tools.config import load_config
from ci_tools.edges.process import run
from ci_tools.errors import InfrastructureError
from ci_tools.image.engines.inside import (
    failure_reason,
    inside_variables,
    launcher_arguments,
    settle_report,
)
from ci_tools.image.identity import (
    ENFORCED,
    LOCKFILE_LABEL,
    Ending,
    EnvironmentIdentity,
    EnvironmentKind,
    Launch,
    PassedOver,
)
from ci_tools.image.inputs import Inputs
from ci_tools.image.words import Engine
from ci_tools.provision.venvs import ensure_venv
from ci_tools.tree import Tree

SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
NO_MEMORY_LIMIT = "a virtual environment has no control group of its own"
NO_READ_ONLY = "the tree is used in place and is writable"
LIST_INTERFACES = "import socket; print(*(name for _, name in socket.if_nameindex()))"


@dataclass(frozen=True, kw_only=True)
class VenvEnvironment:
    """A virtual environment; implements `identity.ReadyEnvironment`.

    Attributes:
        interpreter: The environment's Python.
        root: The tree, used in place.
        network: The launcher's word for how it leaves the host's network.
        identity: What to record.
        passed_over: The engines tried before.
    """

    interpreter: Path
    root: Path
    network: str
    identity: EnvironmentIdentity
    passed_over: tuple[PassedOver, ...] = ()
    _scratch: dict[str, str] = field(default_factory=dict, repr=False, compare=False)

    @property
    def tree_inside(self) -> str:
        """Where a command sees the tree."""
        return str(self.root)

    @property
    def python(self) -> str:
        """The interpreter inside."""
        return str(self.interpreter)

    def results_inside(self, results: Path) -> str:
        """Return where a command sees the results folder."""
        return str(results.resolve())

    def cache_inside(self, cache: Path) -> str:
        """Return where a command sees the launch's cache folder."""
        return str(cache.resolve())

    def command(self, argv: Sequence[str], launch: Launch) -> list[str]:
        """Return the command line that runs `argv` under the launcher, in the tree."""
        launcher = launcher_arguments(
            python=self.python,
            report=str(launch.results.resolve() / launch.report_name),
            directory=str(launch.tree.resolve()),
            scratch=self._scratch_of(launch),
            network=self.network,
            count_oom=False,
        )
        return [*launcher, *argv]

    def environment(self, launch: Launch) -> dict[str, str]:
        """Return the command's whole environment; nothing of the caller's is in it."""
        path = f"{self.interpreter.parent}:{SYSTEM_PATH}"
        return inside_variables(self._scratch_of(launch), path, launch.variables)

    def settle(self, launch: Launch, code: int) -> Ending:
        """Return how the command ended and remove its scratch; errors as `settle_report`."""
        shutil.rmtree(self._scratch.pop(launch.name, ""), ignore_errors=True)
        return settle_report(launch, code, Engine.VENV)

    def stop(self, launch: Launch) -> None:
        """Remove the scratch folder and the report of an interrupted launch."""
        shutil.rmtree(self._scratch.pop(launch.name, ""), ignore_errors=True)
        (launch.results / launch.report_name).unlink(missing_ok=True)

    def _scratch_of(self, launch: Launch) -> str:
        if launch.name not in self._scratch:
            self._scratch[launch.name] = tempfile.mkdtemp(prefix="jax-gate-")
        return self._scratch[launch.name]


def ready_venv(tree: Tree, inputs: Inputs, report: Callable[[str], None]) -> VenvEnvironment:
    """Return the lockfile environment of a tree, made first where it is not there.

    Raises:
        InfrastructureError: No fitting Python can be found or fetched, or pip failed.
    """
    version = load_config(tree).python
    python = ensure_venv(
        name="gate",
        lock=tree.gate_requirements,
        python_version=version,
        state=tree.state,
        report=report,
    )
    network, words = find_network_mode(python)
    if words != ENFORCED:
        report(f"venv: the network is not cut off: {words}")
    return VenvEnvironment(
        interpreter=python,
        root=tree.root.resolve(),
        network=network,
        identity=EnvironmentIdentity(
            engine=Engine.VENV,
            kind=EnvironmentKind.LOCKFILE,
            name=tree.relative(tree.gate_requirements),
            digest="",
            image_id="",
            inputs=inputs.hash,
            engine_version=f"Python {version}",
            label=LOCKFILE_LABEL,
            limits={"memory": NO_MEMORY_LIMIT, "network": words, "tree": NO_READ_ONLY},
        ),
    )


def find_network_mode(python: Path) -> tuple[str, str]:
    """Return how the launcher can leave the network, and `enforced` or why it cannot.

    Raises:
        InfrastructureError: The interpreter does not even start among clean variables.
    """
    reasons = []
    for mode in ("net", "user-net"):
        interfaces, reason = try_network_mode(python, mode)
        if interfaces == ["lo"]:
            return mode, ENFORCED
        reasons.append(reason or f"it still sees {', '.join(interfaces)}")
    interfaces, reason = try_network_mode(python, "keep")
    if reason:
        raise InfrastructureError(
            f"{python} does not start without the host's variables: {reason}",
            fix="use a Python that needs no LD_LIBRARY_PATH, or a container engine",
        )
    return "keep", f"this machine gives no network namespace ({'; '.join(reasons)})"


def try_network_mode(python: Path, mode: str) -> tuple[list[str], str]:
    """Return the network interfaces that a command sees under the launcher, or why it fails."""
    with tempfile.TemporaryDirectory(prefix="jax-gate-") as scratch:
        report = Path(scratch) / "report"
        launcher = launcher_arguments(
            python=str(python),
            report=str(report),
            directory=scratch,
            scratch=scratch,
            network=mode,
            count_oom=False,
        )
        done = run(
            [*launcher, str(python), "-I", "-S", "-c", LIST_INTERFACES],
            env=inside_variables(scratch, SYSTEM_PATH, {}),
            timeout_seconds=30,
        )
        try:
            lines = report.read_text(encoding="utf-8").splitlines()
        except OSError:
            lines = []
    if done.code == 0:
        return done.stdout.split(), ""
    return [], failure_reason(lines) or done.last_lines(1) or f"exit code {done.code}"
