"""Which file starts next: the first in order whose memory fits beside what runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence


class Schedule:
    """The files that wait, in the order in which they should start.

    Args:
        order: Their places in the worklist.
        peaks: By place: the memory that a file is expected to need, in bytes.
        workers: How many may run side by side.
        budget_bytes: What all that runs may need together; one file alone may need more.
    """

    def __init__(
        self, order: Sequence[int], peaks: Mapping[int, int], workers: int, budget_bytes: int
    ) -> None:
        self._waiting = list(order)
        self._peaks = peaks
        self._workers = workers
        self._budget_bytes = budget_bytes

    @property
    def waiting(self) -> list[int]:
        """The places of the files that have not started, in the worklist's order."""
        return sorted(self._waiting)

    def take(self, running: Collection[int]) -> int | None:
        """Return the place of a file to start now beside these, or None; it waits no more."""
        if not self._waiting or len(running) >= self._workers:
            return None
        left = self._budget_bytes - sum(self._peaks[place] for place in running)
        for place in self._waiting:
            if not running or self._peaks[place] <= left:
                self._waiting.remove(place)
                return place
        return None
