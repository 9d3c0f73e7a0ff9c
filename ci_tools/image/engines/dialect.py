"""Where the command lines of docker and podman differ, and what they share."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ci_tools.errors import UsageError
from ci_tools.image.engines.inside import inside_variables, launcher_arguments
from ci_tools.image.identity import Launch

TREE = "/repo"
RESULTS = "/results"
CACHE = "/cache"
SCRATCH = "/tmp"
PYTHON = "/opt/gate/bin/python"
PATH = "/opt/gate/bin:/usr/local/bin:/usr/bin:/bin"
SCRATCH_BYTES = 2 * 1024**3
LAUNCH_LABEL = "io.jax-gate.launch"


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """One engine on this machine.

    Attributes:
        engine: `docker` or `podman`; also the program's name.
        version: For humans.
        user: `uid:gid` as the engine has to be told it, so that files belong to the caller.
        run_options: What `run` needs besides.
        build_options: What `build` needs besides.
        variables: Added to the environment of the program itself.
        limits_memory: Whether `run` may be given a memory limit.
    """

    engine: str
    version: str
    user: str
    run_options: tuple[str, ...] = ()
    build_options: tuple[str, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    limits_memory: bool = True

    def host_environment(self) -> dict[str, str]:
        """Return the environment for the program: the caller's, with the engine's own added."""
        return {**os.environ, **dict(self.variables)}


def caller() -> str:
    """Return the calling user as `uid:gid`."""
    return f"{os.getuid()}:{os.getgid()}"


def run_arguments(dialect: Dialect, image: str, argv: Sequence[str], launch: Launch) -> list[str]:
    """Return the host's command line that runs `argv` under the launcher in a new container.

    The container has no network, a read-only tree and root, one writable results folder, a
    scratch folder in memory, the caller's user id and no capabilities. It is removed at its end.

    Raises:
        UsageError: A folder's path cannot be written in a mount option.
    """
    command = [dialect.engine, "run", "--rm", "--name", launch.name, "--pull", "never"]
    command += ["--label", f"{LAUNCH_LABEL}={launch.name}", "--log-driver", "none"]
    command += ["--network", "none", "--read-only", "--user", dialect.user]
    command += ["--cap-drop", "ALL", "--security-opt", "no-new-privileges"]
    command += ["--security-opt", "label=disable"]
    command += ["--tmpfs", f"{SCRATCH}:rw,exec,nosuid,nodev,mode=1777,size={SCRATCH_BYTES}"]
    command += ["--mount", mount(launch.tree, TREE) + ",readonly"]
    command += ["--mount", mount(launch.results, RESULTS)]
    if launch.cache is not None:
        command += ["--mount", mount(launch.cache, CACHE) + ",readonly"]
    command += ["--workdir", TREE, *dialect.run_options]
    if launch.memory_bytes is not None and dialect.limits_memory:
        limit = str(launch.memory_bytes)
        command += ["--memory", limit, "--memory-swap", limit]
    command += variable_options(inside_variables(SCRATCH, PATH, launch.variables))
    launcher = launcher_arguments(
        python=PYTHON,
        report=f"{RESULTS}/{launch.report_name}",
        directory=TREE,
        scratch=SCRATCH,
        network="keep",
        count_oom=True,
    )
    return [*command, image, *launcher, *argv]


def mount(source: Path, target: str) -> str:
    """Return a bind mount as the value of `--mount`.

    Raises:
        UsageError: The path holds a comma or a quote, which the option cannot carry everywhere.
    """
    text = str(source.resolve())
    if any(character in text for character in ',"\n'):
        raise UsageError(
            f"container engines cannot mount {text!r}: it holds a comma, a quote or a line break",
            fix="move the repository to a folder with a plain name",
        )
    return f"type=bind,src={text},dst={target}"


def variable_options(variables: Mapping[str, str]) -> list[str]:
    """Return `--env` options, sorted by name."""
    return [part for key in sorted(variables) for part in ("--env", f"{key}={variables[key]}")]


def build_arguments(
    dialect: Dialect,
    *,
    context: Path,
    dockerfile: Path,
    tag: str,
    build_args: Mapping[str, str],
    labels: Mapping[str, str],
    ca_bundle: Path | None,
) -> list[str]:
    """Return the host's command line that builds the image from base images that are here.

    Raises:
        UsageError: The certificate bundle's path cannot be written in an option.
    """
    command = [dialect.engine, "build", "--file", str(dockerfile), "--tag", tag]
    for option, values in (("--build-arg", build_args), ("--label", labels)):
        for key in sorted(values):
            command += [option, f"{key}={values[key]}"]
    if ca_bundle is not None:
        if "," in str(ca_bundle):
            raise UsageError(
                f"the certificate bundle {ca_bundle} has a comma in its path, which the build "
                "option cannot carry",
                fix="set CA_BUNDLE to a copy with a plain name",
            )
        command += ["--secret", f"id=ca_bundle,src={ca_bundle.resolve()}"]
    return [*command, *dialect.build_options, str(context)]
