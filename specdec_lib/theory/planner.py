"""Which chain or tree pays, and by how much."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
from jaxtyping import Float64

from specdec_lib.core.kinds import checked
from specdec_lib.core.tree import Shape
from specdec_lib.theory.chains import Verify, chain_speed_up, chain_tokens
from specdec_lib.theory.trees import Rates, best_tree, expected_tokens
from specdec_lib.theory.work import NO_OVERHEAD, Overhead, Pass, PassTable, Work, plain_work

CLOSE = 1e-4  # precision of a break-even rate
LENGTHS = range(1, 13)


class MapCell(NamedTuple):
    """The best chain at one acceptance rate and one cost of a draft pass."""

    acceptance_rate: float
    cost: float
    speed_up: float
    length: int


class BreakEven(NamedTuple):
    """Where a chain begins to pay.

    acceptance_rate    the least rate that pays at the given cost; None if none does
    cost               the highest cost that pays at the given rate; None if not even 0 does
    """

    acceptance_rate: float | None
    cost: float | None


class Gain(NamedTuple):
    """The speed-up of the best tree within a budget, a depth and a width."""

    budget: int
    depth: int
    width: int
    speed_up: float


@checked
def best_chain_speed_up(
    rate: float,
    draft_cost: float,
    verify: Verify | None = None,
    *,
    lengths: Sequence[int] = LENGTHS,
) -> float:
    """The largest `chain_speed_up` of these lengths, at least one, which may be below 1."""
    if not lengths:
        raise ValueError("the best chain is one of the lengths, got none")
    return max(chain_speed_up(rate, length, draft_cost, verify) for length in lengths)


@checked
def chain_map(
    rates: Sequence[float],
    costs: Sequence[float],
    verify: Verify | None = None,
    *,
    lengths: Sequence[int] = LENGTHS,
    overhead: float = 0.0,
) -> list[MapCell]:
    """The best chain for every pair of a rate and a cost, in this order; the shortest of equals.

    overhead    seconds per round outside the models beyond those of plain decoding, in target
                passes: added to `verify` of `chain_speed_up`
    """
    if min(lengths, default=0) < 1 or not all(one >= 0 for one in (*costs, overhead)):
        raise ValueError(
            "a map needs lengths of at least 1, and costs and an overhead of 0 or more,"
            f" got {list(lengths)}, {list(costs)}, {overhead}"
        )
    tokens = np.array([[chain_tokens(rate, length) for length in lengths] for rate in rates])
    drafting = np.outer(np.asarray(costs, np.float64), lengths)
    passes = drafting + _round_costs(lengths, verify, overhead)
    speed = tokens[:, None, :] / passes
    return [
        MapCell(float(rate), float(cost), float(found.max()), int(lengths[found.argmax()]))
        for rate, row in zip(rates, speed, strict=True)
        for cost, found in zip(costs, row, strict=True)
    ]


@checked
def chain_break_even(
    acceptance_rate: float,
    cost: float,
    verify: Verify | None = None,
    *,
    lengths: Sequence[int] = LENGTHS,
    overhead: float = 0.0,
) -> BreakEven:
    """Where the best chain begins to be faster than plain decoding; arguments as of `chain_map`."""

    def pays(rate: float) -> bool:
        [cell] = chain_map([rate], [cost], verify, lengths=lengths, overhead=overhead)
        return cell.speed_up > 1

    ever = pays(1.0)  # which checks the arguments
    tokens = [chain_tokens(acceptance_rate, length) for length in lengths]
    most = ((tokens - _round_costs(lengths, verify, overhead)) / lengths).max()
    low = 0.0
    high = 1.0
    while high - low > CLOSE:
        middle = (low + high) / 2
        if pays(middle):
            high = middle
        else:
            low = middle
    return BreakEven(high if ever else None, float(most) if most >= 0 else None)


def tree_work(shape: Shape, rates: Rates, *, context: int = 256) -> Work:
    """The expected work of one round of a fixed tree: a draft pass per level over its inner nodes,
    and a target pass over all nodes.

    A round after one whose whole path was accepted also reads that path's last token in its first
    draft pass; this second row is not counted.
    """
    rows = Counter(shape.depths[node] for node in set(shape.parents[1:])).values()
    passes: Counter[Pass] = Counter(("draft", level, int(context)) for level in rows)
    passes["target", len(shape), int(context)] = 1
    return Work(expected_tokens(shape, rates), 1.0, float(shape.guesses), passes)


@checked
def tree_gains(
    rates: Rates,
    tables: Mapping[str, PassTable],
    *,
    budgets: Sequence[int],
    depths: Sequence[int],
    widths: Sequence[int],
    overhead: Overhead = NO_OVERHEAD,
    plain: Overhead = NO_OVERHEAD,
    context: int = 256,
) -> list[Gain]:
    """The speed-up of the best tree of every budget, depth and width, by seconds of "target" and
    "draft" passes, with the overhead of a round and that of a plain one; a width of n takes the
    first n of each vector of rates.
    """
    if not (budgets and depths and widths):
        raise ValueError("give at least one budget, depth and width to try")
    alone = plain_work(context=context).tokens_per_second(tables, plain)
    vectors = [list(vector) for vector in rates]
    found = []
    for width, depth in product(map(int, widths), map(int, depths)):
        narrow = [vector[:width] for vector in vectors]
        largest = best_tree(narrow, max(budgets), depth)
        for budget in map(int, budgets):
            shape = Shape(largest.parents[: budget + 1])  # a beginning is the best smaller tree
            work = tree_work(shape, narrow, context=context)
            speed = work.tokens_per_second(tables, overhead)
            found.append(Gain(budget, depth, width, speed / alone))
    return found


def _round_costs(
    lengths: Sequence[int], verify: Verify | None, more: float
) -> Float64[np.ndarray, " lengths"]:
    """What a round costs by its guesses, beside the draft's passes."""
    return np.array([verify(int(one) + 1) if verify else 1.0 for one in lengths]) + float(more)
