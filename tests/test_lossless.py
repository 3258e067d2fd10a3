"""Losslessness by enumeration: every branch of the real loop on a tiny vocabulary."""

import itertools
import math

import numpy as np
import pytest
from fakes import (
    HERE,
    PROMPT,
    SAMPLERS,
    T1,
    Scripted,
    deviation,
    distance,
    one_round_distribution,
    speculative_distribution,
    table_model,
)

from specdec_lib.core.chance import Chance, Sampler, every_outcome
from specdec_lib.core.decode import decode
from specdec_lib.core.tree import MatchTable, Shape
from specdec_lib.core.verify import reject
from specdec_lib.drafts.combined import FirstDraft, MergedDraft, NoDraft
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.ngram import NgramDraft
from specdec_lib.drafts.staged import StagedChain, StagedTree
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.models.katz.model import Katz
from specdec_lib.models.table import TableModel, joint_distribution

pytestmark = pytest.mark.usefixtures("unchecked")
ODD = Shape((-1, 0, 1, 0))  # not numbered level by level
BY_GAP = MatchTable((0.6, 0.2), "by gap", (1.0,), ((0.4, 0.3), (0.9, 0.05)))


def chain(length, **options):
    return lambda model: ChainDraft(model, length, **options)


def tree(**options):
    return lambda model: TreeDraft(model, **options)


def copy_else_chain(model):
    return FirstDraft((MaxGram(None, 2), ChainDraft(model, 2, siblings="iid")))


DRAFTS = {  # vocabulary, how many tokens are possible, draft
    "chain": (4, None, chain(2, siblings="iid")),
    "with replacement": (4, 3, tree(widths=(2, 1), siblings="iid")),
    "without replacement": (4, 3, tree(widths=(2, 1), siblings="distinct")),
    "point mass": (4, None, tree(widths=(2, 1), siblings="top")),
    "best slots with replacement": (3, None, tree(budget=3, depth=2, siblings="iid")),
    "best slots without replacement": (3, None, tree(budget=3, depth=2, siblings="distinct")),
    "best-first point mass": (4, None, tree(budget=3, depth=2, siblings="top")),
    "2×2 with replacement": (3, 2, tree(widths=(2, 2), siblings="iid")),
    "2×2 without replacement": (4, 3, tree(widths=(2, 2), siblings="distinct")),
    "fixed shape with replacement": (3, 2, tree(shape=ODD, siblings="iid")),
    "fixed shape without replacement": (4, 3, tree(shape=ODD, siblings="distinct")),
    "fixed shape point mass": (4, None, tree(shape=ODD, siblings="top")),
    "a copy, else a chain": (3, None, copy_else_chain),
}


@pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS)
@pytest.mark.parametrize("case", DRAFTS.values(), ids=DRAFTS)
def test_reject_gives_the_targets_own_joint_distribution(case, sampler):
    vocabulary, support, make = case
    target = table_model(vocabulary, 1, support=support)
    draft = make(table_model(vocabulary, 2, support=support, name="draft"))
    wanted = joint_distribution(target, PROMPT, sampler, 3)
    assert math.isclose(sum(wanted.values()), 1, abs_tol=1e-12)
    assert distance(speculative_distribution(target, draft, sampler), wanted) < 1e-12


@pytest.mark.parametrize("kind", ["iid", "distinct", "top"])
def test_two_rounds_enumerated_whole_equal_rounds_composed(kind):
    target, draft = table_model(3, 3), table_model(3, 4, name="draft")
    guesser = ChainDraft(draft, 1, siblings=kind)

    def run(chance):
        return decode(target, guesser, PROMPT, chance, max_new_tokens=3, rule=reject).tokens

    whole = every_outcome(run, T1)
    assert distance(whole, speculative_distribution(target, guesser, T1)) < 1e-12
    assert distance(whole, joint_distribution(target, PROMPT, T1, 3)) < 1e-12


def test_look_up_emits_every_possible_sequence_of_target_choices():
    target, draft = table_model(3, 5), table_model(3, 6, name="draft")
    drafts = (
        TreeDraft(draft, widths=(2, 2), siblings="top"),
        ChainDraft(draft, 3, siblings="iid"),
        TreeDraft(draft, budget=4, depth=3),
        TreeDraft(draft, shape=ODD, siblings="distinct"),
        TreeDraft(draft, budget=4, depth=3, match=BY_GAP),
        MergedDraft((MaxGram(None, 3), TreeDraft(draft, budget=3, depth=2, match=BY_GAP))),
        FirstDraft((MaxGram(None, 3), TreeDraft(draft, budget=3, depth=2, match=BY_GAP))),
    )
    for choices in itertools.product(range(3), repeat=4):
        chance = Scripted(0, Sampler(1.0), choices=dict(enumerate(choices, len(PROMPT))))
        for guesser in drafts:
            assert decode(target, guesser, PROMPT, chance, max_new_tokens=4).tokens == choices


@pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS)
def test_no_match_table_and_no_merging_changes_a_token(sampler):
    target, draft = table_model(5, 5), table_model(5, 5, name="draft")
    table = Katz.fit([np.random.default_rng(0).integers(5, size=300)], 5)
    by_gap = TreeDraft(draft, budget=6, depth=3, match=BY_GAP)
    by_table = NgramDraft(table, budget=6, depth=3, match=BY_GAP, counted_at=1.5)
    merged = MergedDraft((MaxGram(None, 3), by_table, by_gap))
    nested = MergedDraft((MergedDraft((by_gap, by_table)),))
    for seed in range(4):
        plain, *speculated = (
            decode(target, guesser, PROMPT, Chance(seed, sampler), max_new_tokens=16)
            for guesser in (NoDraft(), by_gap, by_table, merged, nested)
        )
        for found in speculated:
            assert found.tokens == plain.tokens and len(found.rounds) < len(plain.rounds)


def words(support: int | None) -> tuple[TableModel, TableModel, TableModel]:
    """Three models of three words, of which so many are possible."""
    named = enumerate(("target", "draft", "scout"), 3)
    return tuple(table_model(3, seed, support=support, name=name) for seed, name in named)


ONE_STAGE = "chain", "tree without replacement", "point mass"


def staged_chain(kind: str, support: int | None) -> tuple[TableModel, StagedChain]:
    target, draft, scout = words(support)
    last = ChainDraft(table_model(3, 6, support=support, name="last"), 1, siblings="iid")
    scouts = {
        "chain": ChainDraft(scout, 1, siblings="iid"),
        "tree without replacement": TreeDraft(scout, widths=(2,), siblings="distinct"),
        "point mass": TreeDraft(scout, widths=(2,), siblings="top"),
        "staged chain": StagedChain(scout, last, 1, siblings="iid"),
    }
    return target, StagedChain(draft, scouts[kind], 2, siblings="iid")


@pytest.mark.parametrize("kind", [*ONE_STAGE, "staged chain"])
@pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS)
def test_reject_over_a_staged_chain_gives_the_targets_own_joint_distribution(kind, sampler):
    target, staged = staged_chain(kind, support=2 if sampler == T1 else None)
    assert deviation(target, staged, sampler) < 1e-12


@pytest.mark.parametrize("kind", ONE_STAGE)
def test_one_round_over_a_staged_chain_is_exact_where_every_word_is_possible(kind):
    target, staged = staged_chain(kind, support=None)
    found = one_round_distribution(target, staged, T1)
    assert distance(found, joint_distribution(target, PROMPT, T1, 3)) < 1e-12


@pytest.mark.parametrize("sampler", [Sampler(0), T1], ids=["T=0", "T=1"])
@pytest.mark.parametrize("siblings", ["iid", "distinct", "top"])
def test_reject_over_a_staged_tree_gives_the_targets_own_joint_distribution(siblings, sampler):
    for distribution_of, support, shape in (
        (speculative_distribution, 2, {"widths": (2, 1)}),
        (one_round_distribution, None, {"budget": 3, "depth": 2}),
    ):
        target, draft, scout = words(support)
        guesser = TreeDraft(draft, siblings=siblings, **shape)
        staged = StagedTree(guesser, TreeDraft(scout, widths=(2, 1), siblings="top"))
        wanted = joint_distribution(target, PROMPT, sampler, 3)
        assert distance(distribution_of(target, staged, sampler), wanted) < 1e-12


def test_the_chain_that_the_draft_decodes_has_the_drafts_own_distribution():
    _, draft, scout = words(support=2)
    staged = StagedChain(draft, ChainDraft(scout, 2, siblings="iid"), 3, siblings="iid")
    found = every_outcome(lambda chance: staged.propose(HERE, chance).tokens[1:], T1)
    assert distance(found, joint_distribution(draft, PROMPT, T1, 3)) < 1e-12


def test_two_rounds_of_a_staged_chain_enumerated_whole_ask_no_key_twice():
    target, draft, scout = words(support=2)
    staged = StagedChain(draft, ChainDraft(scout, 1, siblings="iid"), 2, siblings="iid")

    def run(chance):
        return decode(target, staged, PROMPT, chance, max_new_tokens=2, rule=reject).tokens

    assert distance(every_outcome(run, T1), joint_distribution(target, PROMPT, T1, 2)) < 1e-12
