"""One round under every rule: the expected tokens of a proposed tree, exactly, and the bound."""

import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from specdec_lib.core.chance import Chance, EveryBranch, Sampler, Slots, every_outcome
from specdec_lib.core.protocols import Rule
from specdec_lib.core.tree import ROOT, TokenTree
from specdec_lib.core.verify import UNWARPED, look_up, reject
from specdec_lib.measure.rule_bench.rules import draw_once, k_seq, traverse
from specdec_lib.theory.bounds import best_acceptance, best_acceptance_of_two, proposed

RULES: Mapping[str, tuple[Rule, ...]] = {  # by siblings
    "ranked": (look_up,),
    "top": (draw_once,),
    "iid": (draw_once, reject, k_seq, traverse),
    "distinct": (draw_once, reject, traverse),
}


def verify_tree(
    tree: TokenTree, target_logits: Float[Tensor, "nodes vocab"], chance: Chance, *, siblings: str
) -> dict[str, dict[str, float]]:
    """Per rule that takes such siblings, and for the bound: rounds (1), expected tokens, the
    probability that a child of the root is accepted, microseconds of a processor.
    """
    small, probs = compact(tree, target_logits, chance.sampler)
    log_probs, found = probs.log(), {}
    kind = partial(_ByChild, following=_following(small))
    for rule in RULES[siblings]:
        if rule is k_seq and max(tree.depths) == tree.guesses:
            continue  # on a chain it is `reject`
        started = time.process_time()
        lengths = {_accepted(rule, tree, target_logits, chance): 1.0}
        cost = {"microseconds": 1e6 * (time.process_time() - started)}
        if rule is not look_up:  # which reads the noise, not coins
            lengths = every_outcome(partial(_accepted, rule, small, log_probs), UNWARPED, kind)
        tokens = sum((1 + length) * share for (length,), share in lengths.items())
        first = 1 - lengths.get((0,), 0.0)
        found[rule.__name__] = {"rounds": 1, "tokens": tokens, "first_accepted": first} | cost
    if siblings != "ranked":  # which has that of distinct siblings
        most = {"tokens": tokens_bound(small, probs, siblings)}
        most["first_accepted"] = first_bound(small, probs, siblings)
        found["bound"] = {"rounds": 1} | most
    return found


def compact(
    tree: TokenTree, target_logits: Float[Tensor, "nodes vocab"], sampler: Sampler
) -> tuple[TokenTree, Float[Tensor, "nodes possible"]]:
    """The tree and the target's distributions with all tokens that cannot be proposed as one, the
    last: every rule accepts as much as before, several times as fast.
    """
    probs = torch.stack([sampler.probs(logits) for logits in target_logits]).double()
    rows = {id(row): row.double() for row in tree.rows if row is not None}
    possible = torch.zeros(probs.shape[1], dtype=torch.bool)
    possible[list(tree.tokens[1:])] = True
    for row in rows.values():
        possible |= row > 0
    kept = possible.nonzero()[:, 0]
    tokens = torch.searchsorted(kept, torch.tensor(tree.tokens[1:])).tolist()
    shorter = {key: torch.cat([row[kept], torch.zeros(1)]) / row.sum() for key, row in rows.items()}
    small = replace(
        tree, tokens=(0, *tokens), rows=tuple(shorter.get(id(row)) for row in tree.rows)
    )
    rest = (1 - probs[:, kept].sum(-1, keepdim=True)).clamp(min=0.0)
    return small, torch.cat([probs[:, kept], rest], dim=-1)


@dataclass(frozen=True)
class _ByChild(EveryBranch):
    """Every branch of a round's coins; all tokens that do not stand below a node are one branch."""

    following: Mapping[Slots, list[int]] = field(default_factory=dict)

    def draw(
        self, use: str, probs: Float[Tensor, " vocab"], root_position: int, slots: Slots
    ) -> int:
        below, rest = self.following[slots], probs.clone()
        rest[below] = 0.0
        shares = [*probs[below].tolist(), float(rest.sum())]
        branch = self.branches.decide(
            (use, self.nesting, root_position, slots), [share / sum(shares) for share in shares]
        )
        return (*below, int(rest.argmax()))[branch]


def _following(tree: TokenTree) -> dict[Slots, list[int]]:
    """The tokens below each node and below its twins, by slots."""
    below: dict[tuple[int, ...], set[int]] = defaultdict(set)
    for node in range(1, len(tree)):
        below[tree.path_tokens(tree.parents[node])].add(tree.tokens[node])
    return {tree.slots(node): [*below[tree.path_tokens(node)]] for node in range(len(tree))}


def _accepted(rule: Rule, tree: TokenTree, logits: Tensor, chance: Chance) -> tuple[int]:
    return (len(rule(tree, logits, chance).path),)


def tokens_bound(tree: TokenTree, probs: Float[Tensor, "nodes vocab"], siblings: str) -> float:
    """1 + Σ over the distinct paths of a tree of min(1, the target's probability of the path ÷
    that of its being proposed). No rule's expected tokens exceed the mean of this over drawn
    trees.
    """
    total = 1.0
    for tokens, path in {
        tree.path_tokens(node): tree.path(node) for node in range(1, len(tree))
    }.items():
        above = [tree.parents[node] for node in path]
        wanted = 1.0
        for node, token in zip(above, tokens, strict=True):
            wanted *= float(probs[node][token])
        if siblings != "top":
            below = [tree.children(node) for node in above]
            rows = [tree.rows[children[0]].numpy() for children in below]
            wanted /= proposed(rows, tokens, list(map(len, below)), siblings)
        total += min(1.0, wanted)
    return total


def first_bound(tree: TokenTree, probs: Float[Tensor, "nodes vocab"], siblings: str) -> float:
    """The largest probability with which any rule can accept a child of the root."""
    children, wanted = tree.children(ROOT), probs[ROOT].numpy()
    if siblings == "top":
        return float(wanted[[tree.tokens[child] for child in children]].sum())
    offered = tree.rows[children[0]].numpy()
    if siblings == "iid" or len(children) == 1:
        return best_acceptance(wanted, offered, len(children))
    return best_acceptance_of_two(wanted, offered)
