"""Distributes work evenly. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Sequence


def share_out(weights: Sequence[int], count: int) -> list[int]:
    """
    Assign pieces of work to *count* workers: the largest piece first, always to the worker with the least work so far.

    Returns:
        The number of the worker, 0 to count - 1, for each weight.
    """
    loads = [(0, worker) for worker in range(count)]
    chosen = [0] * len(weights)
    for position in sorted(range(len(weights)), key=lambda index: -weights[index]):
        load, worker = heapq.heappop(loads)
        chosen[position] = worker
        # At least 1, so that pieces of unknown size are spread, too.
        heapq.heappush(loads, (load + max(weights[position], 1), worker))
    return chosen
