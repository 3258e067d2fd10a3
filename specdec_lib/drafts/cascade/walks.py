"""How a draft model reviews guesses: the walks of `core.verify`, which a lenience l ≥ 1 lets go on
beyond the reviewer's own choice. `reject` stays exact because the row handed up is the distribution
that the review really gives the token (the paper hands up the reviewer's own).

Source: Chen et al. 2024 (cascade speculative drafting), 3.1; Leviathan et al. 2023 have 1 ÷ l.
"""

import functools
import math
from collections.abc import Sequence
from itertools import compress
from typing import cast

import torch
from torch import Tensor

from specdec_lib.core.chance import Chance, PerToken, unwarped
from specdec_lib.core.context import Context
from specdec_lib.core.protocols import LanguageModel, NodeLogits, Ranked, TreeGrower, Verdict
from specdec_lib.core.tree import ROOT, MatchTable, TokenTree
from specdec_lib.core.verify import ChildTest, Choice, FinalDraw, reject, remaining
from specdec_lib.drafts.max_gram import ORIGINS

_grows = functools.cache(lambda kind: issubclass(kind, TreeGrower))  # which takes long to find out


def ranked_path(
    model: LanguageModel,
    context: Context,
    tree: TokenTree,
    chance: Chance,
    *,
    width: int,
    match: MatchTable,
) -> list[tuple[int, Ranked]] | None:
    """The nodes on the path that `look_up` follows, from the root on, each with the model's `width`
    best "ranked" children. The first of them is the model's own choice, which the path follows.
    None if the model cannot rank children itself.
    """
    if not _grows(type(model)):
        return None
    ranked = cast(TreeGrower, model).rank(context, tree, chance, width=width, match=match)
    if ranked is None:
        return None
    found: list[tuple[int, Ranked]] = []
    node: int | None = ROOT
    while node is not None:
        found.append((node, ranked(node)))
        (choice, *_), _ = found[-1][1]
        node = tree.child(node, choice)
    return found


def allowed_child(
    tree: TokenTree,
    logits: NodeLogits,
    chance: Chance,
    leniences: Sequence[float],
    node: int,
) -> int | None:
    """The best-scored child of `node` that its lenience l > 1 allows (the first of a tie), or None.

    At temperature 0 it allows offered ≤ l · the reviewer's unwarped probability, where Max-Gram's
    nodes offer 1, others their score ÷ the node's; at others, a noisy log-probability at most log l
    below that of the reviewer's choice.
    """
    children = [child for child in tree.children(node) if leniences[child] > 1]
    if not children:
        return None

    def offered(child: int) -> float:
        known = tree.scores[node] > 0 and tree.sources[child] not in ORIGINS
        return tree.scores[child] / tree.scores[node] if known else 1.0

    tokens = [tree.tokens[child] for child in children]
    if chance.sampler.temperature == 0:
        probs = zip(children, unwarped(logits[node], tokens), strict=True)
        fits = [offered(child) <= leniences[child] * prob for child, prob in probs]
    else:
        gaps = zip(
            children, chance.gaps(logits[node], tree.position(node) + 1, tokens), strict=True
        )
        fits = [gap <= math.log(leniences[child]) for child, gap in gaps]
    return max(compress(children, fits), key=lambda child: tree.scores[child], default=None)


def reject_leniently(
    tree: TokenTree,
    logits: NodeLogits,
    chance: Chance,
    leniences: Sequence[float],
) -> tuple[Verdict, tuple[PerToken, ...]]:
    """Run `reject` with a lenience per node: its verdict, and the distribution of each token that
    it gives.  Raises ValueError for a lenience above 1 in a branching tree: it has no closed form.
    """
    if max(leniences) > 1 and max(tree.depths) < tree.guesses:
        raise ValueError(
            "lenience above 1 under `reject` reviews chains only, got a branching tree of"
            f" {tree.guesses} guesses and {max(leniences)}"
        )
    events: list[Choice | ChildTest | FinalDraw] = []
    verdict = reject(tree, logits, chance, leniences=leniences, trace=events.append)
    rows: dict[int, Tensor] = {}
    for event in events:  # the first at a node tells what its next token follows
        if isinstance(event, FinalDraw):
            rows.setdefault(event.node, event.wanted)
        elif isinstance(event, ChildTest) and tree.parents[event.child] not in rows:
            parent = tree.parents[event.child]
            token = tree.tokens[event.child]
            row = tree.rows[event.child]
            rows[parent] = lenient_probs(event.wanted, token, row, leniences[event.child])
    return verdict, tuple(rows.values())


def lenient_probs(
    wanted: PerToken,
    token: int,
    row: PerToken | None,
    lenience: float,
) -> PerToken:
    """The distribution of the next token under a lenient review of `token`, drawn from `row` (None
    is the point mass), by a reviewer of the distribution `wanted`: `token` is kept with probability
    min(1, l · wanted ÷ row), else replaced by one drawn from the residual distribution.
    """
    if lenience == 1:
        return wanted
    if row is None:
        row = torch.zeros_like(wanted)
        row[token] = 1.0
    row = row.to(wanted)
    leftover = (row - lenience * wanted).clamp(min=0.0).sum()
    return torch.minimum(row, lenience * wanted) + leftover * remaining(wanted, token, row)
