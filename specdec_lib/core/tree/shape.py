"""The shape of a tree: its slots, without tokens, as the number of each node's parent."""

import functools
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral

from specdec_lib.core.kinds import checked

ROOT, NO_PARENT = 0, -1
MOST_IN_TREE = 4096  # of a tree: the mask of a pass grows with their square


def check_size(name: str, value: Integral, *, least: int = 0, most: int = MOST_IN_TREE) -> int:
    """The value.  Raises ValueError unless it is a whole number from `least` to `most`."""
    if not isinstance(value, Integral):
        raise ValueError(f"{name} is a whole number, got {value!r}")
    if value < least:
        raise ValueError(f"{name} is {least} or more, got {value}")
    if value > most:
        raise ValueError(f"{name} is at most {most:,}, got {value:,}")
    return int(value)


def check_widths(widths: Sequence[Integral]) -> None:
    """Raises ValueError unless each width is 1 or more and their tree has at most MOST_IN_TREE."""
    level, guesses = 1, 0
    for width in widths:
        level *= check_size("a width", width, least=1)
        guesses = check_size("the number of guesses of these widths", guesses + level)


@checked
@dataclass(frozen=True)
class Shape:
    """The slots for guesses of a tree, given by the parent of each; `len(shape)` counts the root.

    parents    the number of each node's parent, root first with −1; a parent precedes its children,
               siblings stand in the order of their ranks
    """

    parents: tuple[int, ...]

    def __post_init__(self) -> None:
        check_parents(self.parents)

    @classmethod
    def of_widths(cls, widths: Sequence[Integral]) -> "Shape":
        """The shape with `widths[d]` children for every node at depth d."""
        check_widths(widths)
        parents, level = [NO_PARENT], [ROOT]
        for width in widths:
            below = [node for node in level for _ in range(width)]
            level = list(range(len(parents), len(parents) + len(below)))
            parents += below
        return cls(tuple(parents))

    @classmethod
    def chain(cls, length: Integral) -> "Shape":
        """The chain of `length` guesses."""
        return cls.of_widths((1,) * check_size("a length", length))

    @classmethod
    def chains(cls, count: Integral, length: Integral) -> "Shape":
        """The shape of `count` chains of `length` guesses that meet at the root only."""
        widths = (count, *(1,) * (check_size("a length", length) - 1))
        return cls.of_widths(widths[:length])

    @classmethod
    def full(cls, arity: Integral, depth: Integral) -> "Shape":
        """The full tree: `arity` children per node, down to `depth`."""
        return cls.of_widths((arity,) * check_size("a depth", depth))

    def __len__(self) -> int:
        return len(self.parents)

    @property
    def guesses(self) -> int:
        """The number of nodes without the root, which is what a budget counts."""
        return len(self.parents) - 1

    @functools.cached_property
    def ranks(self) -> tuple[int, ...]:
        """The rank of each node among its siblings, from 0 on; 0 for the root."""
        seen: Counter[int] = Counter()
        ranks = []
        for parent in self.parents:
            ranks.append(seen[parent])
            seen[parent] += 1
        return tuple(ranks)

    @functools.cached_property
    def depths(self) -> tuple[int, ...]:
        """The number of edges from the root to each node."""
        return depths_of(self.parents)

    @property
    def depth(self) -> int:
        """The depth of the deepest node, which is the number of draft passes."""
        return max(self.depths)

    @property
    def leaves(self) -> int:
        """The number of guesses without children, which the draft need not read."""
        return len(set(range(1, len(self))) - set(self.parents))

    def cut(self, budget: Integral) -> "Shape":
        """The shape of this one's first `budget` guesses in breadth-first order."""
        children, order = children_of(self.parents), [ROOT]
        for node in order:  # grows while it is read
            order += children[node]
        order = order[: check_size("a budget", budget, most=sys.maxsize) + 1]
        number = {node: new for new, node in enumerate(order)}
        return Shape((NO_PARENT, *(number[self.parents[node]] for node in order[1:])))


def check_parents(parents: Sequence[int], first: int = 0) -> None:
    """Raise ValueError unless each node from `first` on comes after its parent, the root first."""
    if not parents or parents[ROOT] != NO_PARENT:
        raise ValueError(f"node 0 is the root and has parent {NO_PARENT}, got {parents[:1]}")
    for node in range(max(1, first), len(parents)):
        if not 0 <= parents[node] < node:
            got = f"node {node} has parent {parents[node]}, allowed are 0…{node - 1}"
            raise ValueError(f"a parent must precede its child: {got}")


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
