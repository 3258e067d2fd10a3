"""Closed forms of the cascade paper, with independent guesses, one acceptance rate per pair of
models, and costs of a pass over those of a target pass. Source: Chen et al. 2024 (cascade
speculative drafting), section 4 and appendix C.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import accumulate, product
from numbers import Integral, Real
from operator import mul
from typing import NamedTuple

from specdec_lib.core.kinds import checked
from specdec_lib.theory.chains import Length, Rate, chain_tokens, speed_up


class BestLengths(NamedTuple):
    """Lengths of the drafters' turns, and the speed-up (EWIF) that they give."""

    lengths: tuple[int, ...]
    speed_up: float


@checked
def phi(acceptance_rate: Rate, length: Length, x: Real) -> float:
    """The expected value of x^n, with n the tokens that a chain's round emits. Source: theorem 4.1,
    1 + (x − 1) (1 − (αx)^(k+1)) / (1 − αx), with the fraction as a sum, as αx may be 1.
    """
    rate = float(acceptance_rate) * float(x)
    try:
        return 1 + (float(x) - 1) * math.fsum(rate**power for power in range(int(length) + 1))
    except OverflowError as error:
        raise ValueError(f"x^n is too large for a number, got {x} and {length}") from error


@checked
def vertical_tokens(
    acceptance_rate: Rate, inner_rate: Rate, length: Length, reviews: Length
) -> float:
    """Expected tokens per target pass of a vertical cascade of two drafters.

    acceptance_rate, inner_rate    of the draft's tokens by the target; of the scout's by the draft
    length, reviews                of the scout's chain per review; draft passes per target pass

    Source: theorem 4.3, (1 − α φ(α)^n) / (1 − α), as a sum, which also holds at α = 1.
    """
    shrunk = phi(inner_rate, length, acceptance_rate)
    kept = chain_tokens(acceptance_rate * inner_rate, length)
    return shrunk**reviews + kept * math.fsum(shrunk**earlier for earlier in range(int(reviews)))


@checked
def relay_speed_up(
    rates: Sequence[Rate], costs: Sequence[Real], lengths: Sequence[Integral]
) -> float:
    """The EWIF of a horizontal cascade: drafters take turns along one chain, each guessing
    `lengths` tokens one by one. Source: theorem 4.5, which table 1 is made of.
    """
    if not len(rates) == len(costs) == len(lengths) or min((*costs, *lengths), default=0) < 0:
        got = f"{list(rates)}, {list(costs)} and {list(lengths)}"
        raise ValueError(f"a rate, a cost and a length of 0 or more per drafter, got {got}")
    turns = [drafter for drafter, length in enumerate(lengths) for _ in range(int(length))]
    tokens = 1 + math.fsum(accumulate((float(rates[drafter]) for drafter in turns), mul))
    return speed_up(tokens, draft_passes=1, draft_cost=math.fsum(costs[one] for one in turns))


@checked
def best_relay(rates: Sequence[Real], costs: Sequence[Real], *, longest: Length) -> BestLengths:
    """The turns of 0 to `longest` with the largest `relay_speed_up`, the shorter of equals."""
    every = product(range(int(longest) + 1), repeat=len(rates))
    tried = (BestLengths(lengths, relay_speed_up(rates, costs, lengths)) for lengths in every)
    return max(tried, key=lambda one: one.speed_up)


@checked
def counted_speed_up(
    tokens: Real, passes: Mapping[str, Real], prices: Mapping[str, Real], *, target: str
) -> float:
    """The SWI: emitted tokens at the target's price ÷ all counted passes at their own, both by
    model, in one unit: seconds, parameters, …; models that did not run may have a price.

    Source: section 5.1, standardized walltime improvement.
    """
    if missing := sorted(passes.keys() - prices.keys()):
        known = ", ".join(prices) or "none"
        named = ", ".join(missing)
        raise ValueError(f"a model that ran needs a price: {named} has none; there are {known}")
    paid = [prices[model] for model in passes]
    fits = all(value >= 0 for value in (tokens, *passes.values(), *paid))
    if not (fits and passes.get(target, 0) > 0 and prices[target] > 0):
        got = f"{target!r}, tokens={tokens}, passes {dict(passes)}, prices {dict(prices)}"
        raise ValueError(f"the target's passes and price are above 0, others not below; got {got}")
    cost = math.fsum(count * price for count, price in zip(passes.values(), paid, strict=True))
    return float(tokens * prices[target] / cost)
