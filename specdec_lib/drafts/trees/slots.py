"""Slots and children: places and guesses before they are in a tree."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from torch import Tensor

from specdec_lib.core.chance import Slots
from specdec_lib.core.tree import MatchTable, Shape, TokenTree, check_widths
from specdec_lib.core.tree.shape import Slot, grow_best_first

SlotWidths = dict[Slots, int]  # ranks of a node to its number of children


@functools.lru_cache(maxsize=64)
def slots_of(shape: Shape) -> SlotWidths:
    """How many children each node with any has, by the ranks down to it (cached: do not change)."""
    places: list[tuple[int, ...]] = [()]
    widths: dict[tuple[int, ...], int] = {}
    for parent, rank in zip(shape.parents[1:], shape.ranks[1:], strict=True):
        widths[places[parent]] = rank + 1
        places.append((*places[parent], rank))
    return widths


@functools.lru_cache(maxsize=64)
def best_slots(
    match: MatchTable, budget: int, depth: int, floor: float = 0.0, deepen: float = 0.0
) -> SlotWidths:
    """The `budget` best slots when scores depend on ranks alone, in the format of `slots_of`."""
    rates = [match.rate(rank) for rank in range(budget)]

    def factors(slot: Slot) -> list[float]:
        return rates if slot.score >= deepen else []

    grown = grow_best_first(factors, budget, depth=depth, floor=floor)
    return {slot.ranks[:-1]: slot.ranks[-1] + 1 for slot in grown}


def check_limits(
    widths: Sequence[int] | None, budget: int | None, shape: Shape | None = None, floor: float = 0.0
) -> None:
    """Raises ValueError unless one of widths, budget and shape is given, and a tree can have it."""
    if sum(given is not None for given in (widths, shape, budget)) != 1:
        raise ValueError(
            "give widths, a shape or a budget, and one of them only:"
            f" got widths={widths}, shape={shape}, budget={budget}"
        )
    if (widths is not None and not len(widths)) or (shape is not None and not shape.guesses):
        raise ValueError("widths or a shape have at least 1 guess; to guess nothing use NoDraft")
    if not floor:  # which keeps a wide tree small
        check_widths(widths or ())


class Child(NamedTuple):
    """A guess that is not in a tree yet; `factor` is its score ÷ its parent's."""

    token: int
    factor: float
    row: Tensor | None
    source: str


ExpandNodes = Callable[[TokenTree, Mapping[int, int]], Mapping[int, Sequence[Child]]]
"""A function from a tree and {node: width} to {node: its children}; nodes may be missing."""


def add_children(
    tree: TokenTree, children: Mapping[int, Sequence[Child]], floor: float = 0.0, above: float = -1
) -> TokenTree:
    """The tree with these children that score `floor` or more, and more than `above`."""
    scored = (  # rounding may give a factor above 1
        (node, child, tree.scores[node] * min(1.0, child.factor))
        for node, its in children.items()
        for child in its
    )
    found = [one for one in scored if one[2] >= floor and one[2] > above]
    return tree.grown(
        [child.token for _, child, _ in found],
        [parent for parent, _, _ in found],
        source=[child.source for _, child, _ in found],
        scores=[score for _, _, score in found],
        rows=[child.row for _, child, _ in found],
    )


def grow_best(
    tree: TokenTree,
    expand: ExpandNodes,
    *,
    budget: int,
    depth: int,
    floor: float,
    deepen: float = 0.0,
) -> TokenTree:
    """Keep the `budget` best-scored guesses. Level by level, only nodes are expanded that score
    `deepen` or more, and whose children could still be among them.
    """
    for level in range(depth):
        worst = min(tree.scores) if tree.guesses == budget else -1.0
        nodes = (node for node, its in enumerate(tree.depths) if its == level)
        open_nodes = (node for node in nodes if tree.scores[node] >= deepen)
        widths = {node: budget for node in open_nodes if tree.scores[node] > worst}
        if not widths:
            break
        tree = add_children(tree, expand(tree, widths), floor, worst).truncated(budget)
    return tree
