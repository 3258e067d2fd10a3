"""Closed forms of the cascade paper: one drafter below another, drafters one after the other, and
the speed-up at standard prices.

An acceptance rate is one number per pair of models, with independent guesses; costs are seconds of
a pass over those of a target pass over one row, and a pass over many rows costs as much as over
one. EWIF (expected walltime improvement factor) is the paper's word for the predicted speed-up, SWI
(standardized walltime improvement) for the one from counted passes at a fixed price each. The EWIF
of a plain chain (corollary 4.2) is `chain_speed_up`.
Source: Chen et al. 2024 (cascade speculative drafting), section 4 and appendix C.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import product
from numbers import Integral, Real
from typing import NamedTuple

from specdec_lib.theory.chains import chain_tokens, survival_tokens


class BestLengths(NamedTuple):
    """Lengths of the drafters' turns, and the speed-up (EWIF) that they give."""

    lengths: tuple[int, ...]
    speed_up: float


def phi(acceptance_rate: Real, length: Integral, x: Real) -> float:
    """The generating function of a chain's round: the expected value of x^n, with n the tokens that
    the round emits.

    Raises ValueError if the rate is outside [0, 1] or the length negative.
    Source: theorem 4.1, 1 + (x − 1) (1 − (αx)^(k+1)) / (1 − αx), with the fraction as a sum, which
    also holds at αx = 1.
    """
    chain_tokens(acceptance_rate, length)  # checks the arguments
    return 1 + (float(x) - 1) * math.fsum(
        (float(acceptance_rate) * float(x)) ** power for power in range(int(length) + 1)
    )


def vertical_tokens(
    acceptance_rate: Real, inner_rate: Real, length: Integral, reviews: Integral
) -> float:
    """Expected tokens per target pass of a vertical cascade of two drafters: the draft reviews a
    fixed number of chains that a scout guesses.

    acceptance_rate    of the draft's tokens by the target
    inner_rate         of the scout's guesses by the draft
    length             of the scout's chain per review
    reviews            passes of the draft per target pass; 0 gives 1

    Raises ValueError if a rate is outside [0, 1], or the length or the reviews are negative.
    Source: theorem 4.3, (1 − α φ(α)^n) / (1 − α), here as φⁿ + (1 + φ + … + φ^(n−1)) Σ (αα')^i,
    which also holds at α = 1.
    """
    shrunk = phi(inner_rate, length, acceptance_rate)
    kept = chain_tokens(acceptance_rate * inner_rate, length)
    if reviews < 0:
        raise ValueError(f"a draft makes 0 reviews or more per target pass, got reviews={reviews}")
    return shrunk**reviews + kept * math.fsum(shrunk**earlier for earlier in range(int(reviews)))


def relay_speed_up(
    rates: Sequence[Real], costs: Sequence[Real], lengths: Sequence[Integral]
) -> float:
    """The EWIF of a horizontal cascade: drafters take turns along one chain, each guessing token by
    token.

    rates, costs    per drafter, in the order of their turns
    lengths         tokens of each; not cumulative

    Raises ValueError unless there is a rate in [0, 1], a cost and a length of 0 or more per
    drafter.
    Source: theorem 4.5, which table 1 is made of.
    """
    if not len(rates) == len(costs) == len(lengths) or any(length < 0 for length in lengths):
        raise ValueError(
            f"a rate, a cost and a length of 0 or more per drafter are needed, got {len(rates)},"
            f" {len(costs)} and {list(lengths)}"
        )
    turns = [drafter for drafter, length in enumerate(lengths) for _ in range(int(length))]
    tokens = survival_tokens(rates[drafter] for drafter in turns)
    return ewif(tokens, (1,) * len(turns), [costs[drafter] for drafter in turns])


def best_relay(rates: Sequence[Real], costs: Sequence[Real], *, longest: Integral) -> BestLengths:
    """The lengths of the drafters' turns, 0 to `longest` each, with the largest `relay_speed_up`.

    rates, costs    per drafter in the order of their turns

    All (longest + 1)^drafters are tried; a tie goes to the shorter turn of the earliest drafter
    that differs.
    Raises ValueError if `longest` is negative, and as `relay_speed_up` does.
    """
    every = product(range(int(longest) + 1), repeat=len(rates))
    tried = (BestLengths(lengths, relay_speed_up(rates, costs, lengths)) for lengths in every)
    best = max(tried, key=lambda one: one.speed_up, default=None)
    if best is None:
        raise ValueError(f"turns are of 0 tokens or more, got longest={longest}")
    return best


def ewif(tokens_per_pass: Real, passes: Sequence[Real], costs: Sequence[Real]) -> float:
    """Expected tokens per target pass ÷ (1 + Σ passes · cost): how many times faster than plain
    decoding.

    passes    of each drafter per target pass
    costs     of each drafter's pass

    Raises ValueError if there is less than one token per pass, not one cost per drafter, or a pass
    or cost is negative.
    Source: section 4, expected walltime improvement factor.
    """
    if not tokens_per_pass >= 1:
        raise ValueError(
            f"a target pass emits at least 1 token, got tokens_per_pass={tokens_per_pass}"
        )
    if len(passes) != len(costs) or not all(value >= 0 for value in (*passes, *costs)):
        raise ValueError(
            "each drafter has its passes and its cost, all 0 or more, got"
            f" {list(passes)} and {list(costs)}"
        )
    drafting = math.fsum(count * cost for count, cost in zip(passes, costs, strict=True))
    return float(tokens_per_pass / (1 + drafting))


def swi(
    tokens: Real, passes: Mapping[str, Real], prices: Mapping[str, Real], *, target: str
) -> float:
    """The speed-up if a pass costs the same whatever is in it: counted tokens at the target's price
    ÷ all counted passes at their own.

    tokens    emitted; plain decoding pays a target pass for each
    passes    by model, the target's among them; a price of 0 is free
    prices    by model, in one unit: seconds, parameters, …; models that did not run may be in it

    Raises ValueError if a model that ran has no price, the target's is not above 0, it made no
    pass, or a count or price is negative.
    Source: section 5.1, standardized walltime improvement.
    """
    missing = sorted(passes.keys() - prices.keys())
    if missing:
        raise ValueError(
            f"every model that ran needs a price: {', '.join(missing)} has none; there are"
            f" {', '.join(prices) or 'none'}"
        )
    if not (passes.get(target, 0) > 0 and prices[target] > 0):
        raise ValueError(
            f"the target makes passes at a price above 0, got {passes.get(target, 0)} of {target!r}"
            f" at {prices.get(target)}"
        )
    paid = [prices[model] for model in passes]
    if not all(value >= 0 for value in (tokens, *passes.values(), *paid)):
        raise ValueError(
            f"counts and prices are 0 or more, got tokens={tokens}, passes {dict(passes)}, prices"
            f" {dict(prices)}"
        )
    cost = math.fsum(count * price for count, price in zip(passes.values(), paid, strict=True))
    return float(tokens * prices[target] / cost)
