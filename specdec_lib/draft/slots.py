"""Which slots a tree should hold where a slot's score follows from ranks alone."""

import functools
import heapq

from specdec_lib.chance import Slots
from specdec_lib.tree import MatchTable


@functools.lru_cache(maxsize=64)
def best_slots(match: MatchTable, budget: int, depth: int, floor: float = 0.0) -> dict[int, dict[Slots, int]]:
    """The best `budget` slots when a slot's score depends on ranks alone: per level, how many children the node at each place gets.

    Best-first, which is optimal because a later rank and a deeper slot never score higher.  A tie goes to the shallower, earlier slot.
    """
    shape: dict[int, dict[Slots, int]] = {}
    heap = [(-match.rate(0), 1, (0,), 1.0)] if depth > 0 else []
    for _ in range(budget):
        if not heap or -heap[0][0] < floor:
            break
        negative, level, slots, above = heapq.heappop(heap)
        *place, rank = slots
        shape.setdefault(level - 1, {})[tuple(place)] = rank + 1
        heapq.heappush(heap, (-above * match.rate(rank + 1), level, (*place, rank + 1), above))
        if level < depth:
            heapq.heappush(heap, (negative * match.rate(0), level + 1, (*slots, 0), -negative))
    return shape
