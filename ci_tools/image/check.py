"""Whether tree, lock and published image belong together.

Decides with values; pulling an image to read its label is the caller's part.
"""

from __future__ import annotations

from ci_tools.errors import CiToolsError, ExitCode
from ci_tools.findings import Finding, Kind
from ci_tools.image.inputs import Inputs
from ci_tools.image.lock import KEYS, ImageLock

LOCK_PATH = "containers/cpu/image.lock"
DOCKERFILE_PATH = "containers/cpu/Dockerfile"
PUBLISH = "run the workflow .github/workflows/image.yml, which publishes and writes the lock"
TRY_HERE = "`make ci-local` builds the image here meanwhile"


class ImageMismatchError(CiToolsError):
    """Tree, lock and image do not belong together (exit 1)."""

    exit_code = ExitCode.RED


def check_image(lock: ImageLock, inputs: Inputs, label: str | None) -> list[Finding]:
    """Return what does not belong together.

    Args:
        lock: The image lock.
        inputs: The inputs of the tree.
        label: The inputs label of the published image itself; None where it was not looked at,
            empty where the image has none.
    """
    findings = []
    if inputs.is_default_base and "@sha256:" not in inputs.base_image:
        findings.append(_unpinned(inputs))
    if not lock.is_published:
        return [*findings, _unpublished(inputs)]
    if lock.inputs != inputs.hash:
        findings.append(_changed(lock, inputs))
    if label is not None and label != lock.inputs:
        findings.append(label_finding(lock, label))
    return findings


def label_finding(lock: ImageLock, label: str) -> Finding:
    """Return the finding for a published image that is not what the lock says."""
    seen = label or "nothing"
    return Finding(
        rule="image/label-differs",
        kind=Kind.IMAGE,
        message=f"{lock.reference} says it was built from inputs {seen}, the lock says "
        f"{lock.inputs}: one of the two was changed without the other",
        path=LOCK_PATH,
        line=_line("inputs"),
        fix=PUBLISH,
    )


def _unpublished(inputs: Inputs) -> Finding:
    return Finding(
        rule="image/unpublished",
        kind=Kind.IMAGE,
        message=f"no image has been published yet (inputs {inputs.short}), so there is no pinned "
        "environment to test in",
        path=LOCK_PATH,
        line=_line("digest"),
        fix=f"{PUBLISH}; {TRY_HERE}",
    )


def _changed(lock: ImageLock, inputs: Inputs) -> Finding:
    return Finding(
        rule="image/inputs-changed",
        kind=Kind.IMAGE,
        message="inputs changed: publish first. The Dockerfile, requirements/gate.txt or the base "
        f"image give {inputs.short}, the published image was built from {lock.inputs[:16]}",
        path=LOCK_PATH,
        line=_line("inputs"),
        fix=f"{PUBLISH}, or take back the change; {TRY_HERE}",
    )


def _unpinned(inputs: Inputs) -> Finding:
    return Finding(
        rule="image/base-unpinned",
        kind=Kind.IMAGE,
        message=f"the base image {inputs.base_image} is not named by digest, so the same inputs "
        "can build different images",
        path=DOCKERFILE_PATH,
        fix="write the default of ARG BASE_IMAGE as name@sha256:...",
    )


def _line(key: str) -> int:
    """Return the line on which the rendered lock has a key: two lines of header come first."""
    return KEYS.index(key) + 3


def raise_findings(findings: list[Finding]) -> None:
    """Raise the first finding as an error, for callers that need an image and nothing less.

    Raises:
        ImageMismatchError: There is a finding.
    """
    for finding in findings:
        raise ImageMismatchError(
            finding.message, path=finding.path, line=finding.line, fix=finding.fix
        )
