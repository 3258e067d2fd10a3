"""Losslessness by enumeration: every branch of the real loop on a tiny vocabulary, and the bugs
that it must catch.
"""

import itertools
import math

import numpy as np
import pytest
from fakes import (
    PROMPT,
    Scripted,
    deviation,
    distance,
    first_round,
    speculative_distribution,
    table_model,
)

from specdec_lib.core.chance import Chance, Sampler, every_outcome
from specdec_lib.core.context import Context
from specdec_lib.core.decode import decode
from specdec_lib.core.protocols import Draft
from specdec_lib.core.tree import MatchTable, Shape
from specdec_lib.core.verify import reject
from specdec_lib.drafts.combined import FirstDraft, MergedDraft, NoDraft
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.ngram import NgramDraft
from specdec_lib.drafts.staged import StagedChain, StagedTree
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.models.katz.model import Katz
from specdec_lib.models.table import TableModel, joint_distribution

T1 = Sampler(1.0)
SAMPLERS = {
    "T=0": Sampler(0),
    "T=1": Sampler(1.0),
    "top-k": Sampler(1.0, top_k=2),
    "top-p": Sampler(0.7, top_p=0.8),
}
ODD = Shape((-1, 0, 1, 0))  # not numbered level by level
BY_GAP = MatchTable((0.6, 0.2), "by gap", (1.0,), ((0.4, 0.3), (0.9, 0.05)))
DRAFTS = {
    "chain": (4, None, lambda model: ChainDraft(model, 2, siblings="iid")),
    "with replacement": (4, 3, lambda model: TreeDraft(model, widths=(2, 1), siblings="iid")),
    "without replacement": (
        4,
        3,
        lambda model: TreeDraft(model, widths=(2, 1), siblings="distinct"),
    ),
    "point mass": (4, None, lambda model: TreeDraft(model, widths=(2, 1), siblings="top")),
    "best slots with replacement": (
        3,
        None,
        lambda model: TreeDraft(model, budget=3, depth=2, siblings="iid"),
    ),
    "best slots without replacement": (
        3,
        None,
        lambda model: TreeDraft(model, budget=3, depth=2, siblings="distinct"),
    ),
    "best-first point mass": (
        4,
        None,
        lambda model: TreeDraft(model, budget=3, depth=2, siblings="top"),
    ),
    "2×2 with replacement": (3, 2, lambda model: TreeDraft(model, widths=(2, 2), siblings="iid")),
    "2×2 without replacement": (
        4,
        3,
        lambda model: TreeDraft(model, widths=(2, 2), siblings="distinct"),
    ),
    "fixed shape with replacement": (
        3,
        2,
        lambda model: TreeDraft(model, shape=ODD, siblings="iid"),
    ),
    "fixed shape without replacement": (
        4,
        3,
        lambda model: TreeDraft(model, shape=ODD, siblings="distinct"),
    ),
    "a copy, else a chain": (
        3,
        None,
        lambda model: FirstDraft((MaxGram(None, 2), ChainDraft(model, 2, siblings="iid"))),
    ),
    "fixed shape point mass": (4, None, lambda model: TreeDraft(model, shape=ODD, siblings="top")),
}


@pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS)
@pytest.mark.parametrize("case", DRAFTS.values(), ids=DRAFTS)
def test_reject_gives_the_targets_own_joint_distribution(case, sampler, unchecked):
    vocabulary, support, make = case
    target, draft = (
        table_model(vocabulary, 1, support=support),
        table_model(vocabulary, 2, support=support, name="draft"),
    )
    wanted = joint_distribution(target, PROMPT, sampler, 3)
    assert math.isclose(sum(wanted.values()), 1, abs_tol=1e-12)
    assert distance(speculative_distribution(target, make(draft), sampler), wanted) < 1e-12


@pytest.mark.parametrize("kind", ["iid", "distinct", "top"])
def test_two_rounds_enumerated_whole_equal_rounds_composed(kind):
    target, draft = table_model(3, 3), table_model(3, 4, name="draft")
    chain, sampler = ChainDraft(draft, 1, siblings=kind), Sampler(1.0)
    whole = every_outcome(
        lambda chance: decode(target, chain, PROMPT, chance, max_new_tokens=3, rule=reject).tokens,
        sampler,
    )
    assert distance(whole, speculative_distribution(target, chain, sampler)) < 1e-12
    assert distance(whole, joint_distribution(target, PROMPT, sampler, 3)) < 1e-12


def test_look_up_emits_every_possible_sequence_of_target_choices(unchecked):
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
    for seed in range(4):

        def run(guesser, seed=seed):
            return decode(target, guesser, PROMPT, Chance(seed, sampler), max_new_tokens=16)

        plain = run(NoDraft())
        for guesser in (
            by_gap,
            by_table,
            MergedDraft((MaxGram(None, 3), by_table, by_gap)),
            MergedDraft((MergedDraft((by_gap, by_table)),)),
        ):
            found = run(guesser)
            assert found.tokens == plain.tokens
            assert len(found.rounds) < len(plain.rounds)


def words(support: int | None) -> tuple[TableModel, TableModel, TableModel]:
    """Three models of three words, of which so many are possible."""
    return tuple(
        table_model(3, seed, support=support, name=name)
        for seed, name in ((3, "target"), (4, "draft"), (5, "scout"))
    )


def staged_chain(kind: str, support: int | None) -> tuple[TableModel, StagedChain]:
    target, draft, scout = words(support)
    scouts = {
        "chain": ChainDraft(scout, 1, siblings="iid"),
        "tree without replacement": TreeDraft(scout, widths=(2,), siblings="distinct"),
        "point mass": TreeDraft(scout, widths=(2,), siblings="top"),
        "staged chain": StagedChain(
            scout,
            ChainDraft(table_model(3, 6, support=support, name="last"), 1, siblings="iid"),
            1,
            siblings="iid",
        ),
    }
    return target, StagedChain(draft, scouts[kind], 2, siblings="iid")


def one_round_distribution(
    target: TableModel, draft: Draft, sampler: Sampler, length: int = 3
) -> dict[tuple[int, ...], float]:
    """The exact distribution of one round's tokens, the rest of `length` left to the target."""
    distribution: dict[tuple[int, ...], float] = {}
    one = every_outcome(
        lambda chance: first_round(target, draft, PROMPT, chance, rule=reject, room=length), sampler
    )
    for emitted, probability in one.items():
        for more, after in joint_distribution(
            target, PROMPT + emitted, sampler, length - len(emitted)
        ).items():
            distribution[emitted + more] = (
                distribution.get(emitted + more, 0.0) + probability * after
            )
    return distribution


@pytest.mark.parametrize(
    "kind", ["chain", "tree without replacement", "point mass", "staged chain"]
)
@pytest.mark.parametrize("sampler", SAMPLERS.values(), ids=SAMPLERS)
def test_reject_over_a_staged_chain_gives_the_targets_own_joint_distribution(kind, sampler):
    target, chain = staged_chain(kind, support=2 if sampler == T1 else None)
    assert deviation(target, chain, sampler) < 1e-12


@pytest.mark.parametrize("kind", ["chain", "tree without replacement", "point mass"])
def test_one_round_over_a_staged_chain_is_exact_where_every_word_is_possible(kind):
    target, chain = staged_chain(kind, support=None)
    found = one_round_distribution(target, chain, T1)
    assert distance(found, joint_distribution(target, PROMPT, T1, 3)) < 1e-12


@pytest.mark.parametrize("sampler", [Sampler(0), T1], ids=["T=0", "T=1"])
@pytest.mark.parametrize("siblings", ["iid", "distinct", "top"])
def test_reject_over_a_staged_tree_gives_the_targets_own_joint_distribution(siblings, sampler):
    for distribution_of, support, shape in (
        (speculative_distribution, 2, {"widths": (2, 1)}),
        (one_round_distribution, None, {"budget": 3, "depth": 2}),
    ):
        target, draft, scout = words(support)
        tree = StagedTree(
            TreeDraft(draft, siblings=siblings, **shape),
            TreeDraft(scout, widths=(2, 1), siblings="top"),
        )
        wanted = joint_distribution(target, PROMPT, sampler, 3)
        assert distance(distribution_of(target, tree, sampler), wanted) < 1e-12


def test_the_chain_that_the_draft_decodes_has_the_drafts_own_distribution():
    _, draft, scout = words(support=2)
    chain = StagedChain(draft, ChainDraft(scout, 2, siblings="iid"), 3, siblings="iid")
    distribution = every_outcome(
        lambda chance: chain.propose(Context.of(PROMPT), chance).tokens[1:], T1
    )
    assert distance(distribution, joint_distribution(draft, PROMPT, T1, 3)) < 1e-12


def test_two_rounds_of_a_staged_chain_enumerated_whole_ask_no_key_twice():
    target, draft, scout = words(support=2)
    chain = StagedChain(draft, ChainDraft(scout, 1, siblings="iid"), 2, siblings="iid")

    def run(chance):
        return decode(target, chain, PROMPT, chance, max_new_tokens=2, rule=reject).tokens

    assert distance(every_outcome(run, T1), joint_distribution(target, PROMPT, T1, 2)) < 1e-12
