"""Distributes test files over chunks; files stay whole, so no module fixture is cut.

The weight of a file is its number of tests. Longest processing time first: files by falling
weight, ties by path, each to the lightest chunk so far.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence


def chunk_files(weights: Mapping[str, int], limit: int) -> list[list[str]]:
    """Return the files of each chunk, heaviest first; the same input gives the same chunks.

    Args:
        weights: Tests in each file.
        limit: The most tests in one chunk; a file above it gets a chunk of its own.

    Raises:
        ValueError: `limit` is under 1.
    """
    if limit < 1:
        raise ValueError("a chunk holds at least one test")
    order = sorted(weights, key=lambda path: (-weights[path], path))
    alone = [[path] for path in order if weights[path] >= limit]
    shared = order[len(alone) :]
    count = max(1, -(-sum(weights[path] for path in shared) // limit)) if shared else 0
    while count:
        chunks = _distribute(shared, weights, count)
        if all(sum(weights[path] for path in chunk) <= limit for chunk in chunks):
            return alone + chunks
        count += max(1, count // 16)
    return alone


def _distribute(order: Sequence[str], weights: Mapping[str, int], count: int) -> list[list[str]]:
    chunks: list[list[str]] = [[] for _ in range(min(count, len(order)))]
    heap = [(0, index) for index in range(len(chunks))]
    for path in order:
        load, index = heapq.heappop(heap)
        chunks[index].append(path)
        heapq.heappush(heap, (load + weights[path], index))
    return chunks
