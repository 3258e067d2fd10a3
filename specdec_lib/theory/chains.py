"""Closed forms of chains and cascades: one acceptance rate per pair of models for all depths,
independent guesses, and costs relative to a target pass over one row.

Source of the cascades: Chen et al. 2024 (cascade speculative drafting), section 4 and appendix C.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, product
from operator import mul
from typing import Annotated, NamedTuple

from specdec_lib.core.kinds import Within, checked

LONGEST = 2**16  # guesses of a chain
Rate = Annotated[float, Within(0, 1)]
Cost = Annotated[float, Within(0)]
Length = Annotated[int, Within(0, LONGEST)]
Verify = Callable[[int], float]
"""Maps the rows of a target pass to its seconds, over those of a pass over one row."""


@checked
def chain_tokens(acceptance_rate: Rate, length: Length) -> float:
    """Expected tokens per round: (1 − α^(γ+1)) / (1 − α) (Leviathan et al. 2023, equation 1)."""
    return math.fsum(float(acceptance_rate) ** depth for depth in range(int(length) + 1))


@checked
def speed_up(
    tokens_per_round: Annotated[float, Within(1)],
    *,
    draft_passes: Cost,
    draft_cost: Cost,
    verify: Annotated[float, Within(2.0**-50)] = 1.0,
) -> float:
    """How many times faster than plain decoding: tokens ÷ (draft_passes · draft_cost + verify),
    with the sequential passes of a round: a chain's length, a tree's depth.
    """
    return float(tokens_per_round / (draft_passes * draft_cost + verify))


def chain_speed_up(
    acceptance_rate: float, length: int, draft_cost: float, verify: Verify | None = None
) -> float:
    """The speed-up of a chain of one draft pass per guess; a `verify` of None is 1 for any rows, as
    in Leviathan et al. 2023, theorem 3.8.
    """
    cost = 1.0 if verify is None else verify(int(length) + 1)
    tokens = chain_tokens(acceptance_rate, length)
    return speed_up(tokens, draft_passes=length, draft_cost=draft_cost, verify=cost)


@checked
def phi(acceptance_rate: Rate, length: Length, x: Rate) -> float:
    """The expected value of x^n, with n the tokens that a chain's round emits. Source: theorem 4.1,
    1 + (x − 1) (1 − (αx)^(k+1)) / (1 − αx), with the fraction as a sum, as αx may be 1.
    """
    return 1 + (float(x) - 1) * chain_tokens(float(acceptance_rate) * float(x), length)


@checked
def vertical_tokens(rate: Rate, inner_rate: Rate, length: Length, reviews: Length) -> float:
    """Expected tokens per target pass of a vertical cascade of two drafters.

    rate, inner_rate    how often the target accepts the draft's tokens; the draft the scout's
    length, reviews     of the scout's chain per review; draft passes per target pass

    Source: theorem 4.3, (1 − α φ(α)^n) / (1 − α), as a sum, which also holds at α = 1.
    """
    shrunk = phi(inner_rate, length, rate)
    kept = chain_tokens(rate * inner_rate, length)
    return shrunk**reviews + kept * math.fsum(shrunk**earlier for earlier in range(int(reviews)))


@checked
def relay_speed_up(
    rates: Sequence[Rate], costs: Sequence[Cost], lengths: Sequence[Length]
) -> float:
    """The EWIF of a horizontal cascade (here called a relay): drafters take turns along one chain,
    each guessing its number of `lengths` tokens one by one.

    Raises ValueError unless each has a rate, a cost and a length. Source: theorem 4.5, of which
    table 1 is made.
    """
    if not len(rates) == len(costs) == len(lengths):
        raise ValueError(
            "a relay has a rate, a cost and a length per drafter,"
            f" got {len(rates)} rates, {len(costs)} costs and {len(lengths)} lengths"
        )
    drafters = zip(rates, costs, map(int, lengths), strict=True)
    turns = [(float(rate), cost) for rate, cost, length in drafters for _ in range(length)]
    tokens = 1 + math.fsum(accumulate((rate for rate, _ in turns), mul))
    return speed_up(tokens, draft_passes=1, draft_cost=math.fsum(cost for _, cost in turns))


class BestLengths(NamedTuple):
    """Lengths of the drafters' turns, and the speed-up (EWIF) that they give."""

    lengths: tuple[int, ...]
    speed_up: float


@checked
def best_relay(rates: Sequence[float], costs: Sequence[float], *, longest: Length) -> BestLengths:
    """The turns of 0 to `longest` with the largest `relay_speed_up`, the shorter of equals."""
    every = product(range(int(longest) + 1), repeat=len(rates))
    tried = (BestLengths(lengths, relay_speed_up(rates, costs, lengths)) for lengths in every)
    return max(tried, key=lambda one: one.speed_up)


@checked
def counted_speed_up(
    tokens: Cost, passes: Mapping[str, Cost], prices: Mapping[str, Cost], *, target: str
) -> float:
    """The speed-up of any nesting of drafts by counted passes, in the paper the standardised
    walltime improvement (SWI): emitted tokens at the target's price ÷ all passes at their own.

    passes    by model, all of them together
    prices    of one pass, by model, in one unit: seconds, parameters, …; others may be there too

    Raises ValueError for a model that ran without a price, and unless the target ran at a price
    above 0. Source: section 5.1.
    """
    for model in passes:
        if model not in prices:
            raise ValueError(
                f"a model that ran needs a price: {model} has none;"
                f" there are {', '.join(prices) or 'none'}"
            )
    if not (passes.get(target, 0) > 0 and prices[target] > 0):
        raise ValueError(
            f"the target's passes and price are above 0; got {target!r},"
            f" passes {dict(passes)}, prices {dict(prices)}"
        )
    paid = math.fsum(count * prices[model] for model, count in passes.items())
    return float(tokens * prices[target] / paid)
