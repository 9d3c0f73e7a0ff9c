"""Running one command in a ready environment, from its start to a known ending."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from ci_tools.edges.process import stream
from ci_tools.image.attach import attach
from ci_tools.image.identity import Ending, Launch, ReadyEnvironment


def run_inside(
    environment: ReadyEnvironment,
    argv: Sequence[str],
    launch: Launch,
    *,
    on_line: Callable[[str], None] | None = None,
    timeout_seconds: float | None = None,
) -> Ending:
    """Run a command in the environment to its end.

    Args:
        environment: Where.
        argv: The command, as seen inside.
        launch: Its surroundings; the results folder is made where it is missing.
        on_line: Takes each line of output, both streams together; None leaves the command the
            terminal's own streams.
        timeout_seconds: The wall time it may take; only with `on_line`.

    Raises:
        InfrastructureError: The engine failed, or the command ran out of time.
    """
    launch.results.mkdir(parents=True, exist_ok=True)
    command, variables = environment.command(argv, launch), environment.environment(launch)
    try:
        # Container runtimes may leave files in the folder that they are started from.
        with tempfile.TemporaryDirectory(prefix="jax-gate-") as folder:
            if on_line is None:
                code = attach(command, cwd=Path(folder), env=variables)
            else:
                code = stream(
                    command,
                    on_line,
                    cwd=Path(folder),
                    env=variables,
                    timeout_seconds=timeout_seconds,
                )
        return environment.settle(launch, code)
    except BaseException:
        environment.stop(launch)
        raise


def new_launch_name(purpose: str) -> str:
    """Return a name for a launch that no other on this machine has."""
    return f"jax-gate-{purpose}-{secrets.token_hex(6)}"
