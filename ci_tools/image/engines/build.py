"""Building the image on this machine, and finding one that was built before.

A local build is tagged by its inputs hash; it stands in for the published image where none fits.
"""

from __future__ import annotations

import fcntl
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ci_tools.edges.process import stream
from ci_tools.errors import InfrastructureError
from ci_tools.image.engines.dialect import Dialect, build_arguments
from ci_tools.image.engines.images import ImageFacts, find_image, pull_image
from ci_tools.image.inputs import Inputs
from ci_tools.image.lock import ImageLock
from ci_tools.image.words import BASE_ID_LABEL, BASE_NAME_LABEL, INPUTS_LABEL
from ci_tools.tree import Tree

BUILD_SECONDS = 3600.0
_STEP = re.compile(r"^(STEP \d+/\d+: \w+|#\d+ \[(?!internal)[^\]]+\] \w+)")
_PIP = re.compile(r"^(#\d+ [\d.]+ )?(Installing collected packages|Successfully installed)")


def local_tag(lock: ImageLock, inputs: Inputs) -> str:
    """Return the tag of a local build: the image's last name and the inputs hash."""
    return f"localhost/{lock.name.rpartition('/')[2]}:{inputs.short}"


def ensure_local_image(
    dialect: Dialect,
    tree: Tree,
    tag: str,
    inputs: Inputs,
    *,
    ca_bundle: Path | None,
    report: Callable[[str], None],
) -> ImageFacts:
    """Return the image that was built here from these inputs, built now where there is none.

    Raises:
        InfrastructureError: The base image cannot be had, or the build failed.
    """
    with _one_at_a_time(tree, report):
        found = find_image(dialect, tag)
        base = find_image(dialect, inputs.base_image)
        if found is not None and found.inputs == inputs.hash and _has_base(found, base, inputs):
            report(f"{dialect.engine}: {tag} is here from an earlier build")
            return found
        return build_image(dialect, tree, tag, inputs, ca_bundle=ca_bundle, report=report)


def _has_base(found: ImageFacts, base: ImageFacts | None, inputs: Inputs) -> bool:
    """Return whether a build stands on the base as it is now; a digest cannot move."""
    if base is None or "@sha256:" in inputs.base_image:
        return True
    return found.labels.get(BASE_ID_LABEL) == base.image_id


def build_image(
    dialect: Dialect,
    tree: Tree,
    tag: str,
    inputs: Inputs,
    *,
    ca_bundle: Path | None,
    report: Callable[[str], None],
) -> ImageFacts:
    """Build the image from the tree, tag it, and return its facts.

    Raises:
        InfrastructureError: The base image cannot be had, or the build failed.
    """
    base = find_image(dialect, inputs.base_image)
    if base is None:
        report(f"{dialect.engine}: pulling the base image {inputs.base_image}")
        base = pull_image(dialect, inputs.base_image, report)
    command = build_arguments(
        dialect,
        context=tree.root,
        dockerfile=tree.dockerfile,
        tag=tag,
        build_args={"BASE_IMAGE": inputs.base_image},
        labels=build_labels(inputs, base),
        ca_bundle=ca_bundle,
    )
    report(f"{dialect.engine}: building {tag} (about a minute, and a download of 300 MB)")
    log = tree.state / "results" / "image-build.log"
    lines = _run_build(dialect, command, log, report)
    facts = find_image(dialect, tag)
    if facts is None or facts.inputs != inputs.hash:
        raise InfrastructureError(
            f"{dialect.engine} cannot build the image: {_last_words(lines)}",
            path=tree.relative(log),
            fix="read the log; behind a proxy that inspects TLS set CA_BUNDLE to its certificates",
        )
    return facts


def build_labels(inputs: Inputs, base: ImageFacts) -> dict[str, str]:
    """Return the labels that differ between builds.

    They are given as options and not as build arguments: the layer cache of buildah takes a
    `LABEL` with another argument's value for the same step.
    """
    return {
        INPUTS_LABEL: inputs.hash,
        BASE_ID_LABEL: base.image_id,
        BASE_NAME_LABEL: inputs.base_image,
    }


def _run_build(
    dialect: Dialect, command: list[str], log: Path, report: Callable[[str], None]
) -> list[str]:
    lines: list[str] = []
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w", encoding="utf-8") as file:

        def take(line: str) -> None:
            file.write(line + "\n")
            lines.append(line)
            if words := progress_words(line):
                report(f"{dialect.engine}: {words}")

        code = stream(command, take, env=dialect.host_environment(), timeout_seconds=BUILD_SECONDS)
    return lines if code == 0 else [*lines, f"exit code {code}"]


def progress_words(line: str) -> str:
    """Return what a line of a build's output says about its progress; empty for the rest."""
    if step := _STEP.match(line):
        return step.group(1)
    if (pip := _PIP.match(line)) is None:
        return ""
    packages = len(line.partition(":")[2].split(",")) if "Installing" in line else 0
    return f"installing {packages} packages" if packages else pip.group(2).lower()


def _last_words(lines: list[str]) -> str:
    return " / ".join([line.strip() for line in lines if line.strip()][-3:])


@contextmanager
def _one_at_a_time(tree: Tree, report: Callable[[str], None]) -> Iterator[None]:
    """Hold the build lock of this tree; a second process waits and then finds the image."""
    path = tree.state / "locks" / "image-build"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report("waiting for another process that builds the image")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
