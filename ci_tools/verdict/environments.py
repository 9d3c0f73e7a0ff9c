"""Judges the environment records: every chunk in one and the same environment, and in which."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ci_tools.environment.capture import find_unlocked
from ci_tools.findings import Finding, Kind
from ci_tools.planning.plan import ExpectedImage
from ci_tools.verdict.evidence import ChunkRecord

PUBLISHED = "published"
NOT_OF_THE_LOCK = ("pip",)
_IDENTITY = ("kind", "name", "digest", "image_id", "inputs")


def check_environments(
    records: Mapping[int, ChunkRecord], expected: ExpectedImage, *, is_blocking: bool
) -> Iterator[Finding]:
    """Yield what is wrong with the environments; `is_blocking` demands the published digest."""
    first: tuple[int, Mapping[str, Any]] | None = None
    for number, record in sorted(records.items()):
        environment = record.environment
        if environment is None or environment.get("status") != "ok":
            yield _finding(
                "missing-record",
                f"chunk {number} left no environment record, so nothing says what it ran in",
                "read environment.log in the chunk's records",
            )
            continue
        image = identity_of(environment)
        yield from _check_contents(number, environment)
        if is_blocking:
            yield from _check_published(number, image, expected)
        if first is None:
            first = (number, image)
        elif image != first[1]:
            keys = [key for key in _IDENTITY if image.get(key) != first[1].get(key)]
            yield _finding(
                "differs",
                f"chunks {first[0]} and {number} ran in different environments: "
                f"{', '.join(keys)} differ",
                "run the lane again, every chunk from one plan",
            )


def identity_of(environment: Mapping[str, Any]) -> dict[str, str]:
    """Return the fields that say which image or lock an environment is."""
    image = environment.get("image")
    fields = image if isinstance(image, dict) else {}
    identity = {key: str(fields.get(key, "")) for key in _IDENTITY}
    if identity["digest"]:
        identity["image_id"] = ""  # engines number the same published image differently
    return identity


def _check_contents(number: int, environment: Mapping[str, Any]) -> Iterator[Finding]:
    for part in ("python", "machine", "jax", "distributions"):
        value = environment.get(part)
        error = value.get("error") if isinstance(value, dict) else None
        if not value or error:
            yield _finding(
                "unreadable",
                f"chunk {number}: the environment's {part} cannot be read: {error or 'missing'}",
                "rebuild the environment from its lock",
            )
    foreign = [row for row in find_unlocked(environment) if row.split()[0] not in NOT_OF_THE_LOCK]
    if foreign and not _has_error(environment, "distributions"):
        yield _finding(
            "unlocked-distribution",
            f"chunk {number} ran with distributions that the lock does not have: "
            f"{', '.join(foreign[:5])}{' ...' if len(foreign) > 5 else ''}",
            "rebuild the environment from its lock, with host site-packages shut out",
        )


def _has_error(environment: Mapping[str, Any], part: str) -> bool:
    value = environment.get(part)
    return isinstance(value, dict) and "error" in value


def _check_published(
    number: int, image: Mapping[str, str], expected: ExpectedImage
) -> Iterator[Finding]:
    if image["kind"] != PUBLISHED:
        yield _finding(
            "not-published",
            f"chunk {number} ran in a {image['kind'] or 'nameless'} environment, and only the "
            "published image counts for the gate",
            "run the chunk in the image that image.lock names",
        )
    for key in ("name", "digest", "inputs"):
        if image[key] != getattr(expected, key):
            yield _finding(
                "wrong-image",
                f"chunk {number} ran in an image whose {key} is {image[key] or 'empty'!r}, "
                f"image.lock says {getattr(expected, key)!r}",
                "run the chunk in the image that image.lock names",
            )


def _finding(rule: str, message: str, fix: str) -> Finding:
    return Finding(rule=f"environment/{rule}", kind=Kind.INFRASTRUCTURE, message=message, fix=fix)
