"""Expected tokens per round and speed-up of a chain, from how often a guess is accepted: one rate
for all depths, independent guesses, costs relative to a target pass over one row.
"""

import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import Annotated

from specdec_lib.core.kinds import Within, checked

LONGEST = 2**16  # guesses of a chain
Rate = Annotated[Real, Within(0, 1)]
Length = Annotated[Integral, Within(0, LONGEST)]
Verify = Callable[[int], float]
"""Maps the rows of a target pass to its seconds, over those of a pass over one row."""


@checked
def chain_tokens(acceptance_rate: Rate, length: Length) -> float:
    """Expected tokens per round: (1 − α^(γ+1)) / (1 − α) (Leviathan et al. 2023, equation 1)."""
    return math.fsum(float(acceptance_rate) ** depth for depth in range(int(length) + 1))


def speed_up(
    tokens_per_round: Real, *, draft_passes: Real, draft_cost: Real, verify: Real = 1.0
) -> float:
    """How many times faster than plain decoding: tokens ÷ (draft_passes · draft_cost + verify),
    with the sequential passes of a round: a chain's length, a tree's depth.
    """
    if not (tokens_per_round >= 1 and draft_passes >= 0 and draft_cost >= 0 and verify > 0):
        got = f"{tokens_per_round}, {draft_passes}, {draft_cost} and {verify}"
        raise ValueError(
            f"a round has a token, draft passes at a cost and a target pass, got {got}"
        )
    return float(tokens_per_round / (draft_passes * draft_cost + verify))


def chain_speed_up(
    acceptance_rate: Real, length: Integral, draft_cost: Real, verify: Verify | None = None
) -> float:
    """The speed-up of a chain of one draft pass per guess; a `verify` of None is 1 for any rows, as
    in Leviathan et al. 2023, theorem 3.8.
    """
    cost = 1.0 if verify is None else verify(int(length) + 1)
    tokens = chain_tokens(acceptance_rate, length)
    return speed_up(tokens, draft_passes=length, draft_cost=draft_cost, verify=cost)
