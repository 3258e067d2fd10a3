"""The rules that make speculation safe: a tree, the target's logits and chance in, a verdict out.

`look_up` gives the target's own output token for token, whatever the drafts do. `reject` gives the
target's own law, provided that every row in the tree is the law its token was drawn from.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor

from specdec_lib.core.chance import Chance
from specdec_lib.core.tree import ROOT, TokenTree


@dataclass(frozen=True)
class Verdict:
    """The accepted nodes, from below the root down, and one more token of the target's own: a
    correction, or a bonus after full acceptance.
    """

    path: tuple[int, ...]
    bonus: int


@runtime_checkable
class Rule(Protocol):
    """How a target accepts a tree."""

    def __call__(
        self, tree: TokenTree, target_logits: Float[Tensor, "nodes vocab"], chance: Chance
    ) -> Verdict:
        """The verdict on `tree`; pure."""
        ...


def look_up(
    tree: TokenTree, target_logits: Float[Tensor, "nodes vocab"], chance: Chance
) -> Verdict:
    """The longest path from the root that follows the target's own choices, and its next choice.

    target_logits    row i: the target's logits after node i, root first
    chance           asked once per node on the path, at the position after it, never elsewhere

    Raises ValueError unless there is one row per node.
    Source: Miao et al. 2024, section 4, with noise shared by position; greedy is temperature 0.
    """
    _check_rows(tree, target_logits)
    path, node = [], ROOT
    while True:
        token = chance.choose(target_logits[node], tree.position(node) + 1)
        child = tree.child(node, token)
        if child is None:
            return Verdict(tuple(path), bonus=token)
        path.append(child)
        node = child


def reject(tree: TokenTree, target_logits: Float[Tensor, "nodes vocab"], chance: Chance) -> Verdict:
    """The path that survives one test per child, and a token from what the rejected children left
    of the target's law.

    A child drawn from `offered` is kept with probability min(1, wanted ÷ offered) at its token;
    otherwise what is still wanted becomes (wanted − offered)₊, normalised. One update serves a
    chain, siblings with and without replacement, and a point mass.

    target_logits    row i: the target's logits after node i, root first
    chance           one coin per child tried, in draw order, and one draw

    Raises ValueError unless there is one target row per node, and each node's own row, where it has
    one, gives its token a probability.
    Source: Leviathan et al. 2023, Algorithm 1; siblings as in Miao et al. 2024 and Chen et al. 2024
    (Sequoia).
    """
    _check_rows(tree, target_logits)
    path, node = [], ROOT
    while True:
        wanted = chance.sampler.probs(target_logits[node])
        for child in tree.children(node):
            offered = tree.rows[child]
            token = tree.tokens[child]
            ratio = float(wanted[token]) / offered_probability(offered, token, len(wanted))
            if chance.coin(ratio, tree.root_position, tree.slots(child)):
                path.append(child)
                node = child
                break
            wanted = remaining(wanted, token, offered)
        else:
            return Verdict(
                tuple(path), bonus=chance.draw("emit", wanted, tree.root_position, tree.slots(node))
            )


def remaining(wanted: Tensor, token: int, offered: Tensor | None) -> Tensor:
    """(wanted − offered)₊ normalised; `wanted` itself where nothing is left, which only rounding
    can bring about.
    """
    if offered is None:
        left = wanted.clone()
        left[token] = 0.0
    else:
        left = (wanted - offered.to(wanted)).clamp_(min=0.0)
    mass = left.sum()
    return left / mass if mass > 0 else wanted


def offered_probability(offered: Tensor | None, token: int, vocabulary: int) -> float:
    """How probable the draft's token was; 1 for one that was chosen without chance."""
    if offered is None:
        return 1.0
    if offered.shape != (vocabulary,) or not 0 < (probability := float(offered[token])) <= 1 + 1e-6:
        what = (
            f"{list(offered.shape)}"
            if offered.shape != (vocabulary,)
            else f"probability {float(offered[token])}"
        )
        raise ValueError(
            f"a row is a law over {vocabulary} tokens in which its own token {token} is possible,"
            f" got {what}"
        )
    return probability


def _check_rows(tree: TokenTree, target_logits: Tensor) -> None:
    if len(target_logits) != len(tree):
        raise ValueError(f"{len(tree)} nodes need as many target rows, got {len(target_logits)}")
