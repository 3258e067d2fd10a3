"""Which slots a tree holds where that is known before any token is."""

import functools
import heapq

from specdec_lib.core.chance import Slots
from specdec_lib.core.tree import MatchTable, Shape

SlotWidths = dict[int, dict[Slots, int]]  # per level, how many children the node at each place gets


@functools.lru_cache(maxsize=64)
def slots_of(shape: Shape) -> SlotWidths:
    """The slots of a fixed shape."""
    places: list[Slots] = [()]
    widths: SlotWidths = {}
    for parent, rank, depth in zip(
        shape.parents[1:], shape.ranks[1:], shape.depths[1:], strict=True
    ):
        places.append((*places[parent], rank))
        widths.setdefault(depth - 1, {})[places[parent]] = rank + 1
    return widths


@functools.lru_cache(maxsize=64)
def best_slots(match: MatchTable, budget: int, depth: int, floor: float = 0.0) -> SlotWidths:
    """The best `budget` slots when a slot's score depends on ranks alone.

    Best-first, which is optimal because a later rank and a deeper slot never score higher.  A tie
    goes to the shallower, earlier slot.
    """
    shape: SlotWidths = {}
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
