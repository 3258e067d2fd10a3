"""Shapes and best trees: published numbers, every small tree, and a dynamic programme."""

import itertools
import math

import numpy as np
import pytest
from fakes import assert_refused

from specdec_lib.core.tree import Shape
from specdec_lib.theory import (
    best_budget,
    best_tree,
    chain_tokens,
    expected_tokens,
    monotone,
    tokens_by_budget,
    tree_table,
)

P = (0.7, 0.12, 0.05, 0.03)
TREES = [(4, 2.533, 2.533), (8, 3.1788, 3.1412), (16, 3.7132, 3.3223), (32, 4.2395, 3.3333)]


@pytest.mark.parametrize("nodes, best, chain", TREES)
def test_the_best_tree_has_the_published_tokens(nodes, best, chain):
    budget = nodes - 1  # the published count has the root
    found = (
        expected_tokens(best_tree([P], budget), [P]),
        *(tree_table([P], budget), tokens_by_budget([P], budget)[-1]),
        *(expected_tokens(Shape.chain(budget), [P]), chain_tokens(P[0], budget)),
    )
    assert found == pytest.approx((best, best, best, chain, chain), abs=1e-4)
    if nodes > 4:  # the check sees a root that is counted wrongly
        assert abs(tree_table([P], nodes) - best) > 0.02


def ancestor_closed(ranks: int, size: int) -> set[frozenset]:
    """Every set of `size` places that holds the parents of its members."""
    found = {frozenset({()})}
    for _ in range(size):
        found = {
            chosen | {(*place, rank)}
            for chosen in found
            for place in chosen
            for rank in range(ranks)
            if (*place, rank) not in chosen
        }
    return found


def worth(places: frozenset, vector: list) -> float:
    """Expected tokens of a set of places, by their definition."""
    return sum(math.prod(vector[rank] for rank in place) for place in places)


@pytest.mark.parametrize("depth", [None, 1, 3, 5])
def test_best_first_equals_the_dynamic_programme_where_no_rate_rises(depth):
    for seed, vectors in enumerate((1, 1, 1, 3)):  # which leave some mass to the correction
        drawn = np.random.default_rng(seed).dirichlet(np.full(6, 0.7), vectors)[:, :5]
        rates = [sorted(vector, reverse=True) for vector in drawn.tolist()]
        tokens = tokens_by_budget(rates, 24, depth)
        for budget in (1, 7, 24):
            shape = best_tree(rates, budget, depth)
            found = (tree_table(rates, budget, depth), expected_tokens(shape, rates))
            assert found == pytest.approx((tokens[budget],) * 2, abs=1e-12)
            assert shape.depth <= (depth or budget) and shape.guesses <= budget


def rank_closed(places: frozenset) -> bool:
    return all((*place[:-1], place[-1] - 1) in places for place in places if place and place[-1])


@pytest.mark.parametrize("vector", ([0.1, 0.6, 0.2], [0.2, 0.0, 0.7], [0.5, 0.3, 0.1]))
def test_no_small_tree_is_better_than_that_of_the_dynamic_programme(vector):
    """Whether rates rise with the rank or not."""
    for size in (2, 4, 5):
        closed = filter(rank_closed, ancestor_closed(3, size))
        best = max(worth(places, vector) for places in closed)
        assert tree_table([vector], size) == pytest.approx(best, abs=1e-12)
        by_mean = expected_tokens(best_tree(monotone([vector]), size), [vector])
        assert by_mean <= tree_table([vector], size) + 1e-12
        free_order = tree_table([sorted(vector, reverse=True)], size)
        assert (tree_table([vector], size) < free_order) == (vector[0] < 0.5)


def test_ties_zeros_and_mended_rates():
    assert best_tree([[0.5, 0.5]], 4).parents == (-1, 0, 0, 1, 1)  # shallower, then earlier
    assert best_tree([[0.5, 0.25]], 3).parents == (-1, 0, 0, 1)
    assert best_tree([[1.0]], 5).parents == Shape.chain(5).parents
    assert best_tree([[0.6, 0.2], []], 9).parents == (-1, 0, 0)
    assert best_tree([[0.0, 0.0]], 3).guesses == 0
    assert tokens_by_budget([[0.6, 0.2]], 4, 1) == pytest.approx([1, 1.6, 1.8, 1.8, 1.8])
    assert expected_tokens(Shape.full(3, 1), [[0.6, 0.2]]) == pytest.approx(1.8)
    assert monotone([[0.5, 0.1, 0.3], [0.2], []]) == [[0.5, 0.2, 0.2], [0.2], []]


def test_the_best_budget_is_the_best_of_all_trees():
    def verify(rows: int) -> float:
        return 1 + 0.02 * rows

    budgets, depths, found = range(1, 25), range(1, 9), {}
    plan = best_budget([P], draft_cost=0.08, verify=verify, budgets=budgets, depths=depths)
    for budget, depth in itertools.product(budgets, depths):
        shape = best_tree([P], budget, depth)
        seconds = shape.depth * 0.08 + verify(shape.guesses + 1)
        found[budget, shape.depth] = expected_tokens(shape, [P]) / seconds
    chosen = found[plan.budget, plan.depth]
    assert plan.speed_up == pytest.approx(max(found.values())) == pytest.approx(chosen)
    assert best_tree([P], plan.budget, plan.depth).depth == plan.depth


def test_not_speculating_is_best_where_guesses_cost_more_than_they_bring():
    dear = best_budget([[0.1]], draft_cost=0.5, budgets=[1, 4], depths=[1, 2])
    linear = {"draft_cost": 0, "verify": lambda rows: 0.9 * rows}
    useless = best_budget([[0.0]], **linear, budgets=[4], depths=[2])
    assert dear == useless == (0, 0, 1.0)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    "call, said",
    [
        (lambda: Shape(()), "node 0 is the root"),
        (lambda: Shape((-1, 0, 2)), "node 2 has parent 2, allowed are 0…1"),
        (lambda: Shape.of_widths((2, 0)), r"widths of of_widths must be .*, got \(2, 0\)"),
        (lambda: Shape.chain(2).cut(-1), "budget of cut must be .*, got -1"),
        (lambda: best_tree([[0.2, 1.1]], 2), r"lie in .*, got \(0.2, 1.1\) at depth 1"),
        (lambda: best_tree([[0.5], [0.2, 0.3]], 2), r"got \(0.2, 0.3\) at depth 2; use monotone"),
        (lambda: expected_tokens(Shape.chain(1), [[0.6, 0.5]]), "at most 1, got .* at depth 1"),
        (lambda: best_tree([], 2), "at least one vector"),
        (lambda: best_tree([P], 0), "budget of best_tree must be .* from 1 to 65,536, got 0"),
        (lambda: best_budget([P], draft_cost=0, budgets=[], depths=[1]), "give a budget"),
    ],
)
def test_a_value_out_of_range_is_named(call, said):
    assert_refused(call, said)
