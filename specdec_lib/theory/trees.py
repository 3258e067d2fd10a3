"""Expected tokens of a tree and the best tree for a budget, from acceptance by depth and rank."""

import math
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import Annotated, NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression

from specdec_lib.core.kinds import Within, checked
from specdec_lib.core.tree import NO_PARENT, Shape
from specdec_lib.core.tree.shape import grow_best_first
from specdec_lib.theory.chains import Verify, speed_up

Budget = Annotated[int, Within(1, 2**16)]
Depth = Annotated[int, Within(1)]
SLACK = 1e-9  # above 1, for sums of measured rates
Rates = Iterable[Iterable[float]]
"""rates[depth − 1][rank] = P(the target takes this child | it took the parent).

The last depth's vector repeats for deeper ones; ranks beyond a vector have rate 0. One vector P for
all depths is [P]. Siblings are different tokens, so a vector sums to at most 1.
"""


class TreePlan(NamedTuple):
    """The number of guesses, the depth and the speed-up of the tree that pays best."""

    budget: int
    depth: int
    speed_up: float


def _checked_rates(rates: Rates, *, falling: bool = False) -> tuple[tuple[float, ...], ...]:
    """The rates as tuples.  Raises ValueError if they are none or, with `falling`, rise by rank."""
    vectors = tuple(tuple(map(float, vector)) for vector in rates)
    if not vectors:
        raise ValueError("rates need at least one vector, for depth 1 and all deeper ones")
    for depth, vector in enumerate(vectors, 1):
        if not all(0 <= rate <= 1 for rate in vector) or sum(vector) > 1 + SLACK:
            raise ValueError(
                "rates of siblings lie in [0, 1] and sum to at most 1,"
                f" got {vector} at depth {depth}"
            )
        if falling and any(later > earlier for earlier, later in pairwise(vector)):
            raise ValueError(
                f"rates must not rise with the rank, got {vector} at depth {depth};"
                " use monotone(rates)"
            )
    return vectors


def _at_depth(vectors: Sequence[tuple[float, ...]], depth: int) -> tuple[float, ...]:
    """The vector of a depth, 1 for the root's children."""
    return vectors[min(depth, len(vectors)) - 1]


def monotone(rates: Rates) -> list[list[float]]:
    """The closest vectors (least squares, same sums) that never rise with the rank."""
    return [
        isotonic_regression(vector, increasing=False).x.tolist() if vector else []
        for vector in _checked_rates(rates)
    ]


@checked
def expected_tokens(shape: Shape, rates: Rates) -> float:
    """Expected tokens per round, for rates that may rise with the rank: 1 + the sum over guesses of
    the product of the rates along the path. Source: Chen et al. 2024 (Sequoia), proposition 3.4.
    """
    return math.fsum(path_probabilities(shape, rates))


def path_probabilities(shape: Shape, rates: Rates) -> list[float]:
    """P(the target takes the whole path) to each node, 1 for the root."""
    vectors = _checked_rates(rates)
    paths = [1.0]
    slots = zip(shape.parents[1:], shape.depths[1:], shape.ranks[1:], strict=True)
    for parent, depth, rank in slots:
        vector = _at_depth(vectors, depth)
        paths.append(paths[parent] * vector[rank] if rank < len(vector) else 0.0)
    return paths


@checked
def best_tree(rates: Rates, budget: Budget, depth: Depth | None = None) -> Shape:
    """The tree of at most `budget` guesses with the most expected tokens, its nodes in the order of
    their worth, so that the best tree of fewer guesses is its beginning; the rates must not rise
    with the rank (`monotone` mends them), and guesses of rate 0 are left out.

    Source: best-first as in Wang et al. 2024 (OPT-Tree); equals the dynamic programme of Chen et
    al. 2024 (Sequoia), as no child or later sibling is worth more.
    """
    vectors = _checked_rates(rates, falling=True)
    slots = grow_best_first(
        lambda slot: _at_depth(vectors, len(slot.ranks) + 1),
        budget,
        depth=depth,
        floor=math.ulp(0.0),
    )
    return Shape((NO_PARENT, *(slot.parent for slot in slots)))


@checked
def tokens_by_budget(rates: Rates, budget: Budget, depth: Depth | None = None) -> list[float]:
    """Expected tokens of the best trees of 0, 1, … `budget` guesses."""
    vectors = _checked_rates(rates)
    tokens = [*accumulate(path_probabilities(best_tree(vectors, budget, depth), vectors))]
    return tokens + tokens[-1:] * (int(budget) + 1 - len(tokens))


@checked
def tree_table(
    rates: Rates, nodes: Annotated[int, Within(1, 256)], depth: Depth | None = None
) -> float:
    """Expected tokens of the best tree of at most `nodes` guesses, by dynamic programming: unlike
    `best_tree` for rates that may rise with the rank, and much slower.

    Source: Chen et al. 2024 (Sequoia), there with one vector for all depths and the root counted.
    """
    vectors = _checked_rates(rates)
    added = np.zeros(int(nodes) + 1)  # tokens that at most 0, 1, … guesses add
    for level in range(int(nodes if depth is None else min(depth, nodes)), 0, -1):
        below = added
        added = np.zeros(len(added))
        for rate in reversed(_at_depth(vectors, level)):
            child = rate * (1 + below)
            most = range(1, len(added))
            added[1:] = [(child[:count] + added[:count][::-1]).max() for count in most]
    return float(1 + added[-1])


@checked
def best_budget(
    rates: Rates,
    *,
    draft_cost: float,
    verify: Verify | None = None,
    budgets: Iterable[Budget],
    depths: Iterable[Depth],
) -> TreePlan:
    """The budget and depth with the largest speed-up, among these and not speculating at all, of a
    draft pass per level and a target pass over all rows; of equals the shallower, then the smaller.
    Source: Chen et al. 2024 (Sequoia), the hardware-aware choice.
    """
    vectors = _checked_rates(rates, falling=True)
    budgets = sorted(map(int, budgets))
    depths = sorted(map(int, depths))
    if not budgets or not depths:
        raise ValueError(f"give a budget and a depth to try, got {budgets} and {depths}")
    best = TreePlan(0, 0, 1.0)
    for limit in depths:
        shape = best_tree(vectors, budgets[-1], limit)
        tokens = [*accumulate(path_probabilities(shape, vectors))]
        deepest = [*accumulate(shape.depths, max)]
        for guesses in sorted({min(budget, shape.guesses) for budget in budgets} - {0}):
            cost = 1.0 if verify is None else verify(guesses + 1)
            found = speed_up(
                tokens[guesses],
                draft_passes=deepest[guesses],
                draft_cost=draft_cost,
                verify=cost,
            )
            if found > best.speed_up:
                best = TreePlan(guesses, deepest[guesses], found)
    return best
