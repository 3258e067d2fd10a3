"""Losslessness by enumeration: every branch of the real loop on a tiny vocabulary."""

import itertools

import pytest
from cases import (
    ONE_ROUND,
    RANKED,
    REJECTED,
    SCOUTS,
    WHOLE,
    models,
    staged_chain,
    whole_deviation,
)
from fakes import (
    HERE,
    PROMPT,
    SAMPLERS,
    T1,
    Scripted,
    deviation,
    distance,
    fixed_model,
    one_round_distribution,
)

from specdec_lib.core.chance import Chance, every_outcome
from specdec_lib.core.decode import decode
from specdec_lib.drafts.cascade import Reviewed
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.trees.growing import ChainDraft
from specdec_lib.models.table import joint_distribution

pytestmark = pytest.mark.usefixtures("unchecked")
every_sampler = pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS)
BEYOND = (0,) * 12  # what a draft's reviewer chooses where the target is not asked


@every_sampler
@pytest.mark.parametrize("case", REJECTED.values(), ids=REJECTED)
def test_reject_gives_the_targets_own_joint_distribution(case, sampler):
    model = case.models(sampler)
    found = deviation(model("target"), case.make(model), sampler, length=case.length)
    assert found < 1e-12


@pytest.mark.parametrize("case", ONE_ROUND.values(), ids=ONE_ROUND)
def test_one_round_is_exact_where_every_word_is_possible(case):
    model = models(case.words)
    found = one_round_distribution(model("target"), case.make(model), T1)
    assert distance(found, joint_distribution(model("target"), PROMPT, T1, 3)) < 1e-12


@every_sampler
@pytest.mark.parametrize("name", WHOLE)
def test_rounds_enumerated_together_are_exact_whatever_was_learnt(name, sampler):
    far, guessed = whole_deviation(WHOLE[name], sampler)
    assert far < 1e-12 and guessed
    if name.startswith(("planned", "off-switch, ")) and sampler.temperature:
        assert guessed == {"draft", "scout"}, "outcomes really decide"


LOOKED_UP = {name: (case.words, case.make) for name, case in (REJECTED | WHOLE).items()}
LOOKED_UP |= {f"ranked: {name}": (3, make) for name, make in RANKED.items()}


@pytest.mark.parametrize("words, make", LOOKED_UP.values(), ids=LOOKED_UP)
def test_look_up_emits_every_possible_sequence_of_target_choices(words, make):
    model = models(words)
    target, draft = model("target"), make(model)
    for choices in itertools.product(range(words), repeat=3):
        chance = Scripted(0, T1, choices=dict(enumerate((*choices, *BEYOND), len(PROMPT))))
        assert decode(target, draft, PROMPT, chance, max_new_tokens=3).tokens == choices


@every_sampler
@pytest.mark.parametrize("make", RANKED.values(), ids=RANKED)
def test_under_one_seed_look_up_writes_the_targets_tokens_in_fewer_rounds(make, sampler):
    model = models(3)
    target, draft = model("target"), make(model)
    for seed in range(4):
        plain, found = (
            decode(target, guesser, PROMPT, Chance(seed, sampler), max_new_tokens=16)
            for guesser in (NoDraft(), draft)
        )
        assert found.tokens == plain.tokens and len(found.rounds) < len(plain.rounds)


def test_the_chain_that_the_draft_decodes_has_the_drafts_own_distribution():
    model = models(3, 2)
    staged = staged_chain(SCOUTS["chain"], 3)(model)
    found = every_outcome(lambda chance: staged.propose(HERE, chance).tokens[1:], T1)
    assert distance(found, joint_distribution(model("draft"), PROMPT, T1, 3)) < 1e-12


@pytest.mark.parametrize("lenient", (1.0, 1.5, 2.0, 3.0))
def test_the_row_of_a_lenient_review_is_the_distribution_it_samples_from(lenient):
    reviewer, draft = fixed_model((0.2, 0.5, 0.3), "reviewer"), fixed_model((0.1, 0.1, 0.8), "d")
    chain = ChainDraft(draft, 1, siblings="iid")
    reviewed = Reviewed(reviewer, chain, lenience=lenient, siblings="iid")
    firsts = every_outcome(lambda chance: reviewed.propose(HERE, chance).tokens[1:2], T1)
    row = reviewed.propose(HERE, Chance(0, T1)).rows[1].tolist()
    assert [firsts.get((token,), 0.0) for token in range(3)] == pytest.approx(row, abs=1e-12)
    assert sum(row) == pytest.approx(1, abs=1e-12)
