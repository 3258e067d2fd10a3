"""Rules and drafts that differ from the real ones in one place."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from specdec_lib.core.chance import Chance
from specdec_lib.core.context import Context
from specdec_lib.core.protocols import Verdict
from specdec_lib.core.tree import ROOT, TokenTree
from specdec_lib.drafts.paying import FirstPaying
from specdec_lib.drafts.planned import Planned
from specdec_lib.drafts.recycling import TokenRecycling


def buggy_rule(*, residual=None, ratio=None, bonus=None, warp=None):
    """`reject` written out again with one piece replaced."""

    def rule(tree: TokenTree, target_logits: Tensor, chance: Chance) -> Verdict:
        path, node, at = [], ROOT, tree.root_position
        while True:
            wanted = (warp or chance.sampler).probs(target_logits[node])
            for child in tree.children(node):
                token, offered = tree.tokens[child], tree.rows[child]
                kept = float(wanted[token] / offered[token])
                if chance.coin(ratio(kept) if ratio else kept, at, tree.slots(child)):
                    path.append(child)
                    node = child
                    break
                left = (wanted - offered).clamp(min=0)
                if residual:
                    wanted = residual(wanted)
                elif left.sum() > 0:
                    wanted = left / left.sum()
            else:
                distribution = bonus(tree, wanted) if bonus and path else wanted
                token = chance.draw("emit", distribution, at, tree.slots(node))
                return Verdict(tuple(path), token)

    return rule


class Changed:
    """A draft whose trees are changed after they were drawn."""

    def __init__(self, draft, change):
        self.draft, self.change = draft, change

    def propose(self, context: Context, chance: Chance) -> TokenTree:
        return self.change(self.draft.propose(context, chance))


def rebuilt(tree: TokenTree, keep=lambda node: True, row=None) -> TokenTree:
    """The guesses that `keep` wants and whose parents are kept, with `row` of each."""
    root, *nodes = [node for node in range(len(tree)) if all(map(keep, tree.path(node)))]
    number = {node: new for new, node in enumerate((root, *nodes))}
    return tree.cut(0).grown(
        [tree.tokens[node] for node in nodes],
        [number[tree.parents[node]] for node in nodes],
        source=[tree.sources[node] for node in nodes],
        scores=[tree.scores[node] for node in nodes],
        rows=[tree.rows[node] if row is None else row(node) for node in nodes],
    )


def without_twins(tree: TokenTree) -> TokenTree:
    """I.i.d. duplicates merged: the repeated trial is lost."""
    return rebuilt(tree, lambda node: tree.child(tree.parents[node], tree.tokens[node]) == node)


def without_the_unlikely(tree: TokenTree) -> TokenTree:
    """Drawn tokens dropped for their low probability."""
    return rebuilt(tree, lambda node: float(tree.rows[node][tree.tokens[node]]) > 0.2)


def first_rows_everywhere(tree: TokenTree) -> TokenTree:
    """The distribution not renormalised after a sibling was removed."""
    return rebuilt(tree, row=lambda node: tree.rows[tree.children(tree.parents[node])[0]])


def soft_rows(distributions, sampler):
    """Soft probabilities reported for tokens that were chosen, not drawn."""
    return lambda tree: rebuilt(tree, row=lambda node: sampler.probs(distributions))


def likeliest_first(distribution):
    """Siblings without replacement in the order of their probability, as if drawn in it."""
    distribution = torch.tensor(distribution, dtype=torch.float64)

    def change(tree: TokenTree) -> TokenTree:
        tokens = sorted(tree.tokens[1:], key=lambda token: -distribution[token])
        rows = [distribution]
        for token in tokens[:-1]:
            left = rows[-1].clone()
            left[token] = 0
            rows.append(left / left.sum())
        given = {"source": "draft", "scores": tree.scores[1:], "rows": rows}
        return tree.cut(0).grown(tokens, [ROOT] * len(tokens), **given)

    return change


class Beside:
    """Drawn guesses of two drafts under one root, each with the distribution it was drawn from."""

    def __init__(self, one, other):
        self.parts = one, other

    def propose(self, context: Context, chance: Chance) -> TokenTree:
        tree = TokenTree.rooted(context)
        for number, part in enumerate(self.parts):
            drawn = part.propose(context, chance.inner("part", (number,)))
            given = {"source": "draft", "scores": drawn.scores[1:], "rows": drawn.rows[1:]}
            tree = tree.grown(drawn.tokens[1:], [ROOT] * drawn.guesses, **given)
        return tree


def believing(tree: TokenTree, target_logits: Tensor, chance: Chance) -> Verdict:
    """A rule that takes whatever the draft likes best."""
    path, node = [], ROOT
    while tree.children(node):
        node = tree.children(node)[0]
        path.append(node)
    return Verdict(tuple(path), chance.choose(target_logits[node], tree.position(node) + 1))


class Elsewhere:
    """A draft that guesses under another seed's noise."""

    def __init__(self, draft):
        self.draft = draft

    def propose(self, context: Context, chance: Chance) -> TokenTree:
        return self.draft.propose(context, replace(chance, seed=chance.seed + 1))


@dataclass(frozen=True, eq=False)
class ClaimsToDraw(TokenRecycling):
    """The likeliest successor, handed up as if it had been drawn."""

    def propose(self, context: Context, chance: Chance) -> TokenTree:
        tokens, log_probs = self.successors.after(context.tokens[-1])
        row = torch.zeros(3, dtype=torch.float64)
        row[tokens] = torch.tensor(log_probs, dtype=torch.float64).softmax(-1)
        guess = {"source": "", "scores": [0.5], "rows": [row]}
        tree = TokenTree.rooted(context)
        return tree.grown(tokens[:1], [0], **guess) if tokens else tree


class Peeks(Planned):
    """Of two drawn trees, the one whose first token is the smaller."""

    def propose(self, context: Context, chance: Chance) -> TokenTree:
        parts = enumerate(self.parts)
        trees = [part.propose(context, chance.inner("part", (at,))) for at, part in parts]
        return min(trees, key=lambda tree: tree.tokens[1])


class PassesOver(FirstPaying):
    """Of two drawn trees the first, but for one that begins with token 0."""

    def propose(self, context: Context, chance: Chance) -> TokenTree:
        parts = enumerate(self.parts)
        first, second = (part.propose(context, chance.inner("part", (at,))) for at, part in parts)
        return second if first.tokens[1] == 0 else first
