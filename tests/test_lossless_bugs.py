"""Bugs that enumeration must see: rules and drafts that are wrong in one place."""

import itertools

import pytest
import torch
from bugs import (
    Beside,
    Changed,
    buggy_rule,
    first_rows_everywhere,
    likeliest_first,
    soft_rows,
    without_the_unlikely,
    without_twins,
)
from fakes import PROMPT, deviation, fixed_model, speculative_distribution, table_model
from torch import Tensor

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.decode import decode
from specdec_lib.core.protocols import Verdict
from specdec_lib.core.tree import TokenTree
from specdec_lib.core.verify import look_up, reject
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft

pytestmark = pytest.mark.usefixtures("unchecked")
P4, Q4 = (0.4, 0.3, 0.2, 0.1), (0.1, 0.2, 0.3, 0.4)
T1 = Sampler(1.0)
PAIR = fixed_model(P4), fixed_model(Q4, "draft")
KINDS = "iid", "distinct", "top"
IID, DISTINCT, TOP = (TreeDraft(PAIR[1], widths=(2,), siblings=kind) for kind in KINDS)
EVEN = fixed_model((0.25,) * 4, "other")
BESIDE = Beside(*(ChainDraft(model, 1, siblings="iid") for model in (PAIR[1], EVEN)))
SOFT = soft_rows(torch.tensor(Q4, dtype=torch.float64).log(), T1)
RULES = {
    "residual drawn from the whole distribution": {"residual": lambda wanted: wanted},
    "ratio 10 % too large": {"ratio": lambda kept: 1.1 * kept},
    "bonus drawn from the draft's distribution": {"bonus": lambda tree, wanted: tree.rows[1]},
    "temperature on one side only": {"warp": Sampler(0.8)},
    "top-k on one side only": {"warp": Sampler(1.0, top_k=2)},
}
DRAFTS = {
    "duplicates merged": Changed(IID, without_twins),
    "drawn guesses of two drafts merged": Changed(BESIDE, without_twins),
    "distribution not renormalised after a sibling": Changed(DISTINCT, first_rows_everywhere),
    "drawn tokens pruned": Changed(IID, without_the_unlikely),
    "siblings tried likeliest first": Changed(DISTINCT, likeliest_first(Q4)),
    "soft distribution for chosen siblings": Changed(TOP, SOFT),
}
BUGS = {name: (IID, buggy_rule(**change)) for name, change in RULES.items()}
BUGS |= {name: (draft, reject) for name, draft in DRAFTS.items()}


@pytest.mark.parametrize("draft,rule", BUGS.values(), ids=BUGS)
def test_enumeration_catches_the_bug(draft, rule):
    assert deviation(PAIR[0], draft, T1, rule, length=2) > 1e-3


def test_drawn_guesses_of_two_drafts_side_by_side_are_exact():
    """The control: what `MergedDraft` refuses is the merging, not the guesses."""
    assert deviation(PAIR[0], BESIDE, T1, length=2) < 1e-12


def test_the_buggy_rule_without_a_bug_is_exact():
    for draft in (IID, DISTINCT):
        assert deviation(PAIR[0], draft, T1, buggy_rule(), length=2) < 1e-12


P3, Q3 = (0.5, 0.3, 0.2), (0.2, 0.5, 0.3)
LIKELIEST = (0.43775, 0.22535, 0.15794, 0.17897), (0.38929, 0.50357, 0.10714)
PUBLISHED = [  # siblings, change, the first token's distribution for P4 and Q4, for P3 and Q3
    ("iid", lambda _: without_twins, (0.37321, 0.32679, 0.2, 0.1), P3),
    ("distinct", lambda _: first_rows_everywhere, (0.35663, 0.34337, 0.2, 0.1), P3),
    ("distinct", likeliest_first, *LIKELIEST),
]


@pytest.mark.parametrize("siblings,change,four,three", PUBLISHED)
def test_wrong_variants_have_their_published_distributions(siblings, change, four, three):
    for wanted, offered, golden in ((P4, Q4, four), (P3, Q3, three)):
        drawn = TreeDraft(fixed_model(offered, "draft"), widths=(2,), siblings=siblings)
        draft = Changed(drawn, change(offered))
        pairs = speculative_distribution(fixed_model(wanted), draft, T1, length=2)
        found = [0.0] * len(golden)
        for (first, _), probability in pairs.items():
            found[first] += probability
        assert found == pytest.approx(golden, abs=5e-6)


class NoiseByRow(Chance):
    """The bug of keying the noise by the call, not by the position."""

    calls = itertools.count()

    def choose(self, logits: Tensor, position: int) -> int:
        return super().choose(logits, next(self.calls))


def test_noise_keyed_by_the_call_is_caught():
    target, draft = table_model(4, 8), table_model(4, 9, name="draft")
    chain, tree = ChainDraft(draft, 1), TreeDraft(draft, widths=(3, 2))
    plain, same, wrong = (
        decode(target, guesser, PROMPT, chance(0, T1), max_new_tokens=40).tokens
        for guesser, chance in ((chain, Chance), (tree, Chance), (tree, NoiseByRow))
    )
    assert same == plain != wrong


def test_a_key_asked_twice_is_an_error():
    def twice(tree: TokenTree, target_logits: Tensor, chance: Chance) -> Verdict:
        chance.coin(0.5, 0, ())
        chance.coin(0.5, 0, ())
        return look_up(tree, target_logits, chance)

    with pytest.raises(ValueError, match="asked twice"):
        speculative_distribution(PAIR[0], IID, T1, twice)
