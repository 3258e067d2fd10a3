"""The two rules that verify a tree: tree, target logits and chance in, a verdict out."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from specdec_lib.core.chance import Chance, Sampler, unwarped
from specdec_lib.core.protocols import Verdict
from specdec_lib.core.trace import Choice, FinalDraw, Trace, Trial, ignore
from specdec_lib.core.tree import ROOT, TokenTree

UNWARPED = Sampler(1.0)


@dataclass(frozen=True)
class Lenience:
    """How far a review by a draft model accepts guesses beyond the reviewer's own choice.

    factors    lenience l per node, root included: 1 accepts only the reviewer's own choice; the
               reciprocal of Leviathan et al.'s
    offered    probability of each node's token under its drafter; used at temperature 0 only
    """

    factors: Sequence[float]
    offered: Sequence[float]

    def accepted(
        self, tree: TokenTree, node: int, logits: Float[Tensor, " vocab"], chance: Chance
    ) -> int | None:
        """The best-scored child of `node` that its lenience l allows (the first of a tie), or None;
        l = 1 allows none.

        At temperature 0 it allows offered ≤ l · the reviewer's unwarped probability; above it, a
        noisy log-probability at most log l below that of the reviewer's choice.
        """
        children = [child for child in tree.children(node) if self.factors[child] > 1]
        if not children:
            return None
        tokens = [tree.tokens[child] for child in children]
        if chance.sampler.temperature == 0:
            probs = dict(zip(children, unwarped(logits, tokens), strict=True))
            found = [one for one in children if self.offered[one] <= self.factors[one] * probs[one]]
        else:
            noisy = chance.gaps(logits, tree.position(node) + 1, tokens)
            gaps = dict(zip(children, noisy, strict=True))
            found = [one for one in children if gaps[one] <= math.log(self.factors[one])]
        return max(found, key=lambda child: tree.scores[child], default=None)


def look_up(
    tree: TokenTree,
    target_logits: Float[Tensor, "nodes vocab"],
    chance: Chance,
    *,
    lenience: Lenience | None = None,
    trace: Trace = ignore,
) -> Verdict:
    """Gumbel-coupled verification: follow the child that equals the target's own choice for this
    seed and position until no child does, and add that choice: the target's own output.

    lenience    in a review by a draft model: where no child is the choice, follow one it allows
    trace       receives one `Choice` per node on the path

    Raises ValueError unless there is one row of logits per node. Source: Miao et al. 2024, section
    4, with noise shared by position; greedy is temperature 0.
    """
    check_rows(tree, target_logits)
    path, node = [], ROOT
    while True:
        token = chance.choose(target_logits[node], tree.position(node) + 1)
        child = tree.child(node, token)
        if child is None and lenience is not None:
            child = lenience.accepted(tree, node, target_logits[node], chance)
        trace(Choice(node, token, child))
        if child is None:
            return Verdict(tuple(path), bonus=token)
        path.append(child)
        node = child


def reject(
    tree: TokenTree,
    target_logits: Float[Tensor, "nodes vocab"],
    chance: Chance,
    *,
    leniences: Sequence[float] | None = None,
    trace: Trace = ignore,
) -> Verdict:
    """Test the children of a node in order, and follow the first that is accepted; where none is,
    end with a token drawn from what they left of the target's distribution. The output has the
    target's distribution if each of `tree.rows` is the one that its token was drawn from, given its
    earlier siblings; the row None is a point mass.

    leniences    in a review: per node l, its token is accepted with min(1, l · wanted ÷ offered);
                 where l > 1 the output no longer has the target's distribution
    trace        receives one `Trial` per child tried, and the `FinalDraw`

    A child drawn from `offered` is accepted with probability min(1, wanted ÷ offered) at its token,
    where `wanted` is at first the target's distribution, and after a rejection the residual max(0,
    wanted − offered), normalised: for chains, for siblings drawn with and without replacement, and
    for tokens that were not drawn (a point mass).

    Raises ValueError unless there is one row of logits per node, and the row of each child tried
    gives its token a positive probability. Source: speculative sampling, Leviathan et al. 2023,
    Algorithm 1, and Chen et al. 2023; multi-round for siblings, Miao et al. 2024 and Chen et al.
    2024 (Sequoia).
    """
    check_rows(tree, target_logits)
    path, node = [], ROOT
    while True:
        wanted = chance.sampler.probs(target_logits[node])
        for child in tree.children(node):
            row, token = tree.rows[child], tree.tokens[child]
            lenience = 1.0 if leniences is None else leniences[child]
            ratio = lenience * float(wanted[token]) / offered_probability(row, token, len(wanted))
            accepted = chance.coin(ratio, tree.root_position, tree.slots(child))
            left = wanted if accepted else remaining(wanted, token, row)
            trace(Trial(child, wanted, left, ratio, accepted))
            if accepted:
                path.append(child)
                node = child
                break
            wanted = left
        else:
            token = chance.draw("emit", wanted, tree.root_position, tree.slots(node))
            trace(FinalDraw(node, wanted, token))
            return Verdict(tuple(path), bonus=token)


def remaining(
    wanted: Float[Tensor, " vocab"], token: int, offered: Float[Tensor, " vocab"] | None
) -> Float[Tensor, " vocab"]:
    """The residual max(0, wanted − offered), normalised, or `wanted` if all 0; `offered` None is
    the point mass at `token`.
    """
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
    if offered.shape != (vocabulary,):
        got = f"shape {list(offered.shape)}"
    elif 0 < (probability := float(offered[token])) <= 1 + 1e-6:
        return probability
    else:
        got = f"probability {probability}"
    row = f"a row is a distribution over {vocabulary} tokens"
    raise ValueError(f"{row} in which its own token {token} is possible, got {got}")


def check_rows(tree: TokenTree, target_logits: Tensor) -> None:
    """Raise ValueError unless there is one row of logits per node."""
    if len(target_logits) != len(tree):
        raise ValueError(f"{len(tree)} nodes need as many target rows, got {len(target_logits)}")
