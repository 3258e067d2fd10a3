"""How a draft model reviews guesses: the walks of `core.verify`, with a lenience of 1 or more.
`reject` stays exact because the row handed up is the distribution that the review really gives the
token (the paper hands up the reviewer's own).

Source: Chen et al. 2024 (cascade speculative drafting), 3.1, with l ≥ 1; Leviathan et al. 2023,
appendix, has its reciprocal.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from specdec_lib.core.chance import Chance
from specdec_lib.core.protocols import Verdict
from specdec_lib.core.trace import FinalDraw, Trial
from specdec_lib.core.tree import TokenTree
from specdec_lib.core.verify import Lenience, reject, remaining
from specdec_lib.drafts.max_gram import ORIGINS


def lenience_of(tree: TokenTree, lenience: float, *, exempt_max_gram: bool) -> Lenience:
    """The `Lenience` of a review: Max-Gram's nodes (factor 1 if exempt) offer 1, others their score
    ÷ their parent's, or 1 if that is 0.
    """
    copied = [source in ORIGINS for source in tree.sources]
    above = [1.0, *(tree.scores[parent] for parent in tree.parents[1:])]
    return Lenience(
        [1.0 if exempt_max_gram and copy else lenience for copy in copied],
        [
            1.0 if copy or parent_score == 0 else score / parent_score
            for copy, score, parent_score in zip(copied, tree.scores, above, strict=True)
        ],
    )


def reject_leniently(
    tree: TokenTree,
    logits: Float[Tensor, "nodes vocab"],
    chance: Chance,
    leniences: Sequence[float],
) -> tuple[Verdict, tuple[Float[Tensor, " vocab"], ...]]:
    """Run `reject` with a lenience per node: its verdict, and the distribution of each token that
    it gives.  Raises ValueError for a lenience above 1 in a branching tree: it has no closed form.
    """
    if any(lenience != 1 for lenience in leniences) and any(
        len(tree.children(node)) > 1 for node in range(len(tree))
    ):
        got = f"a branching tree of {tree.guesses} guesses and {max(leniences)}"
        raise ValueError(f"lenience above 1 under `reject` reviews chains only, got {got}")
    events: list[Trial | FinalDraw] = []
    verdict = reject(tree, logits, chance, leniences=leniences, trace=events.append)
    rows: dict[int, Tensor] = {}
    for event in events:  # the first at a node tells what its next token follows
        if isinstance(event, FinalDraw):
            rows.setdefault(event.node, event.wanted)
        elif (parent := tree.parents[event.child]) not in rows:
            token, row = tree.tokens[event.child], tree.rows[event.child]
            rows[parent] = lenient_probs(event.wanted, token, row, leniences[event.child])
    return verdict, tuple(rows.values())


def lenient_probs(
    wanted: Float[Tensor, " vocab"],
    token: int,
    row: Float[Tensor, " vocab"] | None,
    lenience: float,
) -> Float[Tensor, " vocab"]:
    """The distribution of the next token under a lenient review of `token`, drawn from `row` (None
    is the point mass), by a reviewer of the distribution `wanted`.

    `token` is kept with probability min(1, l · wanted ÷ row), else replaced by one drawn from the
    residual distribution.
    """
    if lenience == 1:
        return wanted
    if row is None:
        row = torch.zeros_like(wanted)
        row[token] = 1.0
    row = row.to(wanted)
    leftover = (row - lenience * wanted).clamp(min=0.0).sum()
    return torch.minimum(row, lenience * wanted) + leftover * remaining(wanted, token, row)
