"""The bugs that enumeration must see, each a rule or a draft that differs from the real one in one
place.
"""

import itertools

import pytest
import torch
from fakes import PROMPT, distance, fixed_model, speculative_distribution, table_model
from torch import Tensor

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import decode
from specdec_lib.core.protocols import Verdict
from specdec_lib.core.tree import ROOT, TokenTree
from specdec_lib.core.verify import look_up, reject
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.models.table import joint_distribution


def buggy_rule(*, residual=None, ratio=None, bonus=None, warp=None):
    """`reject` written out again with one piece replaced."""

    def rule(tree: TokenTree, target_logits: Tensor, chance: Chance) -> Verdict:
        path, node = [], ROOT
        while True:
            wanted = (warp or chance.sampler).probs(target_logits[node])
            for child in tree.children(node):
                token, offered = tree.tokens[child], tree.rows[child]
                kept = float(wanted[token] / offered[token])
                if chance.coin(
                    ratio(kept) if ratio else kept, tree.root_position, tree.slots(child)
                ):
                    path.append(child)
                    node = child
                    break
                left = (wanted - offered).clamp(min=0)
                wanted = (
                    residual(wanted)
                    if residual
                    else left / left.sum()
                    if left.sum() > 0
                    else wanted
                )
            else:
                distribution = bonus(tree, wanted) if bonus and path else wanted
                return Verdict(
                    tuple(path),
                    chance.draw("emit", distribution, tree.root_position, tree.slots(node)),
                )

    return rule


class Changed:
    """A draft whose trees are changed after they were drawn."""

    def __init__(self, draft, change):
        self.draft, self.change = draft, change

    def propose(self, context: Context, chance: Chance) -> TokenTree:
        return self.change(self.draft.propose(context, chance))


def rebuilt(tree: TokenTree, keep, rows=None) -> TokenTree:
    """The kept nodes with the given rows."""
    nodes = [
        node for node in range(len(tree)) if all(keep(tree, at) for at in (node, *tree.path(node)))
    ]
    number = {node: new for new, node in enumerate(nodes)}
    rows = tree.rows if rows is None else rows
    return TokenTree(
        tree.root_position,
        tuple(tree.tokens[node] for node in nodes),
        (-1, *(number[tree.parents[node]] for node in nodes[1:])),
        tuple(tree.sources[node] for node in nodes),
        tuple(tree.scores[node] for node in nodes),
        tuple(rows[node] for node in nodes),
    )


def without_twins(tree: TokenTree) -> TokenTree:
    """I.i.d. duplicates merged: the repeated trial is lost."""
    return rebuilt(
        tree,
        lambda tree, node: (
            node == ROOT or tree.child(tree.parents[node], tree.tokens[node]) == node
        ),
    )


def without_the_unlikely(tree: TokenTree) -> TokenTree:
    """Drawn tokens dropped for their low probability."""
    return rebuilt(
        tree, lambda tree, node: node == ROOT or float(tree.rows[node][tree.tokens[node]]) > 0.2
    )


def first_rows_everywhere(tree: TokenTree) -> TokenTree:
    """The distribution not renormalised after a sibling was removed."""
    rows = tuple(
        None if node == ROOT else tree.rows[tree.children(tree.parents[node])[0]]
        for node in range(len(tree))
    )
    return rebuilt(tree, lambda tree, node: True, rows)


def soft_rows(distributions, sampler):
    """Soft probabilities reported for tokens that were chosen, not drawn."""

    def change(tree: TokenTree) -> TokenTree:
        rows = tuple(
            None if node == ROOT else sampler.probs(distributions) for node in range(len(tree))
        )
        return rebuilt(tree, lambda tree, node: True, rows)

    return change


def likeliest_first(distribution):
    """Siblings without replacement put in order of their probability, as if they had been drawn in
    it.
    """
    distribution = torch.tensor(distribution, dtype=torch.float64)

    def change(tree: TokenTree) -> TokenTree:
        tokens = sorted(tree.tokens[1:], key=lambda token: -distribution[token])
        rows = [distribution]
        for token in tokens[:-1]:
            left = rows[-1].clone()
            left[token] = 0
            rows.append(left / left.sum())
        return TokenTree(tree.root_position, tree.tokens[:1]).grown(
            tokens, [ROOT] * len(tokens), source="draft", scores=tree.scores[1:], rows=rows
        )

    return change


class Beside:
    """Drawn guesses of two drafts under one root, each with the distribution it was drawn from."""

    def __init__(self, one, other):
        self.parts = one, other

    def propose(self, context: Context, chance: Chance) -> TokenTree:
        tree = TokenTree.rooted(context)
        for number, part in enumerate(self.parts):
            drawn = part.propose(context, chance.inner("part", (number,)))
            tree = tree.grown(
                drawn.tokens[1:],
                [ROOT] * drawn.guesses,
                source="draft",
                scores=drawn.scores[1:],
                rows=drawn.rows[1:],
            )
        return tree


P4, Q4 = (0.4, 0.3, 0.2, 0.1), (0.1, 0.2, 0.3, 0.4)
T1 = Sampler(1.0)
IID, DISTINCT, TOP = (
    lambda model, kind=kind: TreeDraft(model, widths=(2,), siblings=kind)
    for kind in ("iid", "distinct", "top")
)
PAIR = fixed_model(P4), fixed_model(Q4, "draft")
BESIDE = Beside(
    *(
        ChainDraft(fixed_model(distribution, name), 1, siblings="iid")
        for distribution, name in ((Q4, "draft"), ((0.25,) * 4, "other"))
    )
)
BUGS = {
    "residual drawn from the whole distribution": (
        IID(PAIR[1]),
        buggy_rule(residual=lambda wanted: wanted),
    ),
    "ratio 10 % too large": (IID(PAIR[1]), buggy_rule(ratio=lambda kept: 1.1 * kept)),
    "bonus drawn from the draft's distribution": (
        IID(PAIR[1]),
        buggy_rule(bonus=lambda tree, wanted: tree.rows[1]),
    ),
    "duplicates merged": (Changed(IID(PAIR[1]), without_twins), reject),
    "drawn guesses of two drafts merged": (Changed(BESIDE, without_twins), reject),
    "distribution not renormalised after a sibling": (
        Changed(DISTINCT(PAIR[1]), first_rows_everywhere),
        reject,
    ),
    "drawn tokens pruned": (Changed(IID(PAIR[1]), without_the_unlikely), reject),
    "siblings tried likeliest first": (Changed(DISTINCT(PAIR[1]), likeliest_first(Q4)), reject),
    "soft distribution for chosen siblings": (
        Changed(TOP(PAIR[1]), soft_rows(torch.tensor(Q4, dtype=torch.float64).log(), T1)),
        reject,
    ),
    "temperature on one side only": (IID(PAIR[1]), buggy_rule(warp=Sampler(0.8))),
    "top-k on one side only": (IID(PAIR[1]), buggy_rule(warp=Sampler(1.0, top_k=2))),
}


@pytest.mark.parametrize("draft,rule", BUGS.values(), ids=BUGS)
def test_enumeration_catches_the_bug(draft, rule):
    target = PAIR[0]
    distribution = speculative_distribution(target, draft, T1, rule, length=2)
    assert distance(distribution, joint_distribution(target, PROMPT, T1, 2)) > 1e-3


def test_drawn_guesses_of_two_drafts_side_by_side_are_exact():
    """The control: what `MergedDraft` refuses is the merging, not the guesses."""
    assert (
        distance(
            speculative_distribution(PAIR[0], BESIDE, T1, length=2),
            joint_distribution(PAIR[0], PROMPT, T1, 2),
        )
        < 1e-12
    )


def test_the_buggy_rule_without_a_bug_is_exact():
    for draft in (IID(PAIR[1]), DISTINCT(PAIR[1])):
        assert (
            distance(
                speculative_distribution(PAIR[0], draft, T1, buggy_rule(), length=2),
                joint_distribution(PAIR[0], PROMPT, T1, 2),
            )
            < 1e-12
        )


@pytest.mark.parametrize(
    "bug,four,three",
    [
        ("duplicates merged", (0.37321, 0.32679, 0.2, 0.1), (0.5, 0.3, 0.2)),
        (
            "distribution not renormalised after a sibling",
            (0.35663, 0.34337, 0.2, 0.1),
            (0.5, 0.3, 0.2),
        ),
        (
            "siblings tried likeliest first",
            (0.43775, 0.22535, 0.15794, 0.17897),
            (0.38929, 0.50357, 0.10714),
        ),
    ],
)
def test_wrong_variants_have_their_published_distributions(bug, four, three):
    for target_probs, draft_probs, distribution in (
        (P4, Q4, four),
        ((0.5, 0.3, 0.2), (0.2, 0.5, 0.3), three),
    ):
        draft = fixed_model(draft_probs, "draft")
        variants = {
            "duplicates merged": (Changed(IID(draft), without_twins), reject),
            "distribution not renormalised after a sibling": (
                Changed(DISTINCT(draft), first_rows_everywhere),
                reject,
            ),
            "siblings tried likeliest first": (
                Changed(DISTINCT(draft), likeliest_first(draft_probs)),
                reject,
            ),
        }
        guesser, rule = variants[bug]
        pairs = speculative_distribution(fixed_model(target_probs), guesser, T1, rule, length=2)
        found = [
            sum(probability for tokens, probability in pairs.items() if tokens[0] == token)
            for token in range(len(distribution))
        ]
        assert found == pytest.approx(distribution, abs=5e-6)


class NoiseByRow(Chance):
    """The bug of keying the noise by the call, not by the position."""

    calls = itertools.count()

    def choose(self, logits: Tensor, position: int) -> int:
        return super().choose(logits, next(self.calls))


def test_noise_keyed_by_the_call_is_caught():
    target, draft = table_model(4, 8), table_model(4, 9, name="draft")
    plain = decode(target, ChainDraft(draft, 1), PROMPT, Chance(0, T1), max_new_tokens=40).tokens
    same = decode(
        target, TreeDraft(draft, widths=(3, 2)), PROMPT, Chance(0, T1), max_new_tokens=40
    ).tokens
    wrong = decode(
        target, TreeDraft(draft, widths=(3, 2)), PROMPT, NoiseByRow(0, T1), max_new_tokens=40
    ).tokens
    assert same == plain
    assert wrong != plain


def test_a_key_asked_twice_is_an_error():
    def twice(tree: TokenTree, target_logits: Tensor, chance: Chance) -> Verdict:
        chance.coin(0.5, 0, ())
        chance.coin(0.5, 0, ())
        return look_up(tree, target_logits, chance)

    with pytest.raises(ValueError, match="asked twice"):
        speculative_distribution(PAIR[0], IID(PAIR[1]), T1, twice)
