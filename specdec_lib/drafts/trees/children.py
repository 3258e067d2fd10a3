"""Children of nodes before they are in a tree, and the trees that they make."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from torch import Tensor

from specdec_lib.core.chance import Slots
from specdec_lib.core.tree import TokenTree


class Child(NamedTuple):
    """A guess that is not in a tree yet.

    factor    conditional acceptance estimate: the child's score ÷ its parent's
    row       the distribution [vocab] its token was drawn from; None if chosen without chance
    source    the name of the drafter that guessed it
    """

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
    found = [
        (node, child, tree.scores[node] * min(1.0, child.factor))  # rounding may give more than 1
        for node, its in children.items()
        for child in its
    ]
    found = [(node, child, score) for node, child, score in found if score >= floor]
    return tree.grown(
        [child.token for _, child, _ in found],
        [node for node, _, _ in found],
        source=[child.source for _, child, _ in found],
        scores=[score for _, _, score in found],
        rows=[child.row for _, child, _ in found],
    )


def tree_of(
    root: TokenTree, places: Sequence[Slots], known: Mapping[Slots, Sequence[Child]]
) -> TokenTree:
    """The tree of the children at these places, parents first; the root's place is ()."""
    number = {ranks: node for node, ranks in enumerate(places)}
    found = [known[ranks[:-1]][ranks[-1]] for ranks in places[1:]]
    parents = [number[ranks[:-1]] for ranks in places[1:]]
    scores = [1.0]
    for parent, child in zip(parents, found, strict=True):
        scores.append(scores[parent] * min(1.0, child.factor))
    return root.grown(
        [child.token for child in found],
        parents,
        source=[child.source for child in found],
        scores=scores[1:],
        rows=[child.row for child in found],
    )
