"""The bugs that enumeration must see, each a rule or a draft that differs from the real one in one
place.
"""

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
from fakes import PROMPT, deviation, distance, fixed_model, speculative_distribution, table_model
from torch import Tensor

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.decode import decode
from specdec_lib.core.protocols import Verdict
from specdec_lib.core.tree import TokenTree
from specdec_lib.core.verify import look_up, reject
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.models.table import joint_distribution

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
    assert deviation(PAIR[0], BESIDE, T1, length=2) < 1e-12


def test_the_buggy_rule_without_a_bug_is_exact():
    for draft in (IID(PAIR[1]), DISTINCT(PAIR[1])):
        assert deviation(PAIR[0], draft, T1, buggy_rule(), length=2) < 1e-12


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
