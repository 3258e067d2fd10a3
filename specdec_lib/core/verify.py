"""The two rules that verify a tree: tree, target logits and chance in, a verdict out."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from specdec_lib.core.chance import Chance, PerToken, Sampler
from specdec_lib.core.protocols import NodeLogits, Verdict
from specdec_lib.core.tree import ROOT, TokenTree

UNWARPED = Sampler(1.0)


class Choice(NamedTuple):
    """The target chose `token` after `node`; under lenience an accepted child may hold another."""

    node: int
    token: int
    child: int | None


class ChildTest(NamedTuple):
    """One child was tested against the residual distribution after its parent.

    wanted    the target's distribution [vocab], or the residual one after rejected siblings
    left      the residual distribution after the test; `wanted` itself if the child was accepted
    ratio     l · wanted ÷ offered at the child's token, with lenience l (1 for the target)
    """

    child: int
    wanted: PerToken
    left: PerToken
    ratio: float
    accepted: bool


class FinalDraw(NamedTuple):
    """No child of `node` was accepted, so `token` was drawn from `wanted` [vocab]."""

    node: int
    wanted: PerToken
    token: int


Trace = Callable[[Choice | ChildTest | FinalDraw], object]
"""A function that receives each event of a walk in order, such as `list.append`."""


def ignore(event: Choice | ChildTest | FinalDraw, /) -> None:
    """Discard an event: the default of every walk."""


def look_up(
    tree: TokenTree,
    target_logits: NodeLogits,
    chance: Chance,
    *,
    otherwise: Callable[[int], int | None] | None = None,
    trace: Trace = ignore,
) -> Verdict:
    """Gumbel-coupled verification: follow the child that equals the target's own choice for this
    seed and position until no child does, and add that choice: the target's own output.

    otherwise    in a review by a draft model: the child to follow where none is the choice
    trace        receives one `Choice` per node on the path

    Raises ValueError unless there is one row of logits per node. Source: Miao et al. 2024, section
    4, with noise shared by position; greedy is temperature 0.
    """
    check_rows(tree, target_logits)
    path = []
    node = ROOT
    while True:
        token = chance.choose(target_logits[node], tree.position(node) + 1)
        child = tree.child(node, token)
        if child is None and otherwise is not None:
            child = otherwise(node)
        trace(Choice(node, token, child))
        if child is None:
            return Verdict(tuple(path), bonus=token)
        path.append(child)
        node = child


def reject(
    tree: TokenTree,
    target_logits: NodeLogits,
    chance: Chance,
    *,
    leniences: Sequence[float] | None = None,
    trace: Trace = ignore,
) -> Verdict:
    """Test the children of a node in order, and follow the first that is accepted; where none is,
    end with a token drawn from what they left of the target's distribution.

    A child drawn from its row `offered` is accepted with probability min(1, l · wanted ÷ offered)
    at its token, where `wanted` is the target's distribution, and after a rejection the residual
    max(0, wanted − offered), normalised. A row of None means that the token was certain. The output
    has the target's distribution if each row is the one that its token was drawn from, given its
    earlier siblings, and l is 1; in a review by a draft model l is the child's of `leniences`.

    Raises ValueError unless each node has logits and each tried row allows its token. Source:
    Leviathan et al. 2023, Chen et al. 2023; siblings, Miao et al. 2024, Chen et al. 2024 (Sequoia).
    """
    check_rows(tree, target_logits)
    path = []
    node = ROOT
    while True:
        wanted = chance.sampler.probs(target_logits[node])
        for child in tree.children(node):
            row = tree.rows[child]
            token = tree.tokens[child]
            lenience = 1.0 if leniences is None else leniences[child]
            ratio = lenience * float(wanted[token]) / offered_probability(row, token, len(wanted))
            accepted = chance.coin(ratio, tree.root_position, tree.slots(child))
            left = wanted if accepted else remaining(wanted, token, row)
            trace(ChildTest(child, wanted, left, ratio, accepted))
            if accepted:
                path.append(child)
                node = child
                break
            wanted = left
        else:
            token = chance.draw("emit", wanted, tree.root_position, tree.slots(node))
            trace(FinalDraw(node, wanted, token))
            return Verdict(tuple(path), bonus=token)


def remaining(wanted: PerToken, token: int, offered: PerToken | None) -> PerToken:
    """max(0, wanted − offered), normalised, or `wanted` if all 0; None offers a point mass."""
    if offered is None:
        left = wanted.clone()
        left[token] = 0.0
    else:
        left = (wanted - offered.to(wanted)).clamp_(min=0.0)
    mass = left.sum()
    return left / mass if mass > 0 else wanted


def offered_probability(offered: Float[Tensor, " _"] | None, token: int, vocabulary: int) -> float:
    """The draft's probability of `token`, 1 without a row; raises ValueError unless in (0, 1]."""
    if offered is None:
        return 1.0
    probability = float(offered[token]) if offered.shape == (vocabulary,) else math.nan
    if not 0 < probability <= 1 + 1e-6:
        raise ValueError(
            f"a row is a distribution over {vocabulary} tokens in which its own token {token} is"
            f" possible, got shape {list(offered.shape)} and probability {probability}"
        )
    return probability


def check_rows(tree: TokenTree, target_logits: Tensor) -> None:
    """Raise ValueError unless there is one row of logits per node."""
    if len(target_logits) != len(tree):
        raise ValueError(f"{len(tree)} nodes need as many target rows, got {len(target_logits)}")
