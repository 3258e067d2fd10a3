"""How large a draft's tree is and what it costs: equal forms of one tree, ends of it, passes."""

import tracemalloc
from collections import Counter
from math import prod

import numpy as np
import pytest
from fakes import fixed_model, table_model
from test_draft import BY_GAP, CONTEXT, GREEDY, ODD, SAMPLED, Counting, places
from test_staged import nodes

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.tree import MatchTable, Shape
from specdec_lib.drafts.ngram import NgramDraft
from specdec_lib.drafts.staged import StagedChain, StagedTree
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.drafts.trees.slots import best_slots, slots_of
from specdec_lib.models.katz.model import Katz
from specdec_lib.theory import best_tree

RATES = (0.7, 0.12, 0.05, 0.03)
SIBLINGS = ("ranked", "top", "iid", "distinct")


@pytest.mark.parametrize("siblings", SIBLINGS)
@pytest.mark.parametrize("widths", [(3, 2, 1), (1, 1, 1, 1)])
def test_widths_their_shape_and_a_chain_are_the_same_tree_and_so_is_another_run(siblings, widths):
    def grown(**given):
        return TreeDraft(table_model(5, 1), siblings=siblings, **given).propose(CONTEXT, SAMPLED)

    tree = grown(widths=widths)
    assert tree == grown(widths=widths) == grown(shape=Shape.of_widths(widths))
    if max(widths) == 1 and siblings in ("ranked", "iid"):
        chain = ChainDraft(table_model(5, 1), 4, siblings=siblings).propose(CONTEXT, SAMPLED)
        assert chain == tree and tree.parents == (-1, 0, 1, 2, 3)


def test_an_n_gram_draft_is_the_greedy_tree_of_its_table():
    table = Katz.fit([np.random.default_rng(0).integers(20, size=3000)], 20)
    fast, slow = (
        draft(table, widths=(3, 2, 1)).propose(CONTEXT, GREEDY) for draft in (NgramDraft, TreeDraft)
    )
    assert (fast.tokens, fast.parents) == (slow.tokens, slow.parents)
    assert fast.scores == pytest.approx(slow.scores)


def test_best_slots_equal_best_first_over_ranks_and_the_best_tree_of_the_theory():
    found = [
        prod(RATES[each] for each in (*slots, rank))
        for level in best_slots(MatchTable(RATES), 7, 14).values()
        for slots, count in level.items()
        for rank in range(count)
    ]
    wanted = sorted((0.7**depth for depth in range(1, 15)), reverse=True)[:6]
    assert sorted(found) == pytest.approx(sorted([*wanted, 0.12]))
    table = MatchTable(RATES)
    shape = best_tree([[table.rate(rank) for rank in range(20)]], 40, 6)
    levels = best_slots(table, 40, 6)
    found = Counter(shape.depths[1:])
    assert found == {level + 1: sum(counts.values()) for level, counts in levels.items()}


def test_slots_of_a_shape_are_its_places_level_by_level():
    assert slots_of(ODD) == {0: {(): 2}, 1: {(0,): 2, (1,): 1}, 2: {(0, 0): 1}}
    assert slots_of(Shape.chain(0)) == {}


def test_no_pass_is_made_for_children_that_cannot_get_in():
    model = Counting(4, 3)
    model.inside = fixed_model((0.5, 0.5, 0.0, 0.0))
    TreeDraft(model, budget=2, depth=8).propose(CONTEXT, GREEDY)
    assert model.passes == 1


def test_a_floor_stops_a_chain_of_doubt_and_widths_cost_no_more_than_the_nodes_above_it():
    model = fixed_model((0.6, 0.4, 0.0))
    assert ChainDraft(model, 9, floor=0.2).propose(CONTEXT, GREEDY).guesses == 3
    draft = TreeDraft(model, widths=(2,) * 14, floor=0.2)
    tracemalloc.start()
    try:
        assert draft.propose(CONTEXT, GREEDY).guesses < 20
        assert tracemalloc.get_traced_memory()[1] < 1e6  # bytes; 32,766 slots take more
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("chance, guesses", [(SAMPLED, 2), (GREEDY, 1)])
def test_distinct_siblings_end_where_the_distribution_does(chance, guesses):
    draft = TreeDraft(fixed_model((0.5, 0.5, 0.0)), widths=(3,), siblings="distinct")
    assert draft.propose(CONTEXT, chance).guesses == guesses


@pytest.mark.parametrize(
    "match, siblings",
    [(BY_GAP, "ranked"), (MatchTable(), "ranked"), (BY_GAP, "iid"), (BY_GAP, "distinct")],
)
def test_a_budget_adapts_where_gaps_are_looked_at_and_nowhere_else(match, siblings):
    draft = TreeDraft(table_model(6, 1), budget=9, depth=4, siblings=siblings, match=match)
    chances = [Chance(seed, Sampler(1.0)) for seed in range(20)]
    shapes = {frozenset(places(draft.propose(CONTEXT, chance))) for chance in chances}
    assert (len(shapes) > 1) == (match is BY_GAP and siblings == "ranked")


@pytest.mark.parametrize("chance, siblings", [(GREEDY, "ranked"), (SAMPLED, "top")])
def test_at_temperature_0_and_for_top_siblings_no_match_table_is_looked_at(chance, siblings):
    by_gap, by_rank = (
        TreeDraft(table_model(6, 1), budget=9, depth=4, siblings=siblings, match=match)
        for match in (BY_GAP, MatchTable())
    )
    assert by_gap.propose(CONTEXT, chance) == by_rank.propose(CONTEXT, chance)


@pytest.mark.parametrize("length", range(2, 8))
def test_a_staged_draft_ends_where_the_drafts_context_does(length):
    small = table_model(6, 1, name="draft", max_positions=6)
    scout, context = ChainDraft(table_model(6, 2, name="scout"), 4), Context.of([1] * length)
    chain = ChainDraft(small, 5)
    for plain, staged in (
        (chain, StagedTree(chain, scout)),
        (chain, StagedChain(small, scout, 5)),
        (tree := TreeDraft(small, budget=8, depth=5), StagedTree(tree, scout)),
    ):
        wanted, found = (draft.propose(context, SAMPLED) for draft in (plain, staged))
        assert nodes(found) == nodes(wanted) and bool(found.guesses) == (length <= 6)
