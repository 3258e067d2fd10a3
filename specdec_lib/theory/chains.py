"""From how often a guess is accepted to tokens per round, and from there to a speed-up.

An acceptance rate here is one number for all depths, with independent guesses; real acceptance
comes in easy and hard stretches, for which `survival_tokens` takes what was measured at each depth.
Costs are relative to a target pass over one row, unless said otherwise.
"""

import math
from collections.abc import Callable, Iterable
from itertools import accumulate
from numbers import Integral, Real
from operator import mul

Verify = Callable[[int], float]  # rows of a pass -> its seconds over those of a pass over one row


def chain_tokens(acceptance_rate: Real, length: Integral) -> float:
    """Expected tokens per round of a chain of `length` guesses, the bonus included: (1 − α^(γ+1)) /
    (1 − α), and γ + 1 at α = 1.

    A chain of no guesses gives 1.  Raises ValueError if the rate is outside [0, 1] or the length
    negative.
    Source: Leviathan et al. 2023, equation 1.
    """
    _check_chain(acceptance_rate, length)
    return math.fsum(float(acceptance_rate) ** depth for depth in range(int(length) + 1))


def chain_law(acceptance_rate: Real, length: Integral) -> list[float]:
    """The law behind `chain_tokens`: P(a round emits n tokens) for n = 1 … length + 1.

    Raises ValueError if the rate is outside [0, 1] or the length negative.
    """
    _check_chain(acceptance_rate, length)
    rate, length = float(acceptance_rate), int(length)
    return [*(rate**accepted * (1 - rate) for accepted in range(length)), rate**length]


def survival_tokens(hazards: Iterable[Real]) -> float:
    """Expected tokens per round from acceptance by depth: 1 + the sum of the products from the root
    down.

    hazards    per depth, the first guess first: P(accepted | its parent was), in [0, 1]; one per
               guess, nothing is repeated

    Exact whatever the guesses depend on, if the rates are those of the decoding itself.  Raises
    ValueError if a rate is outside [0, 1].
    """
    hazards = [float(rate) for rate in hazards]
    for rate in hazards:
        _check_rate(rate)
    return 1 + math.fsum(accumulate(hazards, mul))


def speed_up(
    tokens_per_round: Real, *, draft_passes: Real, draft_cost: Real, verify: Real = 1.0
) -> float:
    """How many times faster than one target pass per token: tokens ÷ (draft_passes · draft_cost +
    verify).

    draft_passes    one after the other in a round: a chain's length, a tree's depth
    draft_cost      seconds of one of them over those of a target pass over one row
    verify          the same for the target pass that checks the guesses

    Raises ValueError if a round emits less than one token, a draft count or cost is negative, or
    `verify` is not positive.
    """
    if not tokens_per_round >= 1:
        raise ValueError(f"a round emits at least 1 token, got tokens_per_round={tokens_per_round}")
    _check_cost("draft_passes", draft_passes)
    _check_cost("draft_cost", draft_cost)
    if not verify > 0:
        raise ValueError(f"a target pass takes some time: verify must be above 0, got {verify}")
    return float(tokens_per_round / (draft_passes * draft_cost + verify))


def chain_speed_up(
    acceptance_rate: Real, length: Integral, draft_cost: Real, verify: Verify | None = None
) -> float:
    """The speed-up of a chain whose guesses cost one draft pass each.

    draft_cost    seconds of a draft pass over those of a target pass over one row
    verify        what a target pass over so many rows costs; None takes all as long as one row

    Raises ValueError as `chain_tokens` and `speed_up` do.
    Source: Leviathan et al. 2023, theorem 3.8, where the pass that verifies is flat.
    """
    tokens = chain_tokens(acceptance_rate, length)
    return speed_up(
        tokens,
        draft_passes=length,
        draft_cost=draft_cost,
        verify=1.0 if verify is None else verify(int(length) + 1),
    )


def _check_chain(acceptance_rate: Real, length: Integral) -> None:
    _check_rate(acceptance_rate)
    if length < 0:
        raise ValueError(f"a chain has 0 guesses or more, got length={length}")


def _check_rate(rate: Real) -> None:
    if not 0 <= rate <= 1:
        raise ValueError(f"an acceptance rate lies in [0, 1], got {rate}")


def _check_cost(name: str, cost: Real) -> None:
    if not cost >= 0:
        raise ValueError(f"{name} is 0 or more, got {cost}")
