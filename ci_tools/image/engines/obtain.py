"""Choosing the engine and getting the environment ready: the one way to one.

The first of docker, podman and venv that can get the image serves; each one passed over is named
with its reason. A named engine never moves on. CI takes no lockfile environment.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ci_tools.config import load_config
from ci_tools.errors import InfrastructureError, UsageError
from ci_tools.image.check import ImageMismatchError, check_image, label_finding, raise_findings
from ci_tools.image.engines.build import ensure_local_image, local_tag
from ci_tools.image.engines.container import ContainerEnvironment, ready_container
from ci_tools.image.engines.dialect import Dialect
from ci_tools.image.engines.docker import find_docker
from ci_tools.image.engines.images import ImageFacts, find_image, pull_image
from ci_tools.image.engines.podman import find_podman
from ci_tools.image.engines.venv import VenvEnvironment, ready_venv
from ci_tools.image.identity import (
    LOCKFILE_LABEL,
    EnvironmentIdentity,
    EnvironmentKind,
    EnvironmentRequest,
    PassedOver,
    local_build_label,
)
from ci_tools.image.inputs import Inputs, compute_inputs
from ci_tools.image.lock import ImageLock, load_image_lock
from ci_tools.image.words import Engine

CONTAINER_ENGINES: dict[Engine, Callable[[], Dialect]] = {
    Engine.DOCKER: find_docker,
    Engine.PODMAN: find_podman,
}
WAYS_OUT = "mend or start it, or choose another of docker, podman and venv with ENGINE="


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What the tree asks for: its lock, its inputs, and whether the published image fits."""

    lock: ImageLock
    inputs: Inputs

    @property
    def is_published(self) -> bool:
        """Whether the published image was built from the tree's inputs."""
        return self.lock.is_published and self.lock.inputs == self.inputs.hash


def obtain_environment(request: EnvironmentRequest) -> ContainerEnvironment | VenvEnvironment:
    """Return an environment that can run commands; implements `identity.ReadyEnvironment`.

    Raises:
        UsageError: An unknown engine, `venv` in CI, or a lock or Dockerfile that is not usable.
        ImageMismatchError: The published image is not what the lock says; or it does not fit the
            tree and a local build is not allowed.
        InfrastructureError: The named engine cannot serve, or none can.
    """
    engines = choose_engines(request.engine, in_ci=request.in_ci)
    lock = load_image_lock(request.tree)
    wanted = Wanted(lock=lock, inputs=compute_inputs(request.tree, request.base_image))
    needs_build = not wanted.is_published and engines != [Engine.VENV]
    if needs_build and not request.allow_local_build:
        raise_findings([f for f in check_image(lock, wanted.inputs, None) if f.line is not None])
    passed: list[PassedOver] = []
    for engine in engines:
        try:
            environment = _get_ready(engine, request, wanted)
        except InfrastructureError as error:
            if request.engine is not None:
                raise name_ways_out(error) from error
            passed.append(PassedOver(engine=engine, reason=error.message))
            request.report(str(passed[-1]))
            continue
        request.report(describe(environment.identity))
        return replace(environment, passed_over=tuple(passed))
    reasons = "; ".join(f"{over.engine}: {over.reason}" for over in passed)
    raise InfrastructureError(f"no engine can serve ({reasons})", fix=WAYS_OUT)


def choose_engines(name: str | None, *, in_ci: bool) -> list[Engine]:
    """Return the engines to try, in order; `name` is the one asked for.

    Raises:
        UsageError: The name is unknown, or is `venv` in CI.
    """
    if not name:
        return [engine for engine in Engine if not (in_ci and engine is Engine.VENV)]
    if name not in list(Engine):
        raise UsageError(
            f"unknown engine {name!r}; known are {', '.join(Engine)}",
            fix="correct ENGINE=, or leave it unset to take the first that can serve",
        )
    if in_ci and name == Engine.VENV:
        raise UsageError(
            f"ENGINE=venv is refused in CI: it is a {LOCKFILE_LABEL}",
            fix="use docker or podman, or leave ENGINE unset",
        )
    return [Engine(name)]


def name_ways_out(error: InfrastructureError) -> InfrastructureError:
    """Return the error with a fix: its own, or the ways out of an engine that cannot serve."""
    return InfrastructureError(
        error.message, path=error.path, line=error.line, fix=error.fix or WAYS_OUT
    )


def find_dialect(engine: Engine) -> Dialect:
    """Return how to speak to a container engine.

    Raises:
        InfrastructureError: It cannot be spoken to.
    """
    return CONTAINER_ENGINES[engine]()


def describe(identity: EnvironmentIdentity) -> str:
    """Return one line that says what an environment is."""
    label = f" ({identity.label})" if identity.label else ""
    what = f"{identity.name}@{identity.digest}" if identity.digest else identity.name
    return f"using {identity.engine}: {what}{label}; {identity.engine_version}"


def _get_ready(
    engine: Engine, request: EnvironmentRequest, wanted: Wanted
) -> ContainerEnvironment | VenvEnvironment:
    if engine is Engine.VENV:
        return ready_venv(request.tree, wanted.inputs, request.report)
    dialect = find_dialect(engine)
    if wanted.is_published:
        facts = get_published(dialect, wanted.lock, request.report)
        image, identity = wanted.lock.reference, _published_identity(dialect, wanted.lock, facts)
    else:
        tag = local_tag(wanted.lock, wanted.inputs)
        facts = ensure_local_image(
            dialect,
            request.tree,
            tag,
            wanted.inputs,
            ca_bundle=request.ca_bundle,
            report=request.report,
        )
        image, identity = facts.image_id, _local_identity(dialect, tag, facts)
    return ready_container(
        dialect,
        image,
        identity,
        tree=request.tree,
        python_version=load_config(request.tree).python,
        report=request.report,
    )


def get_published(dialect: Dialect, lock: ImageLock, report: Callable[[str], None]) -> ImageFacts:
    """Return the published image, pulled by digest where it is not here, its label checked.

    Raises:
        InfrastructureError: It cannot be pulled, or is for another platform.
        ImageMismatchError: Its label does not say the lock's inputs.
    """
    facts = find_image(dialect, lock.reference)
    if facts is None or lock.digest not in facts.digests:
        report(f"{dialect.engine}: pulling {lock.reference}")
        facts = pull_image(dialect, lock.reference, report)
    if lock.digest not in facts.digests:
        raise InfrastructureError(f"{dialect.engine} holds {lock.name} under another digest")
    if facts.platform != lock.platform:
        raise InfrastructureError(f"{lock.reference} is for {facts.platform}, not {lock.platform}")
    if facts.inputs != lock.inputs:
        finding = label_finding(lock, facts.inputs or "")
        raise ImageMismatchError(
            finding.message, path=finding.path, line=finding.line, fix=finding.fix
        )
    return facts


def _published_identity(
    dialect: Dialect, lock: ImageLock, facts: ImageFacts
) -> EnvironmentIdentity:
    return EnvironmentIdentity(
        engine=dialect.engine,
        kind=EnvironmentKind.PUBLISHED,
        name=lock.name,
        digest=lock.digest,
        image_id=facts.image_id,
        inputs=facts.inputs or "",
        engine_version=dialect.version,
        label="",
    )


def _local_identity(dialect: Dialect, tag: str, facts: ImageFacts) -> EnvironmentIdentity:
    inputs = facts.inputs or ""
    return EnvironmentIdentity(
        engine=dialect.engine,
        kind=EnvironmentKind.LOCAL_BUILD,
        name=tag,
        digest="",
        image_id=facts.image_id,
        inputs=inputs,
        engine_version=dialect.version,
        label=local_build_label(inputs),
    )
