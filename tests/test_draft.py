"""Which trees a draft makes: shapes, best-first budgets, honest rows, and each model's passes."""

import itertools
import math
from types import SimpleNamespace

import pytest
import torch
from fakes import Table, fixed_model, table_model

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.tree import MatchTable, Shape, TokenTree
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft

CONTEXT = Context.of([1, 2, 0])
GREEDY, SAMPLED = Chance(0), Chance(0, Sampler(1.0))
ODD = Shape((-1, 0, 1, 2, 0, 1, 4))  # not numbered level by level
BY_GAP = MatchTable(
    (0.6, 0.2, 0.1), "by gap", (0.5, 1.5), ((0.4, 0.35, 0.2), (0.6, 0.25, 0.1), (0.9, 0.05, 0.01))
)


class Counting(Table):
    """A table model that counts its passes."""

    name = "draft"

    def __init__(self, vocabulary: int, seed: int, max_positions: int = 1000):
        self.inside = table_model(vocabulary, seed, max_positions=max_positions)
        self.vocabulary, self.max_positions, self.passes = vocabulary, max_positions, 0

    def score(self, context, tree):
        self.passes += 1
        return self.inside.score(context, tree)


def path_probability(model, tokens: tuple[int, ...]) -> float:
    """What the model gives to tokens after CONTEXT, one after the other."""
    whole = CONTEXT.tokens + tokens
    places = range(len(CONTEXT), len(whole))
    return math.prod(float(model.logits(whole[:at]).softmax(-1)[whole[at]]) for at in places)


@pytest.mark.parametrize("chance", [GREEDY, SAMPLED])
@pytest.mark.parametrize("siblings", ["ranked", "top"])
def test_widths_give_the_shape_and_one_pass_per_depth(chance, siblings):
    model = Counting(5, 1)
    tree = TreeDraft(model, widths=(3, 2, 1), siblings=siblings).propose(CONTEXT, chance)
    assert [tree.depths.count(depth) for depth in range(4)] == [1, 3, 6, 6]
    assert model.passes == 3 and not tree.has_rows


def test_a_greedy_score_is_the_product_of_unwarped_probabilities():
    model = table_model(5, 1)
    tree = TreeDraft(model, widths=(2, 2)).propose(CONTEXT, GREEDY)
    for node in range(1, len(tree)):
        wanted = path_probability(model, tree.path_tokens(node))
        assert tree.scores[node] == pytest.approx(wanted)


@pytest.mark.parametrize("budget", [1, 4, 9])
def test_a_budget_holds_the_likeliest_paths_of_all(budget):
    model = Counting(4, 3)
    tree = TreeDraft(model, budget=budget, depth=4).propose(CONTEXT, GREEDY)
    scored = {
        tokens: path_probability(model.inside, tokens)
        for length in range(1, 5)
        for tokens in itertools.product(range(4), repeat=length)
    }
    best = sorted(scored, key=scored.get, reverse=True)[:budget]
    assert {tree.path_tokens(node) for node in range(1, len(tree))} == set(best)
    assert model.passes <= 4


def test_only_nodes_that_get_children_are_read():
    model, asked = Counting(5, 3), []
    real = model.inside
    model.inside = SimpleNamespace(
        score=lambda context, tree: asked.append(tree) or real.score(context, tree)
    )
    tree = TreeDraft(model, budget=9, depth=4).propose(CONTEXT, SAMPLED)
    parents = {tree.path_tokens(node) for node in range(len(tree)) if tree.children(node)}
    read = {part.path_tokens(node) for part in asked for node in range(len(part))}
    assert parents == read


def places(tree: TokenTree) -> set[tuple[int, ...]]:
    return {tree.slots(node) for node in range(len(tree))}


@pytest.mark.parametrize(
    "chance,siblings",
    [(GREEDY, "ranked"), *((SAMPLED, kind) for kind in ("ranked", "top", "iid", "distinct"))],
)
def test_a_fixed_shape_is_filled_in_one_pass_per_level(chance, siblings):
    model = Counting(5, 1)
    tree = TreeDraft(model, shape=ODD, siblings=siblings).propose(CONTEXT, chance)
    assert places(tree) == {(), (0,), (1,), (0, 0), (0, 1), (1, 0), (0, 0, 0)}
    assert model.passes == ODD.depth == 3


@pytest.mark.parametrize("chance", [GREEDY, SAMPLED])
@pytest.mark.parametrize("siblings", ["ranked", "top", "iid", "distinct"])
@pytest.mark.parametrize("floor, longest", [(0.05, 1000), (0.3, 1000), (0.0, 4), (0.05, 4)])
def test_widths_end_at_the_floor_and_at_a_full_context_as_a_shape_does(
    siblings, floor, longest, chance
):
    model, widths = table_model(5, 1, max_positions=longest), (3, 2, 2)
    options = {"siblings": siblings, "floor": floor, "match": MatchTable((0.5, 0.3, 0.2))}
    by_widths = TreeDraft(model, widths=widths, **options)
    by_shape = TreeDraft(model, shape=Shape.of_widths(widths), **options)
    assert by_widths.propose(CONTEXT, chance) == by_shape.propose(CONTEXT, chance)


@pytest.mark.parametrize(
    "model, wanted",
    [
        (table_model(5, 1, max_positions=3), {(), (0,), (1,)}),
        (fixed_model((1.0, 0.0, 0.0)), {(), (0,), (0, 0), (0, 0, 0)}),
    ],
)
def test_a_fixed_shape_ends_where_the_context_is_full_or_the_distribution_does(model, wanted):
    assert places(TreeDraft(model, shape=ODD).propose(CONTEXT, SAMPLED)) == wanted


def best_by_gap(model, chance: Chance, budget: int, depth: int) -> list[float]:
    """The `budget` best products of BY_GAP's rates, over all paths there are."""
    level, scored = {(): 1.0}, []
    for deeper in range(depth):
        below = {}
        for path, above in level.items():
            tokens, gaps = chance.rank(
                model.logits(CONTEXT.tokens + path), len(CONTEXT) + deeper, model.vocabulary
            )
            for rank, (token, gap) in enumerate(zip(tokens, [gaps[1], *gaps[1:]], strict=True)):
                row = BY_GAP.binned[sum(gap >= edge for edge in BY_GAP.edges)]
                below[*path, token] = above * (*row, row[-1] / 2)[rank]
        scored += below.values()
        level = below
    return sorted(scored, reverse=True)[:budget]


@pytest.mark.parametrize("budget", [1, 4, 9])
def test_under_noise_a_budget_by_gap_holds_the_best_products_of_all(budget):
    model = table_model(4, 3)
    for seed in range(5):
        chance = Chance(seed, Sampler(1.0))
        tree = TreeDraft(model, budget=budget, depth=4, match=BY_GAP).propose(CONTEXT, chance)
        wanted = best_by_gap(model, chance, budget, 4)
        assert sorted(tree.scores[1:], reverse=True) == pytest.approx(wanted)


@pytest.mark.parametrize("siblings", ["iid", "distinct"])
def test_the_shape_of_a_drawn_tree_does_not_depend_on_its_tokens(siblings):
    draft = TreeDraft(table_model(6, 1), budget=9, depth=4, siblings=siblings)
    shapes = {draft.propose(CONTEXT, Chance(seed, Sampler(1.0))).parents for seed in range(20)}
    assert len(shapes) == 1 and len(next(iter(shapes))) == 10


def test_rows_are_the_distributions_that_tokens_were_drawn_from():
    model = table_model(5, 1)
    tree = TreeDraft(model, widths=(3,), siblings="distinct").propose(CONTEXT, SAMPLED)
    distribution = Sampler(1.0).probs(model.logits(CONTEXT.tokens))
    for node in tree.children(0):
        assert torch.allclose(tree.rows[node], distribution)
        distribution = distribution.clone()
        distribution[tree.tokens[node]] = 0
        distribution = distribution / distribution.sum()
    assert len(set(tree.tokens[1:])) == 3


@pytest.mark.parametrize(
    "draft", [lambda model: ChainDraft(model, 5), lambda model: TreeDraft(model, budget=8)]
)
def test_a_model_whose_context_is_full_guesses_less(draft):
    assert max(draft(table_model(4, 1, max_positions=4)).propose(CONTEXT, GREEDY).depths) == 2
    assert draft(table_model(4, 1, max_positions=2)).propose(CONTEXT, GREEDY).guesses == 0


@pytest.mark.parametrize(
    "wrong,message",
    [
        ({}, "give widths, a shape or a budget, and one of them only: got None, None, None"),
        ({"widths": (1,), "budget": 2}, r"one of them only: got \(1,\), None, 2"),
        ({"widths": (1,), "shape": Shape.chain(1)}, "one of them only"),
        ({"widths": (1,), "shape": Shape.chain(1), "budget": 2}, "one of them only"),
        ({"shape": Shape.chain(0)}, "at least 1 guess; to guess nothing use NoDraft"),
        ({"widths": (1, 0)}, r"at least 1, of one depth or more, got \(1, 0\)"),
        ({"budget": 0}, "a budget is 1 or more, got 0"),
        ({"budget": 2, "depth": 0}, "depth"),
        ({"widths": (1,), "floor": 2.0}, "floor"),
        ({"widths": (1,), "siblings": "any"}, "ranked, top, iid, distinct"),
    ],
)
def test_a_shape_that_makes_no_sense_is_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        TreeDraft(table_model(4, 1), **wrong)


def test_a_chain_without_length_is_refused():
    with pytest.raises(ValueError, match="a chain's length is 1 or more, got 0"):
        ChainDraft(table_model(4, 1), 0)
