"""Where a chain pays: speed-up over how often a guess is accepted and what a draft pass costs, and
how far away break-even is.
"""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np

from specdec_lib.theory.chains import Verify, chain_speed_up, chain_tokens

CLOSE = 1e-4  # of a break-even rate


class MapCell(NamedTuple):
    """The best chain at one acceptance rate and one cost of a draft pass."""

    acceptance_rate: float
    cost: float
    speed_up: float
    length: int


def chain_map(
    rates: Sequence[Real],
    costs: Sequence[Real],
    verify: Verify | None = None,
    *,
    lengths: Sequence[Integral] = range(1, 13),
    overhead: Real = 0.0,
) -> list[MapCell]:
    """The speed-up of the best chain of these lengths for every pair of an acceptance rate and a
    cost, rates outside; the shortest of equals.

    costs       seconds of a draft pass over those of a target pass over one row
    verify      what a target pass over so many rows costs; None takes all as long as one row
    lengths     guesses per round that may be chosen
    overhead    of a round with guesses beyond one of plain decoding, outside the models, in target
                passes

    Equal to `chain_speed_up` with the overhead added to `verify`.
    Raises ValueError if there is no length, one below 1, or a rate, cost or overhead is out of
    range.
    """
    if not lengths or min(lengths) < 1 or not min(costs, default=0) >= 0 or not overhead >= 0:
        raise ValueError(
            "a map needs lengths of at least 1, and costs and an overhead of 0 or more, got"
            f" {list(lengths)}, {list(costs)}, {overhead}"
        )
    tokens = np.array([[chain_tokens(rate, length) for length in lengths] for rate in rates])
    fixed = np.array(
        [(1.0 if verify is None else verify(int(length) + 1)) + overhead for length in lengths],
        dtype=float,
    )
    price = np.array(costs, dtype=float)[:, None] * np.array(lengths) + fixed
    speed = tokens[:, None, :] / price
    best = speed.argmax(axis=2)
    return [
        MapCell(
            float(rate),
            float(cost),
            float(speed[row, column, best[row, column]]),
            int(lengths[best[row, column]]),
        )
        for row, rate in enumerate(rates)
        for column, cost in enumerate(costs)
    ]


class BreakEven(NamedTuple):
    """How good a draft must be.

    acceptance_rate    the least at which some chain pays, at the cost given; None where none does
    cost               the most that a draft pass may cost, at the rate given; None where even a
                       free one does not pay
    """

    acceptance_rate: float | None
    cost: float | None


def chain_break_even(
    acceptance_rate: Real,
    cost: Real,
    verify: Verify | None = None,
    *,
    lengths: Sequence[Integral] = range(1, 13),
    overhead: Real = 0.0,
) -> BreakEven:
    """From which acceptance rate on, and up to which cost, the best of these chains is faster than
    plain decoding; the rest as for `chain_map`.

    Raises ValueError as `chain_map` does.
    """
    chain_map(
        [acceptance_rate], [cost], verify, lengths=lengths, overhead=overhead
    )  # refuses what is out of range

    def slow(length: Integral) -> float:
        return (1.0 if verify is None else verify(int(length) + 1)) + float(overhead)

    def best(rate: float) -> float:
        return max(
            chain_speed_up(rate, length, cost, lambda rows: slow(rows - 1)) for length in lengths
        )

    most = max(
        (chain_tokens(acceptance_rate, length) - slow(length)) / length for length in lengths
    )
    if best(1.0) <= 1:
        return BreakEven(None, most if most >= 0 else None)
    low, high = 0.0, 1.0
    while high - low > CLOSE:
        middle = (low + high) / 2
        low, high = (low, middle) if best(middle) > 1 else (middle, high)
    return BreakEven(high, most if most >= 0 else None)
