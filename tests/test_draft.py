"""Which trees a draft makes, and at what cost: shapes, best-first budgets, honest rows, passes."""

import tracemalloc

import pytest
from fakes import best_paths, fixed_model, path_scores, refusals, table_model
from test_staged import Counting, nodes

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.tree import MatchTable, Shape, TokenTree
from specdec_lib.drafts.staged import StagedChain, StagedTree
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft

CONTEXT = Context.of([1, 2, 0])
GREEDY, SAMPLED = Chance(0), Chance(0, Sampler(1.0))
SIBLINGS = ("ranked", "top", "iid", "distinct")
ODD = Shape((-1, 0, 1, 2, 0, 1, 4))  # not numbered level by level
BINNED = (0.4, 0.35, 0.2), (0.6, 0.25, 0.1), (0.9, 0.05, 0.01)
BY_GAP = MatchTable((0.6, 0.2, 0.1), "by gap", (0.5, 1.5), BINNED)


@pytest.mark.parametrize("budget", [1, 4, 9])
@pytest.mark.parametrize("match", [None, BY_GAP], ids=["greedy", "by gap"])
def test_a_budget_holds_the_best_paths_of_all(match, budget):
    model = Counting(table_model(4, 3))
    for seed in range(5 if match else 1):
        chance = Chance(seed, Sampler(1.0)) if match else GREEDY

        def children(path, chance=chance):
            logits = model.model.logits(CONTEXT.tokens + path)
            if match is None:
                return range(4), logits.softmax(-1).tolist()
            tokens, gaps = chance.rank(logits, len(CONTEXT) + len(path), 4)
            return tokens, [BY_GAP.rate(*one) for one in enumerate([gaps[1], *gaps[1:]])]

        draft = TreeDraft(model, budget=budget, depth=4, match=match or MatchTable())
        model.calls.clear()
        found, wanted = path_scores(draft.propose(CONTEXT, chance)), best_paths(children, budget, 4)
        assert found == pytest.approx({path: wanted[path] for path in found})
        assert len(found) == budget and len(model.calls) <= 4


def test_only_nodes_that_get_children_are_read():
    model = Counting(table_model(5, 3))
    tree = TreeDraft(model, budget=9, depth=4).propose(CONTEXT, SAMPLED)
    parents = {tree.path_tokens(node) for node in range(len(tree)) if tree.children(node)}
    read = {part.path_tokens(node) for part in model.calls for node in range(len(part))}
    assert parents == read


def places(tree: TokenTree) -> set[tuple[int, ...]]:
    return {tree.slots(node) for node in range(len(tree))}


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


@pytest.mark.parametrize(
    "chance,siblings", [(GREEDY, "ranked"), *((SAMPLED, kind) for kind in SIBLINGS)]
)
def test_a_fixed_shape_is_filled_in_one_pass_per_level(chance, siblings):
    model = Counting(table_model(5, 1))
    tree = TreeDraft(model, shape=ODD, siblings=siblings).propose(CONTEXT, chance)
    assert places(tree) == {(), (0,), (1,), (0, 0), (0, 1), (1, 0), (0, 0, 0)}
    assert len(model.calls) == ODD.depth == 3


@pytest.mark.parametrize("chance", [GREEDY, SAMPLED])
@pytest.mark.parametrize("siblings", SIBLINGS)
@pytest.mark.parametrize("floor, longest", [(0.05, 1000), (0.3, 1000), (0.0, 4), (0.05, 4)])
def test_widths_end_at_the_floor_and_a_full_context_as_shapes_do(siblings, floor, longest, chance):
    model, widths = table_model(5, 1, max_positions=longest), (3, 2, 2)
    options = {"siblings": siblings, "floor": floor, "match": MatchTable((0.5, 0.3, 0.2))}
    by_widths = TreeDraft(model, widths=widths, **options)
    by_shape = TreeDraft(model, shape=Shape.of_widths(widths), **options)
    assert by_widths.propose(CONTEXT, chance) == by_shape.propose(CONTEXT, chance)


FOUR, CHAIN = table_model(4, 1), Shape.chain(1)
test_a_shape_that_makes_no_sense_is_refused = refusals(
    (lambda: TreeDraft(FOUR), "and one of them only: got widths=None, shape=None, budget=None"),
    (lambda: TreeDraft(FOUR, widths=(1,), shape=CHAIN, budget=2), "one of them only"),
    (lambda: TreeDraft(FOUR, shape=Shape.chain(0)), "at least 1 guess; .* use NoDraft"),
    (lambda: TreeDraft(FOUR, widths=(1,), siblings="any"), "'iid' or 'distinct', got 'any'"),
)


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
