"""Trees that a draft makes of a model or of n-grams: shapes, best-first budgets, honest rows."""

import math
import tracemalloc
from functools import partial

import numpy as np
import pytest
import torch
from fakes import assert_best, assert_refused, fixed_model, table_model
from test_staged import Counting, nodes

from specdec_lib.core.chance import Chance, EveryBranch, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.tree import MatchTable, Shape, TokenTree
from specdec_lib.drafts.ngram import NgramDraft
from specdec_lib.drafts.staged import StagedChain, StagedTree
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.models.katz.model import Katz

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
    row = model.model.logits
    for seed in range(5 if match else 1):
        chance = Chance(seed, Sampler(1.0)) if match else GREEDY

        draft = TreeDraft(model, budget=budget, depth=4, match=match or MatchTable())
        model.calls.clear()
        tree = draft.propose(CONTEXT, chance)
        size = {"budget": budget, "depth": 4}
        assert_best(tree, lambda path: row(CONTEXT.tokens + path), chance, match, **size)
        assert len(model.calls) <= 4


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


FOUR = table_model(4, 1)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    "call, said",
    [
        (lambda: TreeDraft(FOUR), "and one of them only: got widths=None, shape=None, budget=None"),
        (lambda: TreeDraft(FOUR, widths=(1,), budget=2), "one of them only"),
        (lambda: TreeDraft(FOUR, shape=Shape.chain(0)), "at least 1 guess; .* use NoDraft"),
        (lambda: TreeDraft(FOUR, widths=(1,), siblings="any"), "'iid' or 'distinct', got 'any'"),
    ],
)
def test_a_shape_that_makes_no_sense_is_refused(call, said):
    assert_refused(call, said)


def test_a_floor_stops_a_doubtful_chain_and_wide_trees_cost_their_nodes_alone():
    model = fixed_model((0.6, 0.4, 0.0))
    assert ChainDraft(model, 9, floor=0.2).propose(CONTEXT, GREEDY).guesses == 3
    draft = TreeDraft(model, widths=(2,) * 14, floor=0.2)
    tracemalloc.start()
    try:
        assert draft.propose(CONTEXT, GREEDY).guesses < 20
        assert tracemalloc.get_traced_memory()[1] < 1e6  # bytes; 32,766 slots take more
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("length", (2, 5, 6, 7))
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


NGRAMS = Katz.fit([np.random.default_rng(0).integers(0, 7, 400)], 7)
THREE = Context.of([3, 1, 0])


def test_score_is_the_log_of_the_distribution_after_each_node():
    context = Context((0, 2, 1), 2)
    tree = TokenTree.rooted(context).grown([1, 2, 0], [0, 0, 2], source="test", scores=[0.5] * 3)
    logits = NGRAMS.score(context, tree)
    assert logits.dtype == torch.float64
    wanted = [NGRAMS.probs(tokens) for tokens in [(2, 1), (1, 1), (1, 2), (2, 0)]]
    np.testing.assert_array_equal(logits, np.log(wanted))


def test_widths_are_ranked_under_the_noise_of_a_position_which_no_branches_have():
    chance = Chance(9, Sampler(1.3))
    tree = NgramDraft(NGRAMS, (6, 2)).propose(THREE, chance)
    logits = NGRAMS.score(THREE, tree)
    for node in range(7):
        ranked, _ = chance.rank(logits[node], tree.position(node) + 1, 6 if node == 0 else 2)
        assert [tree.tokens[child] for child in tree.children(node)] == ranked
    assert tree.scores[1:7] == (0.75, 0.16, 0.04, 0.03, 0.015, 0.0075) and tree.scores[7] == 0.75**2
    with pytest.raises(ValueError, match="noise cannot be enumerated"):
        NgramDraft(NGRAMS, (2,)).propose(THREE, EveryBranch(0, Sampler(1.0)))


@pytest.mark.parametrize(
    "sampler", [Sampler(1.0), Sampler(0.7, top_k=3), Sampler(1.3, top_p=0.7), Sampler(1.0, 5, 0.9)]
)
def test_a_draft_ranks_as_its_sharpened_distribution_would(sampler):
    chance, draft = Chance(7, sampler), NgramDraft(NGRAMS, (1,), counted_at=1.5)
    for position in range(20):
        tokens, gaps = chance.rank(torch.from_numpy(NGRAMS.probs([1, 0]) ** 1.5).log(), position, 4)
        ranked, found = draft.rank((1, 0), 4, chance, position)
        assert ranked == tokens
        assert found == pytest.approx([gaps[1] if len(gaps) > 1 else math.inf, *gaps[1:]])


def test_a_draft_looks_at_no_more_candidates_than_there_are():
    narrow = NgramDraft(Katz.fit([np.array([0, 1, 0])], 2), (5,))
    assert narrow.propose(Context.of([0]), Chance(0)).guesses == 2


@pytest.mark.parametrize("temperature,siblings", [(0, "ranked"), (1.0, "top"), (0, "top")])
@pytest.mark.parametrize("budget", [1, 5, 16])
def test_a_budget_holds_the_likeliest_paths_of_all(budget, temperature, siblings):
    chance = Chance(0, Sampler(temperature))
    tree = NgramDraft(NGRAMS, budget=budget, depth=3, siblings=siblings).propose(THREE, chance)
    assert not tree.has_rows
    assert_best(tree, sharpened, Chance(0), budget=budget, depth=3)


def sharpened(path: tuple[int, ...], power: float = 1.0) -> torch.Tensor:
    return torch.from_numpy(NGRAMS.probs(THREE.tokens + path) ** power).log()


@pytest.mark.parametrize("counted_at", [1.0, 1.5])
@pytest.mark.parametrize("match", [MatchTable(), BY_GAP])
def test_under_noise_a_budget_holds_the_best_products_of_match_rates(match, counted_at):
    chance, row = Chance(5, Sampler(1.0)), partial(sharpened, power=counted_at)
    draft = NgramDraft(NGRAMS, budget=9, depth=3, match=match, counted_at=counted_at)
    assert_best(draft.propose(THREE, chance), row, chance, match, budget=9, depth=3)


@pytest.mark.parametrize("chance", [GREEDY, SAMPLED])
@pytest.mark.parametrize("siblings", SIBLINGS)
@pytest.mark.parametrize("size", [{"widths": (3, 2, 2)}, {"budget": 12, "depth": 3}], ids=str)
def test_only_a_guess_that_is_likely_enough_gets_children(siblings, size, chance):
    model, match = table_model(5, 1), MatchTable((0.5, 0.3, 0.2))
    whole = TreeDraft(model, siblings=siblings, match=match, **size).propose(CONTEXT, chance)
    parents = sorted({whole.scores[parent] for parent in whole.parents[1:]})
    assert len(parents) > 2 and parents[-1] == 1
    cut = TreeDraft(model, siblings=siblings, match=match, deepen=parents[1], **size)
    tree = cut.propose(CONTEXT, chance)
    assert min(tree.scores[parent] for parent in tree.parents[1:]) == parents[1]
    if "widths" in size:
        assert tree.guesses < whole.guesses
        kept = {path: whole.scores[node] for node, path in paths_of(whole)}
        assert all(kept[path] == tree.scores[node] for node, path in paths_of(tree))
    none = TreeDraft(model, siblings=siblings, match=match, deepen=1.0, **size)
    assert set(none.propose(CONTEXT, chance).depths) == {0, 1}


def paths_of(tree: TokenTree) -> list[tuple[int, tuple]]:
    """Each node with its ranks and tokens."""
    nodes = range(len(tree))
    return [(node, (tree.slots(node), tree.path_tokens(node))) for node in nodes]
