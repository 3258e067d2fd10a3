"""Expected tokens of a tree and the best tree for a budget, from acceptance by depth and rank.

Siblings are different tokens, so tokens per round are 1 plus the sum over guesses of P(the target
takes the whole path to the guess). Budgets and counts leave the root out.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from numbers import Integral, Real
from typing import NamedTuple

from specdec_lib.core.tree import NO_PARENT, Shape
from specdec_lib.core.tree.growth import Slot, grow_best_first
from specdec_lib.theory.chains import Verify, speed_up
from specdec_lib.theory.rates import Rates, at_depth, checked


class Plan(NamedTuple):
    """The number of guesses, the depth and the speed-up of the tree that pays best."""

    budget: int
    depth: int
    speed_up: float


def expected_tokens(shape: Shape, rates: Rates) -> float:
    """Expected tokens per round, the bonus included: 1 + the sum over guesses of the product of the
    rates along the path.

    Rates may rise with the rank.  Raises ValueError if a rate is outside [0, 1] or a vector sums
    above 1.
    Source: Chen et al. 2024 (Sequoia), proposition 3.4; here rates may differ by depth.
    """
    vectors = checked(rates)
    paths = [1.0]
    for parent, depth, rank in zip(
        shape.parents[1:], shape.depths[1:], shape.ranks[1:], strict=True
    ):
        vector = at_depth(vectors, depth)
        paths.append(paths[parent] * vector[rank] if rank < len(vector) else 0.0)
    return math.fsum(paths)


def best_tree(rates: Rates, budget: Integral, depth: Integral | None = None) -> Shape:
    """The tree of at most `budget` guesses with the most expected tokens, its nodes in the order of
    their worth.

    rates     must not rise with the rank; `monotone` mends measured ones
    budget    guesses without the root
    depth     deepest guess allowed; None for no limit

    The best tree of fewer guesses is therefore its beginning.  It has fewer than `budget` guesses
    only where every further one has rate 0; a tie goes to the shallower, then the earlier slot.
    Raises ValueError if the rates are not as `Rates` says, a vector rises with the rank, or the
    budget or depth is below 1.
    Source: best-first by path probability, as in Wang et al. 2024 (OPT-Tree); equals the dynamic
    programme of Chen et al. 2024 (Sequoia), because a child and a later sibling are never worth
    more.
    """
    return Shape((NO_PARENT, *(slot.parent for slot in _best_first(rates, budget, depth))))


def tokens_by_budget(rates: Rates, budget: Integral, depth: Integral | None = None) -> list[float]:
    """Expected tokens of the best trees of 0, 1, … `budget` guesses, from one run of `best_tree`,
    whose arguments and errors these are.
    """
    tokens = [1.0]
    for slot in _best_first(rates, budget, depth):
        tokens.append(tokens[-1] + slot.score)
    return tokens + tokens[-1:] * (int(budget) + 1 - len(tokens))


def tree_table(rates: Rates, nodes: Integral, depth: Integral | None = None) -> float:
    """Expected tokens of the best tree of at most `nodes` guesses that fills ranks in order; rates
    may rise with the rank.

    The arguments are those of `best_tree`, which is much faster where no vector rises.
    Raises ValueError if the rates are not as `Rates` says, or `nodes` or the depth is below 1.
    Source: the dynamic programme of Chen et al. 2024 (Sequoia), there with one vector for all
    depths and the root counted.
    """
    vectors = checked(rates)
    _check_size(nodes, depth)
    under = [0.0] * (int(nodes) + 1)
    for level in range(int(nodes if depth is None else min(depth, nodes)), 0, -1):
        under = _one_level_up(at_depth(vectors, level), under)
    return 1 + under[-1]


def best_budget(
    rates: Rates,
    *,
    draft_cost: Real,
    verify: Verify | None = None,
    budgets: Iterable[Integral],
    depths: Iterable[Integral],
) -> Plan:
    """The budget and depth with the largest speed-up, where a tree costs one draft pass per level
    and one target pass over all its rows.

    draft_cost         seconds of a draft pass over those of a target pass over one row
    verify             what a target pass over so many rows costs, root included, relative to one
                       row; None is flat
    budgets, depths    limits to try; the plan holds what its tree uses, which may be less

    Not speculating, Plan(0, 0, 1.0), is always among the candidates; a tie goes to the shallower,
    then the smaller tree.
    Raises ValueError if there is nothing to try, and as `best_tree` and `speed_up` do.
    Source: Chen et al. 2024 (Sequoia), the hardware-aware choice, with times that may be measured.
    """
    vectors, budgets, depths = (
        checked(rates, falling=True),
        sorted({int(size) for size in budgets}),
        sorted({int(depth) for depth in depths}),
    )
    if not budgets or not depths:
        raise ValueError(
            f"give at least one budget and one depth to try, got budgets {budgets} and depths"
            f" {depths}"
        )
    _check_size(budgets[0], depths[0])
    best = Plan(0, 0, 1.0)
    for limit in depths:
        for plan in _plans(vectors, budgets, limit, draft_cost, verify):
            if plan.speed_up > best.speed_up:
                best = plan
    return best


def _plans(
    rates: Rates, budgets: Sequence[int], limit: int, draft_cost: Real, verify: Verify | None
) -> Iterator[Plan]:
    """The plans of these budgets; one plan for budgets with the same tree."""
    grown = [(1.0, 0)]  # tokens and depth by guesses
    for slot in _best_first(rates, budgets[-1], limit):
        tokens, deepest = grown[-1]
        grown.append((tokens + slot.score, max(deepest, len(slot.ranks))))
    for guesses in sorted({min(budget, len(grown) - 1) for budget in budgets} - {0}):
        tokens, deepest = grown[guesses]
        cost = 1.0 if verify is None else verify(guesses + 1)
        yield Plan(
            guesses,
            deepest,
            speed_up(tokens, draft_passes=deepest, draft_cost=draft_cost, verify=cost),
        )


def _best_first(rates: Rates, budget: Integral, depth: Integral | None) -> Iterator[Slot]:
    """The guesses of the best tree, the most probable path first, until the budget is spent or all
    others have rate 0.
    """
    vectors = checked(rates, falling=True)
    _check_size(budget, depth)
    limit = None if depth is None else int(depth)
    return grow_best_first(
        lambda slot: at_depth(vectors, len(slot.ranks) + 1),
        int(budget),
        depth=limit,
        floor=math.ulp(0.0),
    )


def _one_level_up(vector: Sequence[float], under: Sequence[float]) -> list[float]:
    """Expected tokens that at most 0, 1, … guesses below a node add, given the same for a child."""
    later = [0.0] * len(under)
    for rate in reversed(vector):
        later = [
            max(
                (
                    rate * (1 + under[mine - 1]) + later[nodes - mine]
                    for mine in range(1, nodes + 1)
                ),
                default=0.0,
            )
            for nodes in range(len(under))
        ]
    return later


def _check_size(budget: Integral, depth: Integral | None) -> None:
    if budget < 1:
        raise ValueError(f"a tree has at least 1 guess, got a budget of {budget}")
    if depth is not None and depth < 1:
        raise ValueError(f"a tree of guesses is at least 1 deep, got depth {depth}")
