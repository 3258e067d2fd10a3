"""The shape of a tree, which is its slots without tokens, and the best-first growth of one."""

import functools
import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import mul
from typing import Annotated, NamedTuple

from specdec_lib.core.chance import Slots
from specdec_lib.core.kinds import Within, checked, shown

ROOT = 0
NO_PARENT = -1
MOST_IN_TREE = 4096  # of a tree: the mask of a pass grows with their square
Count = Annotated[int, Within(1, MOST_IN_TREE)]
Length = Annotated[int, Within(0, MOST_IN_TREE)]


def check_widths(widths: Sequence[int]) -> None:
    """Raises ValueError unless their tree has at most MOST_IN_TREE guesses."""
    if sum(accumulate(map(int, widths), mul)) > MOST_IN_TREE:
        raise ValueError(f"a tree has at most {MOST_IN_TREE:,} guesses, got widths {shown(widths)}")


@checked
@dataclass(frozen=True)
class Shape:
    """The slots for guesses of a tree; `len(shape)` counts the root.

    parents    the number of each node's parent, which precedes it, root first with −1; siblings
               stand in the order of their ranks
    """

    parents: tuple[int, ...]

    def __post_init__(self) -> None:
        check_parents(self.parents)

    @classmethod
    @checked
    def of_widths(cls, widths: Sequence[Count]) -> "Shape":
        """The shape with `widths[d]` children for every node at depth d."""
        check_widths(widths)
        parents = [NO_PARENT]
        level = [ROOT]
        for width in widths:
            first = len(parents)
            parents += [node for node in level for _ in range(width)]
            level = range(first, len(parents))
        return cls(tuple(parents))

    @classmethod
    @checked
    def chain(cls, length: Length) -> "Shape":
        return cls.of_widths((1,) * int(length))

    @classmethod
    @checked
    def chains(cls, count: Count, length: Length) -> "Shape":
        """The shape of `count` chains of `length` guesses that meet at the root only."""
        return cls.of_widths((count, *(1,) * int(length))[:length])

    @classmethod
    @checked
    def full(cls, arity: Count, depth: Length) -> "Shape":
        """The full tree: `arity` children per node, down to `depth`."""
        return cls.of_widths((arity,) * int(depth))

    def __len__(self) -> int:
        return len(self.parents)

    @property
    def guesses(self) -> int:
        return len(self.parents) - 1

    @functools.cached_property
    def ranks(self) -> tuple[int, ...]:
        """The rank of each node among its siblings, from 0 on; 0 for the root."""
        families = map(enumerate, children_of(self.parents))
        ranks = {child: rank for family in families for rank, child in family}
        return tuple(ranks.get(node, 0) for node in range(len(self)))

    @functools.cached_property
    def depths(self) -> tuple[int, ...]:
        return depths_of(self.parents)

    @property
    def depth(self) -> int:
        """The depth of the deepest node, which is the number of draft passes."""
        return max(self.depths)

    @property
    def leaves(self) -> int:
        """The number of guesses without children, which the draft need not read."""
        return len(set(range(1, len(self))) - set(self.parents))

    @checked
    def cut(self, budget: Annotated[int, Within(0)]) -> "Shape":
        """The shape of this one's first `budget` guesses in breadth-first order."""
        children = children_of(self.parents)
        order = [ROOT]
        for node in order:  # grows while it is read
            order += children[node]
        order = order[: budget + 1]
        number = {node: new for new, node in enumerate(order)}
        return Shape((NO_PARENT, *(number[self.parents[node]] for node in order[1:])))


def check_parents(parents: Sequence[int], first: int = 0) -> None:
    """Raise ValueError unless each node from `first` on comes after its parent, the root first."""
    if not parents or parents[ROOT] != NO_PARENT:
        raise ValueError(f"node 0 is the root and has parent {NO_PARENT}, got {parents[:1]}")
    for node in range(max(1, first), len(parents)):
        if not 0 <= parents[node] < node:
            raise ValueError(
                f"a parent must precede its child: node {node} has parent {parents[node]},"
                f" allowed are 0…{node - 1}"
            )


def depths_of(parents: Sequence[int]) -> tuple[int, ...]:
    """The number of edges from the root to each node."""
    depths = [0]
    for parent in parents[1:]:
        depths.append(depths[parent] + 1)
    return tuple(depths)


def children_of(parents: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """The children of each node, in the order of their numbers."""
    children: list[list[int]] = [[] for _ in parents]
    for node, parent in enumerate(parents[1:], 1):
        children[parent].append(node)
    return tuple(map(tuple, children))


class Slot(NamedTuple):
    """A node position that is chosen before its token is known.

    parent    the number of the parent's slot; they count from 1 in the order chosen, the root is 0
    ranks     the child ranks on the way from the root down to the slot
    score     how likely the whole path is accepted, in [0, 1]
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
    shallower first, then the lower ranks. That is the best tree, as no child scores above its
    parent.

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
