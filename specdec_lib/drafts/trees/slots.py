"""The slots of a tree that are known before any of its tokens is."""

import functools

from specdec_lib.core.chance import Slots
from specdec_lib.core.tree import MatchTable, Shape, check_size
from specdec_lib.core.tree.growth import grow_best_first

SlotWidths = dict[int, dict[Slots, int]]  # per level: ranks of a node to its number of children


@functools.lru_cache(maxsize=64)
def slots_of(shape: Shape) -> SlotWidths:
    """How many children each node of a fixed shape gets, by level and ranks; not to be changed."""
    places: list[Slots] = [()]
    for parent, rank in zip(shape.parents[1:], shape.ranks[1:], strict=True):
        places.append((*places[parent], rank))
    return _widths(places[1:])


@functools.lru_cache(maxsize=64)
def best_slots(match: MatchTable, budget: int, depth: int, floor: float = 0.0) -> SlotWidths:
    """The `budget` best slots when scores depend on ranks alone, in the format of `slots_of`."""
    rates = [match.rate(rank) for rank in range(budget)]
    grown = grow_best_first(lambda slot: rates, budget, depth=depth, floor=floor)
    return _widths([slot.ranks for slot in grown])


def _widths(places: list[Slots]) -> SlotWidths:
    """The largest rank below each node, plus 1: slots of one node come in the order of ranks."""
    widths: SlotWidths = {}
    for *above, rank in places:
        widths.setdefault(len(above), {})[tuple(above)] = rank + 1
    return widths


def check_budget(budget: int | None, depth: int) -> None:
    check_size("a budget", 1 if budget is None else budget, least=1)
    check_size("a depth", depth, least=budget is not None)
