"""Children of nodes before they are in a tree, and the trees that they make."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from torch import Tensor

from specdec_lib.core.tree import TokenTree


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
    tree: TokenTree,
    children: Mapping[int, Sequence[Child]],
    *,
    floor: float = 0.0,
    above: float = -1.0,
) -> TokenTree:
    """The tree with those children at its end that score at least `floor` and more than `above`."""
    found, scores = [], []
    for node, its in children.items():
        for child in its:
            score = tree.scores[node] * min(1.0, child.factor)  # rounding may give more than 1
            if score >= floor and score > above:
                found.append((node, child))
                scores.append(score)
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
    """The tree of the `budget` best guesses, a tie to the earlier node: `expand` is asked once per
    level, for children of the nodes below which a guess could still enter the tree.
    """
    tree = root
    for level in range(depth):
        worst = min(tree.scores) if tree.guesses == budget else -1.0
        widths = {
            node: budget
            for node, its in enumerate(tree.depths)
            if its == level and tree.scores[node] > worst
        }
        if not widths:
            break
        tree = add_children(tree, expand(tree, widths), floor=floor, above=worst)
        tree = tree.truncated(budget)
    return tree
