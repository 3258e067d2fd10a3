"""Three more rules, to compare with the two of `core/verify.py`: like `reject` they keep the
target's distribution, not its tokens for a seed.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from specdec_lib.core.chance import Chance
from specdec_lib.core.protocols import Verdict
from specdec_lib.core.tree import ROOT, TokenTree
from specdec_lib.core.verify import check_rows, offered_probability

Distribution = Float[Tensor, " vocab"]
HALVINGS = 30  # of the interval that holds the slack of `k_seq`; any slack above it is exact too


def draw_once(
    tree: TokenTree, target_logits: Float[Tensor, "nodes vocab"], chance: Chance
) -> Verdict:
    """The naive rule: draw one token of the target at each node, and go down while it is among the
    children. It reads no row; equal siblings count as one.  Source: Miao et al. 2024, section 4.
    """
    check_rows(tree, target_logits)
    twins = [ROOT]  # the nodes of one path
    while True:
        wanted = chance.sampler.probs(target_logits[twins[0]])
        token = chance.draw("emit", wanted, tree.root_position, tree.slots(twins[0]))
        below = (child for twin in twins for child in tree.children(twin))
        found = [child for child in below if tree.tokens[child] == token]
        if not found:
            return Verdict(tree.path(twins[0]), bonus=token)
        twins = found


def traverse(
    tree: TokenTree, target_logits: Float[Tensor, "nodes vocab"], chance: Chance
) -> Verdict:
    """Test the tree from its leaves up: a node's turn comes when every path below it has failed,
    and the first node that passes is accepted with its whole path.

    A node passes with probability `kept`: at first min(1, its parent's kept · wanted ÷ offered) at
    its token. Each child that fails leaves it the residual max(0, kept · wanted − offered), which
    is normalised; with its mass m, kept becomes m ÷ (m + 1 − kept).

    Raises ValueError as `reject` does.  Source: Weng et al. 2025; on a chain this is block
    verification, Sun et al. 2024, which is optimal there among exact rules.
    """
    check_rows(tree, target_logits)

    def tested(node: int, kept: float) -> Verdict | None:
        wanted = chance.sampler.probs(target_logits[node])
        for child in tree.children(node):
            token = tree.tokens[child]
            row = tree.rows[child]
            ratio = _ratio(kept, wanted, token, row)
            if ratio > 0 and (verdict := tested(child, min(1.0, ratio))):
                return verdict
            kept, wanted = _after_failure(kept, wanted, token, row)
        slots = tree.slots(node)
        if node == ROOT or chance.coin(kept, tree.root_position, slots):
            token = chance.draw("emit", wanted, tree.root_position, slots)
            return Verdict(tree.path(node), bonus=token)
        return None

    verdict = tested(ROOT, 1.0)
    assert verdict is not None  # the root always passes
    return verdict


def _ratio(kept: float, wanted: Distribution, token: int, row: Distribution | None) -> float:
    return kept * float(wanted[token]) / offered_probability(row, token, len(wanted))


def _after_failure(
    kept: float, wanted: Distribution, token: int, row: Distribution | None
) -> tuple[float, Distribution]:
    """`kept` and `wanted` without what a failed child could have passed with."""
    left = kept * wanted
    if row is None:
        left[token] = 0.0
    else:
        left = (left - row.to(left)).clamp_(min=0.0)
    mass = float(left.sum())
    total = mass + 1 - kept
    return mass / total if total > 0 else 0.0, left / mass if mass > 0 else wanted


def k_seq(tree: TokenTree, target_logits: Float[Tensor, "nodes vocab"], chance: Chance) -> Verdict:
    """Test the children of each node in order, all against the target's whole distribution: each
    is accepted with probability min(1, wanted ÷ (ρ · offered)) at its token, where the slack ρ is
    the least factor for which the residual distribution is nowhere negative.

    Raises ValueError for siblings that were not drawn independently from one distribution.
    Source: Sun et al. 2023 (SpecTr), Algorithm 2, K-SEQ.
    """
    check_rows(tree, target_logits)
    path = []
    node = ROOT
    while True:
        wanted = chance.sampler.probs(target_logits[node])
        children = tree.children(node)
        offered = _shared_row(tree, children, wanted)
        slack = least_slack(wanted, offered, len(children))
        for child in children:
            token = tree.tokens[child]
            ratio = float(wanted[token]) / offered_probability(offered, token, len(wanted)) / slack
            if chance.coin(ratio, tree.root_position, tree.slots(child)):
                path.append(child)
                node = child
                break
        else:
            left = _unclaimed(wanted, offered, len(children), slack)
            token = chance.draw("emit", left, tree.root_position, tree.slots(node))
            return Verdict(tuple(path), bonus=token)


def least_slack(wanted: Distribution, offered: Distribution, draws: int) -> float:
    """The least slack ρ in 1…draws with 1 − (1 − β)^draws ≤ ρβ, where β = Σ min(wanted ÷ ρ,
    offered) is the probability that one draw is accepted; found by bisection, rounded up.
    """
    possible = (offered > 0).nonzero()[:, 0]
    wanted = wanted[possible].double()
    offered = offered[possible].double()

    def claims(slack: float) -> float:
        rate = float(torch.minimum(wanted / slack, offered).sum())
        return (1 - (1 - rate) ** draws) - slack * rate

    low = 1.0
    high = float(draws)
    if draws < 2 or claims(low) <= 0:
        return low
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if claims(middle) <= 0 else (middle, high)
    return high


def _unclaimed(
    wanted: Distribution, offered: Distribution, draws: int, slack: float
) -> Distribution:
    """The distribution of the correction after all draws failed; `wanted` where none is left."""
    claimed = torch.minimum(wanted / slack, offered)
    rate = float(claimed.sum())
    if rate == 0:
        return wanted
    left = (wanted - claimed * (1 - (1 - rate) ** draws) / rate).clamp_(min=0.0)
    return left / left.sum() if left.any() else wanted


def _shared_row(tree: TokenTree, children: Sequence[int], wanted: Distribution) -> Distribution:
    """The distribution that all children of a node were drawn from; zeros where there are none."""
    drawn_from = [tree.rows[child] for child in children]
    rows = [row for row in drawn_from if row is not None]
    if len(rows) < len(children) or any(not torch.equal(row, rows[0]) for row in rows):
        raise ValueError(
            "k_seq takes siblings that were drawn independently from one distribution, got others;"
            ' use siblings="iid"'
        )
    return rows[0].to(wanted) if rows else torch.zeros_like(wanted)
