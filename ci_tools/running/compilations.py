"""Counts what a test process compiles, and what it finds compiled, by jax's own events."""

from __future__ import annotations

import contextlib
import sys
from collections import Counter

_EVENTS = {
    "/jax/compilation_cache/compile_requests_use_cache": "requests",
    "/jax/compilation_cache/cache_hits": "hits",
    "/jax/compilation_cache/cache_misses": "misses",
}


class Compilations:
    """The counts of this process, by `requests`, `hits` and `misses`."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def listen(self) -> None:
        """Count from now on, where jax has been imported."""
        if "jax" in sys.modules:
            with contextlib.suppress(ImportError, AttributeError):
                import jax.monitoring

                jax.monitoring.register_event_listener(self._count)

    def _count(self, event: str, **_: object) -> None:
        if event in _EVENTS:
            self.counts[_EVENTS[event]] += 1
