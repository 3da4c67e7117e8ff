"""Sharing work out evenly. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Sequence


def share_out(weights: Sequence[int], count: int) -> list[int]:
    """
    Give each piece of work to one of *count* workers: the heaviest first, always to the one with least so far.

    Returns:
        The worker, 0 to count - 1, of each weight.
    """
    loads = [(0, worker) for worker in range(count)]
    chosen = [0] * len(weights)
    for position in sorted(range(len(weights)), key=lambda each: -weights[each]):
        load, worker = heapq.heappop(loads)
        chosen[position] = worker
        heapq.heappush(loads, (load + max(weights[position], 1), worker))
    return chosen
