"""The rules by which a draft model reviews: those of `verify`, with a lenience of 1 or more per
node.

Only drafts are lenient. What a lenient review lets through is still a guess, and the target's own
rule keeps the output exact: under `look_up` whatever the guess, under `reject` because the row
handed up is the law that the lenient review really gives the token.
Source: Leviathan et al. 2023, appendix (lenience); Chen et al. 2024 (cascade speculative drafting),
section 3.1. The law handed up is ours: the paper hands up the reviewer's own, which is not what a
lenient review samples from.
"""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.tree import ROOT, TokenTree
from specdec_lib.core.verify import Verdict, offered_probability, reject, remaining
from specdec_lib.drafts.max_gram import ORIGINS

UNWARPED = Sampler(1.0)


def look_up_leniently(
    tree: TokenTree,
    logits: Float[Tensor, "nodes vocab"],
    chance: Chance,
    leniences: Sequence[float],
) -> Verdict:
    """The path that the reviewer follows, its own choice first, else the best-scored child that it
    lets through.

    leniences    per node l; a child x is let through if offered(x) ≤ l · reviewer(x), both
                 unwarped, at temperature 0; and if its noisy log-probability and log l reach the
                 reviewer's choice above that
    """
    path, node = [], ROOT
    while True:
        position = tree.position(node) + 1
        own = chance.choose(logits[node], position)
        child = tree.child(node, own)
        if child is None:
            passed = _let_through(tree, node, logits[node], chance, leniences)
            if not passed:
                return Verdict(tuple(path), bonus=own)
            child = max(passed, key=lambda one: tree.scores[one])  # of a tie the first
        path.append(child)
        node = child


def _let_through(
    tree: TokenTree, node: int, logits: Tensor, chance: Chance, leniences: Sequence[float]
) -> list[int]:
    children = tree.children(node)
    if not children:
        return []
    tokens = [tree.tokens[child] for child in children]
    if chance.sampler.temperature == 0:
        probs = UNWARPED.probs(logits)[tokens].tolist()
        return [
            child
            for child, prob in zip(children, probs, strict=True)
            if offered(tree, child) <= leniences[child] * prob
        ]
    gaps = chance.gaps(logits, tree.position(node) + 1, tokens)
    return [
        child
        for child, gap in zip(children, gaps, strict=True)
        if gap <= math.log(leniences[child])
    ]


def offered(tree: TokenTree, node: int) -> float:
    """What the draft thought of a node given its parent, at temperature 0: its score over its
    parent's; 1 for a copy that nobody reviewed.
    """
    above = tree.scores[tree.parents[node]]
    return 1.0 if tree.sources[node] in ORIGINS or above == 0 else tree.scores[node] / above


def reject_leniently(
    tree: TokenTree,
    logits: Float[Tensor, "nodes vocab"],
    chance: Chance,
    leniences: Sequence[float],
) -> tuple[Verdict, tuple[Tensor, ...]]:
    """The verdict of a ratio rule, and the law of each token it hands up: of the kept ones and of
    the reviewer's own at the end.

    A token x drawn from `offered` is kept with probability min(1, l · reviewer(x) ÷ offered(x)),
    else replaced by one of the normalised (reviewer − offered)₊. So it follows min(offered, l ·
    reviewer) + leftover · that, which is the reviewer's own law where l is 1.

    Raises ValueError for a branching tree where a lenience is above 1: what such a review samples
    from has no such form.
    """
    laws = [chance.sampler.probs(row) for row in logits]
    if all(lenience == 1 for lenience in leniences):
        verdict = reject(tree, logits, chance)
        return verdict, tuple(laws[node] for node in (ROOT, *verdict.path))
    if any(len(tree.children(node)) > 1 for node in range(len(tree))):
        raise ValueError(
            "lenience above 1 under a ratio rule reviews chains only, got a branching tree of"
            f" {tree.guesses} guesses and {max(leniences)}"
        )
    path, rows, node = [], [], ROOT
    while children := tree.children(node):
        child = children[0]
        wanted, row, token, lenience = (
            laws[node],
            tree.rows[child],
            tree.tokens[child],
            leniences[child],
        )
        rows.append(lenient_law(wanted, token, row, lenience))
        ratio = lenience * float(wanted[token]) / offered_probability(row, token, len(wanted))
        if not chance.coin(ratio, tree.root_position, tree.slots(child)):
            law = remaining(wanted, token, row)
            return Verdict(
                tuple(path), bonus=chance.draw("emit", law, tree.root_position, tree.slots(node))
            ), tuple(rows)
        path.append(child)
        node = child
    rows.append(laws[node])
    return Verdict(
        tuple(path), bonus=chance.draw("emit", laws[node], tree.root_position, tree.slots(node))
    ), tuple(rows)


def lenient_law(
    wanted: Float[Tensor, " vocab"],
    token: int,
    row: Float[Tensor, " vocab"] | None,
    lenience: float,
) -> Float[Tensor, " vocab"]:
    """What a lenient review of a token drawn from `row` samples from: min(row, l · wanted) +
    leftover · normalised (wanted − row)₊.

    token    the token drawn; `row` None is the point mass at it
    """
    if row is None:
        row = torch.zeros_like(wanted)
        row[token] = 1.0
    row = row.to(wanted)
    leftover = (row - lenience * wanted).clamp(min=0.0).sum()
    return torch.minimum(row, lenience * wanted) + leftover * remaining(wanted, token, row)
