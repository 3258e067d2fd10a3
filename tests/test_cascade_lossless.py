"""Cascades are lossless, under both rules and any lenience, and the bugs that must show."""

import itertools

import pytest
from fakes import (
    ALPHA,
    HERE,
    PROMPT,
    SAMPLES,
    Scripted,
    deviation,
    distance,
    first_round,
    fixed_model,
    one_round_distribution,
    pairs_p_value,
    speculative_distribution,
    table_model,
)

from specdec_lib.core.chance import Chance, EveryBranch, Sampler, every_outcome
from specdec_lib.core.decode import decode
from specdec_lib.core.verify import reject
from specdec_lib.drafts.cascade import Relay, Reviewed, from_matrix, lenience
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.models.table import joint_distribution

T1 = Sampler(1.0)
SAMPLERS = {"T=0": Sampler(0), "T=1": T1, "top-k": Sampler(1.0, top_k=2)}
LENIENCES = (1.0, 2.0, 5.0)
COPIES = MaxGram(None, 2)
BEYOND = (0,) * 8  # what a reviewer chooses where the target is not asked


def cascades(lenient: float, siblings: str, support: int | None) -> dict:
    """One of each kind over three drafters of three words, copies at the end."""
    named = enumerate(("big", "middle", "small"), 4)
    big, middle, small = (table_model(3, seed, support=support, name=name) for seed, name in named)
    review = {"lenience": lenient, "siblings": siblings}
    chain = ChainDraft(small, 1, siblings=siblings)
    vertical, copied = Reviewed(middle, chain, **review), Relay((chain, COPIES), (1, 2))
    return {
        "vertical": vertical,
        "vertical, all lenient": Reviewed(middle, copied, exempt_max_gram=False, **review),
        "horizontal": Relay((Reviewed(middle, NoDraft(), **review), chain, COPIES), (1, 1, 1)),
        "mixed": from_matrix((middle, small, COPIES), ((1, 1, 1), (0, 1, 0), (0, 0, 1)), **review),
        "three levels": Reviewed(big, Relay((vertical, COPIES), (1, 1)), **review),
        "a comb": Relay((Reviewed(middle, chain, width=2, **review), COPIES), (1, 1)),
    }


KINDS = tuple(cascades(1.0, "iid", None))


@pytest.mark.parametrize("lenient", LENIENCES)
@pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS)
@pytest.mark.parametrize("kind", KINDS)
def test_reject_gives_the_targets_joint_distribution(kind, sampler, lenient, unchecked):
    support = 2 if sampler.temperature else None
    target = table_model(3, 3, support=support, name="target")
    cascade = cascades(lenient, "iid", support)[kind]
    assert deviation(target, cascade, sampler, length=2) < 1e-12


@pytest.mark.parametrize("lenient", LENIENCES)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("mixed", "a comb")])
def test_one_round_is_exact_where_every_word_is_possible(kind, lenient, unchecked):
    target, cascade = table_model(3, 3, name="target"), cascades(lenient, "iid", None)[kind]
    found = one_round_distribution(target, cascade, T1)
    assert distance(found, joint_distribution(target, PROMPT, T1, 3)) < 1e-12


@pytest.mark.parametrize("lenient", LENIENCES)
def test_look_up_emits_every_possible_sequence_of_target_choices(lenient, unchecked):
    target, other = table_model(3, 3, name="target"), table_model(3, 8, name="other")
    tree = TreeDraft(table_model(3, 9, name="draft"), widths=(2, 2))
    drafts = [Reviewed(other, tree, lenience=lenient, width=2)]
    for siblings in ("ranked", "iid"):
        drafts += cascades(lenient, siblings, None).values()
    for choices in itertools.product(range(3), repeat=3):
        chance = Scripted(0, T1, choices=dict(enumerate((*choices, *BEYOND), len(PROMPT))))
        for draft in drafts:
            assert decode(target, draft, PROMPT, chance, max_new_tokens=3).tokens == choices


@pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS)
def test_no_lenience_changes_a_token_and_fewer_rounds_are_played(sampler, unchecked):
    target = table_model(3, 5, name="target")
    for seed in range(3):
        plain = decode(target, NoDraft(), PROMPT, Chance(seed, sampler), max_new_tokens=16)
        for lenient in LENIENCES:
            for kind, draft in cascades(lenient, "ranked", None).items():
                found = decode(target, draft, PROMPT, Chance(seed, sampler), max_new_tokens=16)
                assert found.tokens == plain.tokens, kind
                assert len(found.rounds) < len(plain.rounds), kind


REVIEWER = fixed_model((0.2, 0.5, 0.3), "reviewer")
CHAIN = ChainDraft(fixed_model((0.1, 0.1, 0.8), "draft"), 1, siblings="iid")


@pytest.mark.parametrize("lenient", (1.0, 1.5, 2.0, 3.0))
def test_the_row_of_a_lenient_review_is_the_law_it_samples_from(lenient):
    reviewed = Reviewed(REVIEWER, CHAIN, lenience=lenient, siblings="iid")
    firsts = every_outcome(lambda chance: reviewed.propose(HERE, chance).tokens[1:2], T1)
    row = reviewed.propose(HERE, Chance(0, T1)).rows[1].tolist()
    assert [firsts.get((token,), 0.0) for token in range(3)] == pytest.approx(row, abs=1e-12)
    assert sum(row) == pytest.approx(1, abs=1e-12)


def test_the_reviewers_own_distribution_handed_up_by_a_lenient_review_is_caught(monkeypatch):
    """The naive reading of the paper, and its published counter-example: lenience 3 keeps
    everything, so the tokens follow the draft's distribution.
    """
    target = fixed_model((0.5, 0.3, 0.2), "target")
    reviewed = Reviewed(REVIEWER, CHAIN, lenience=3.0, siblings="iid")
    assert deviation(target, reviewed, T1, length=1) < 1e-12
    monkeypatch.setattr(lenience, "lenient_probs", lambda wanted, token, row, by: wanted)

    def run(chance):
        return first_round(target, reviewed, PROMPT, chance, rule=reject, room=3)[:1]

    naive = every_outcome(run, T1)
    published = [0.40667, 0.06, 0.53333]
    assert [naive[(token,)] for token in range(3)] == pytest.approx(published, abs=5e-6)


@pytest.mark.parametrize("kind", ["vertical", "mixed", "three levels"])
def test_the_naive_lenient_law_is_caught_in_every_nesting(kind, monkeypatch, unchecked):
    target, cascade = table_model(3, 3, support=2, name="target"), cascades(5.0, "iid", 2)[kind]
    monkeypatch.setattr(lenience, "lenient_probs", lambda wanted, token, row, by: wanted)
    assert deviation(target, cascade, T1, length=2) > 1e-3


def test_lenience_under_a_ratio_rule_refuses_a_branching_tree():
    middle, small = table_model(3, 5, name="middle"), table_model(3, 6, name="small")
    tree = TreeDraft(small, widths=(2,), siblings="iid")
    Reviewed(middle, tree, siblings="iid").propose(HERE, Chance(0, T1))
    lenient = Reviewed(middle, tree, lenience=2.0, siblings="iid")
    with pytest.raises(ValueError, match=r"chains only, got a branching tree of 2 .* and 2\.0"):
        lenient.propose(HERE, Chance(0, T1))


class WithoutInner(Chance):
    """The bug of one stream of coins and draws for all levels."""

    def inner(self, part, slots=()):
        return self


def test_the_real_coins_of_two_levels_pass_a_joint_test_and_shared_ones_do_not(unchecked):
    middle, small = fixed_model((0.2, 0.5, 0.3), "middle"), fixed_model((0.3, 0.2, 0.5), "small")
    cascade = Reviewed(middle, ChainDraft(small, 1, siblings="iid"), siblings="iid")
    asked = cascade, (0.5, 0.3, 0.2)
    assert pairs_p_value(Chance, *asked, length=100) > ALPHA
    assert pairs_p_value(WithoutInner, *asked, length=100, samples=SAMPLES // 5) < ALPHA


def test_enumeration_catches_levels_that_share_their_keys(monkeypatch):
    """The same bug where every branch is visited: two reviews of one place ask for one key."""
    monkeypatch.setattr(EveryBranch, "inner", lambda self, part, slots=(): self)
    target, cascade = table_model(3, 3, name="target"), cascades(1.0, "iid", None)["vertical"]
    with pytest.raises(ValueError, match="asked twice"):
        speculative_distribution(target, cascade, T1, length=2)


def test_the_children_of_a_comb_follow_their_rows():
    chain = ChainDraft(table_model(3, 6, name="small"), 1, siblings="iid")
    reviewer = table_model(3, 5, name="middle")
    comb = Reviewed(reviewer, chain, lenience=2.0, siblings="iid", width=2)
    found = every_outcome(lambda chance: comb.propose(HERE, chance).tokens[1:3], T1)
    one, two = comb.propose(HERE, Chance(1, T1)).rows[1:3]
    pairs = itertools.product(range(3), repeat=2)
    assert distance(found, {(a, b): float(one[a] * two[b]) for a, b in pairs}) < 1e-12
