"""The plan: which ids have to run, in which chunk, in which environment."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ci_tools.errors import UsageError
from ci_tools.roster.lock import Lane


class Scope(StrEnum):
    """Whether a plan holds every gated id or a part that somebody asked for."""

    FULL = "full"
    PARTIAL = "partial"


@dataclass(frozen=True, kw_only=True)
class ExpectedImage:
    """The image that the plan is for: as `image.lock` has it; empty digest: unpublished."""

    name: str
    digest: str
    inputs: str


@dataclass(frozen=True, kw_only=True)
class PlannedFile:
    """One file: the ids that must have an outcome, and those the lock excludes."""

    path: str
    ids: tuple[str, ...]
    excluded: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class PlannedChunk:
    """The files of one job, in the order in which they start."""

    number: int
    files: tuple[PlannedFile, ...]

    @property
    def test_count(self) -> int:
        """How many ids the chunk holds."""
        return sum(len(file.ids) for file in self.files)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The whole plan; `hash` covers everything else."""

    lane: Lane
    scope: Scope
    selection: tuple[str, ...]
    commit: str
    image: ExpectedImage
    chunks: tuple[PlannedChunk, ...]
    hash: str = ""

    @property
    def test_count(self) -> int:
        """How many ids the plan holds."""
        return sum(chunk.test_count for chunk in self.chunks)

    def chunk(self, number: int) -> PlannedChunk:
        """Return one chunk.

        Raises:
            UsageError: There is no such chunk.
        """
        for chunk in self.chunks:
            if chunk.number == number:
                return chunk
        raise UsageError(f"the plan has {len(self.chunks)} chunks, none is number {number}")


@dataclass(frozen=True, kw_only=True)
class PlanRequest:
    """What a plan is made for: the lane, a selection (empty: everything), commit and image."""

    lane: Lane
    selection: tuple[str, ...]
    commit: str
    image: ExpectedImage
    tests_per_chunk: int
