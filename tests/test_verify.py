"""Golden values of both rules, from exact enumeration, and the G-test of the real keyed coins."""

import functools
import math

import pytest
import torch
from fakes import ALPHA, SAMPLES, assert_refused, fixed_model, pairs_p_value
from scipy import stats

from specdec_lib.core.chance import Chance, Sampler, every_outcome
from specdec_lib.core.decode import rounds
from specdec_lib.core.tree import ROOT, TokenTree
from specdec_lib.core.verify import reject
from specdec_lib.drafts.cascade import Reviewed
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.measure.rule_bench.rules import traverse

T1 = Sampler(1.0)
PAIRS = {
    "three": ((0.5, 0.3, 0.2), (0.2, 0.5, 0.3)),
    "four": ((0.4, 0.3, 0.2, 0.1), (0.1, 0.2, 0.3, 0.4)),
}
KINDS = ("iid", "distinct", "top")
ACCEPTANCE = {  # of a node's children by `reject`, of each kind, by pair and width
    ("three", 1): (0.7, 0.7, 0.3),
    ("three", 2): (0.76, 0.808571, 0.5),
    ("three", 3): (0.808, 1, 1),
    ("four", 1): (0.6, 0.6, 0.1),
    ("four", 2): (0.72, 0.764286, 0.3),
    ("four", 3): (0.768, 0.840298, 0.6),
}
OPTIMAL = {  # the most that any lossless rule accepts of "iid" and "distinct" draws
    ("three", 1): (0.7, 0.7),
    ("three", 2): (0.86, 0.985714),
    ("three", 3): (0.988, 1),
    ("four", 1): (0.6, 0.6),
    ("four", 2): (0.79, 0.834524),
    ("four", 3): (0.871, 1),
}
TOKENS_PER_ROUND = {  # of both pairs, by `reject` and by `traverse`
    ("iid", (1, 1)): ((2.19, 1.96), (2.25, 2.03)),
    ("iid", (1, 1, 1)): ((2.533, 2.176), (2.72, 2.346)),
    ("iid", (2, 1)): ((2.292, 2.152), (2.352, 2.222)),
    ("distinct", (2, 1)): ((2.374571, 2.222857), (2.434571, 2.301429)),
    ("iid", (2, 2)): ((2.3376,), (2.4456,)),
    ("distinct", (2, 2)): ((2.462359,), (2.558073,)),
}


def expected_tokens(pair: str, draft_of, rule=reject) -> float:
    """E[emitted] of one round, every branch visited."""
    target, draft = map(fixed_model, PAIRS[pair], ("target", "draft"))
    guesser = draft_of(draft)

    def emitted(chance):
        return next(rounds(target, guesser, (0,), chance, max_new_tokens=9, rule=rule))[0].emitted

    outcomes = every_outcome(emitted, T1).items()
    return sum(len(tokens) * probability for tokens, probability in outcomes)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pair,width", ACCEPTANCE)
def test_acceptance_of_one_node_is_golden(pair, width, kind, unchecked):
    found = expected_tokens(pair, lambda draft: TreeDraft(draft, widths=(width,), siblings=kind))
    assert found - 1 == pytest.approx(ACCEPTANCE[pair, width][KINDS.index(kind)], abs=1e-6)


@pytest.mark.parametrize("kind,widths", TOKENS_PER_ROUND)
def test_expected_tokens_per_round_are_golden_and_more_by_traverse(kind, widths, unchecked):
    tree_of = functools.partial(TreeDraft, widths=widths, siblings=kind)
    of_pairs = zip(*TOKENS_PER_ROUND[kind, widths], strict=True)
    for pair, goldens in zip(PAIRS, of_pairs, strict=False):
        found = [expected_tokens(pair, tree_of, rule) for rule in (reject, traverse)]
        assert found == pytest.approx(goldens, abs=1e-6) and found[1] > found[0] + 0.01


MATCH_TRIALS = 6_000


def match_rate(pair: str, shift: int) -> float:
    """How often target and draft choose alike; a shift is the bug of noise that is not shared."""
    wanted, offered = (torch.tensor(one, dtype=torch.float64).log() for one in PAIRS[pair])
    chances = (Chance(seed, T1) for seed in range(MATCH_TRIALS))
    same = (chance.choose(wanted, 1) == chance.choose(offered, 1 + shift) for chance in chances)
    return sum(same) / MATCH_TRIALS


@pytest.mark.parametrize("pair,golden", [("three", 43 / 62), ("four", 19 / 35)])
def test_shared_noise_match_probability_is_golden(pair, golden, unchecked):
    """A bound of 4.5 standard errors (α = 7e-6) finds a rate .04 off with power over .95."""
    bound = 4.5 * math.sqrt(golden * (1 - golden) / MATCH_TRIALS)
    assert stats.norm.sf((bound - 0.04) / math.sqrt(0.25 / MATCH_TRIALS)) > 0.95
    assert abs(match_rate(pair, shift=0) - golden) < bound
    assert abs(match_rate(pair, shift=1) - golden) > bound


def one_guess(row) -> TokenTree:
    """A tree of token 1, drawn from this row."""
    rows = [torch.as_tensor(row)]
    return TokenTree(0, (0,)).grown([1], [ROOT], source="draft", scores=[1.0], rows=rows)


def test_a_token_of_probability_zero_is_never_accepted(monkeypatch):
    monkeypatch.setattr(Chance, "uniform", lambda *_: 0.0)
    logits = torch.tensor([[0.0, -math.inf]] * 2)
    assert reject(one_guess([0.0, 1.0]), logits, Chance(0, T1)).path == ()


def test_a_residual_without_mass_falls_back_to_the_target(monkeypatch):
    monkeypatch.setattr(Chance, "coin", lambda *_: False)
    distribution, asked = torch.tensor([0.5, 0.5, 0.0]), []
    monkeypatch.setattr(Chance, "draw", lambda _, use, probs, *at: asked.append(probs) or 0)
    reject(one_guess(distribution), distribution.log().expand(2, 3), Chance(0, T1))
    assert torch.allclose(asked[0], distribution)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    "call, said",
    [
        *(
            (
                lambda row=row: reject(one_guess(row), torch.zeros(2, 3), Chance(0, T1)),
                "over 3 tokens",
            )
            for row in ([0.5, 0.0, 0.5], [0.5, 0.5], [math.nan] * 3)
        )
    ],
)
def test_a_row_that_cannot_be_the_distribution_of_its_token_is_refused(call, said):
    assert_refused(call, said)


class BonusLikeSibling(Chance):
    """The bug of drawing the correction or bonus with the uniform of a sibling."""

    def draw(self, use, distribution, root_position, slots):
        return super().draw("sibling", distribution, root_position, slots or (0,))


class WithoutInner(Chance):
    """The bug of one stream of coins and draws for all levels."""

    def inner(self, part, slots=()):
        return self


WANTED, OFFERED = PAIRS["three"]
SMALL, DRAFT = fixed_model((0.3, 0.2, 0.5), "small"), fixed_model(OFFERED, "draft")
REVIEW = Reviewed(DRAFT, ChainDraft(SMALL, 1, siblings="iid"), siblings="iid")
COINS = {
    "chain of 2": (ChainDraft(DRAFT, 2, siblings="iid"), BonusLikeSibling, 20),
    "tree": (TreeDraft(DRAFT, widths=(2, 1), siblings="distinct"), BonusLikeSibling, 20),
    "review": (REVIEW, WithoutInner, 100),
}


@pytest.mark.parametrize("draft, wrong, length", COINS.values(), ids=COINS)
def test_real_coins_pass_a_joint_test_and_shared_ones_do_not(draft, wrong, length, unchecked):
    power = stats.ncx2.sf(stats.chi2.isf(ALPHA, 8), 8, 4 * 0.05**2 * SAMPLES)
    assert power > 0.95, "to find a total-variation distance of .05"
    assert pairs_p_value(Chance, draft, WANTED, length=length) > ALPHA
    assert pairs_p_value(wrong, draft, WANTED, length=length, samples=SAMPLES // 5) < ALPHA
