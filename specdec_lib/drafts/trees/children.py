"""Children of nodes before they are in a tree, and the trees that they make."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from torch import Tensor

from specdec_lib.core.chance import Slots
from specdec_lib.core.tree import TokenTree
from specdec_lib.core.tree.growth import Slot, grow_best_first


class Child(NamedTuple):
    """A guess that is not in a tree yet; `factor` is its score ÷ its parent's."""

    token: int
    factor: float
    row: Tensor | None
    source: str


ExpandNodes = Callable[[TokenTree, Mapping[int, int]], Mapping[int, Sequence[Child]]]
"""A function that gives each of some nodes up to so many children; a node that it leaves out is not
known yet and stays a leaf.
"""


def add_children(
    tree: TokenTree, children: Mapping[int, Sequence[Child]], *, floor: float = 0.0
) -> TokenTree:
    """The tree with these children at its end, except those that score below `floor`."""
    found, scores = [], []
    for node, its in children.items():
        for child in its:
            score = tree.scores[node] * min(1.0, child.factor)  # rounding may give more than 1
            if score >= floor:
                found.append((node, child))
                scores.append(score)
    return _grown(tree, found, scores)


def _tree_of(
    root: TokenTree, places: Sequence[Slots], known: Mapping[Slots, Sequence[Child]]
) -> TokenTree:
    """The tree of the children at these places, parents first; the root's place is ()."""
    number = {ranks: node for node, ranks in enumerate(places)}
    found = [(number[ranks[:-1]], known[ranks[:-1]][ranks[-1]]) for ranks in places[1:]]
    scores = [1.0]
    for parent, child in found:
        scores.append(scores[parent] * min(1.0, child.factor))
    return _grown(root, found, scores[1:])


def _grown(
    tree: TokenTree, found: Sequence[tuple[int, Child]], scores: Sequence[float]
) -> TokenTree:
    return tree.grown(
        [child.token for _, child in found],
        [parent for parent, _ in found],
        source=[child.source for _, child in found],
        scores=scores,
        rows=[child.row for _, child in found],
    )


def grow_best(
    root: TokenTree, expand: ExpandNodes, *, budget: int, depth: int, floor: float
) -> TokenTree:
    """The tree of the `budget` best guesses: `expand` is asked for children until none that is not
    known could enter it.
    """
    known: dict[Slots, Sequence[Child]] = {}

    def factors(slot: Slot) -> list[float]:
        return [min(1.0, child.factor) for child in known.get(slot.ranks, ())]

    while True:
        slots = list(grow_best_first(factors, budget, depth=depth, floor=floor))
        slots.sort(key=lambda slot: (len(slot.ranks), slot.ranks))
        places = [(), *(slot.ranks for slot in slots)]
        tree = _tree_of(root, places, known)
        full, worst = len(slots) == budget, min(tree.scores)
        missing = {
            node: budget
            for node, ranks in enumerate(places)
            if ranks not in known
            and len(ranks) < depth
            and not (full and tree.scores[node] <= worst)  # its children would fall out
        }
        if not missing:
            return tree
        found = expand(tree, missing)
        known |= {places[node]: found.get(node, ()) for node in missing}
