"""Best-first growth of a tree: which slots are worth a guess, given the children of each slot."""

import heapq
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from specdec_lib.core.chance import Slots
from specdec_lib.core.tree.shape import NO_PARENT


class Slot(NamedTuple):
    """A place for a guess, before its token is known; slots count from 1 in the order chosen.

    ranks    the child ranks on the way from the root down to the slot
    score    how likely the whole path is accepted, in [0, 1]
    """

    parent: int
    ranks: Slots
    score: float


def grow_best_first(
    factors: Callable[[Slot], Iterable[float]],
    budget: int,
    *,
    depth: int | None = None,
    floor: float = 0.0,
) -> Iterator[Slot]:
    """Yield at most `budget` slots, the best score first, each after its parent; of equal ones the
    shallower first, then the lower ranks: the best tree, as no child scores above its parent.

    factors    for a chosen slot (the root has empty ranks), the acceptance rate of each child
    depth      of the deepest slot, at most; None for no limit
    floor      lowest score of a slot
    """
    heap: list[tuple[float, int, Slots, Slot, Iterator[Slot]]] = []

    def push_next(children: Iterator[Slot]) -> None:
        for child in children:  # the best of those left: the others wait until it is chosen
            order = (-child.score, len(child.ranks), child.ranks)
            heapq.heappush(heap, (*order, child, children))
            return

    slot = Slot(NO_PARENT, (), 1.0)
    for number in range(budget):
        if depth is None or len(slot.ranks) < depth:
            push_next(_children(slot, number, factors(slot), floor))
        if not heap:
            return
        *_, slot, siblings = heapq.heappop(heap)
        push_next(siblings)
        yield slot


def _children(parent: Slot, number: int, factors: Iterable[float], floor: float) -> Iterator[Slot]:
    """The children of a slot that score at least `floor`, best first, lower ranks first."""
    scores = [parent.score * factor for factor in factors]
    for rank in sorted(range(len(scores)), key=scores.__getitem__, reverse=True):
        if scores[rank] < floor:
            return
        yield Slot(number, (*parent.ranks, rank), scores[rank])
