"""Who drafts for whom: the best vertical order of models, from the seconds of their passes and how often they agree.

A model that decodes losslessly under its own drafts gives its own law, so how often its reviewer agrees does not depend on how it is sped up, and
a level is known above by its seconds per token alone. That makes the best hierarchy a programme over models, from the cheapest up. It fails
where difficulty is shared: tokens that are easy for one model are easy for all.
"""

import math
from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import NamedTuple

from specdec_lib.theory.chains import chain_law, chain_tokens
from specdec_lib.theory.generating import RateMatrix, checked_rates

PassSeconds = Callable[[int], float]  # rows of a pass -> its seconds, in any unit that all models share


class Level(NamedTuple):
    """How a model makes tokens at least cost: itself, or by reviewing so many guesses of a drafter.

    drafter    the number of the model that guesses; None if it makes every token itself
    length     guesses per review
    seconds    per token in the long run, or in `cheapest_drafts` until all tokens wanted are there
    """

    drafter: int | None
    length: int
    seconds: float


def best_hierarchy(passes: Sequence[PassSeconds], rates: Sequence[Sequence[Real]], *, longest: Integral) -> list[Level]:
    """For each model, the target first: the drafter and the length with the fewest seconds per token, in the long run.

    passes     strongest first; the last may be a look-up, at 0 seconds
    rates      rates[r][c] = P(a token of model c + 1 is kept by model r), 0 below the diagonal: the matrix of `expected_round`
    longest    guesses per review to try

    Any drafter may be skipped. All is exact if each level keeps what its last review hands up beyond the length wanted; where that is thrown
    away, a guess costs more: `cheapest_drafts`. A tie goes to the stronger drafter, then the shorter length.
    Raises ValueError unless there is one model more than rows of rates, rates lie in [0, 1], `longest` is at least 1, and seconds are 0 or
    more, the target's above 0.
    Source: t_i = min over j, k of (T_i(k + 1) + k t_j) / E_k(α_ij), as in the generalised shortest path of HSD (arXiv 2510.19705).
    """
    checked = _checked(passes, rates, longest)
    levels: list[Level] = []  # of the models from `model` on
    for model in range(len(passes) - 1, -1, -1):
        best = Level(None, 0, float(passes[model](1)))
        for drafter, level in enumerate(levels, model + 1):
            for length in range(1, int(longest) + 1):
                cost = passes[model](length + 1) + length * level.seconds
                seconds = cost / chain_tokens(checked[model][drafter - 1], length)
                best = best if best.seconds <= seconds else Level(drafter, length, seconds)
        levels.insert(0, best)
    return levels


def draft_seconds(round_seconds: Real, law: Sequence[Real], tokens: Integral) -> list[float]:
    """Seconds until 0, 1, … `tokens` tokens are there, if rounds cost the same and surplus is thrown away: G(k) = C + Σ P(s) G(k − s).

    law    P(a round emits n tokens), n = 1, 2, …

    Raises ValueError if the law does not sum to 1 or the tokens or seconds are negative.
    """
    if not (abs(math.fsum(law) - 1) < 1e-9 and tokens >= 0 and round_seconds >= 0):
        raise ValueError(f"a law sums to 1, tokens and seconds are 0 or more; got {math.fsum(law)}, {tokens}, {round_seconds}")
    found = [0.0]
    for wanted in range(1, int(tokens) + 1):
        found.append(_round(float(round_seconds), law, found[:wanted]))
    return found


def cheapest_drafts(passes: Sequence[PassSeconds], rates: Sequence[Sequence[Real]], *, tokens: Integral) -> list[list[Level]]:
    """For each model, the target first, and 1, 2, … `tokens` tokens wanted: what to do next, and the least seconds until they are there.

    The arguments are those of `best_hierarchy`. Surplus is thrown away, so a level decides anew, after each review, whom to ask for how many
    of the tokens that are missing; the best of all such ways, if a reviewer may only ask for fewer guesses than it wants tokens.
    Raises ValueError as `best_hierarchy` does.
    """
    checked = _checked(passes, rates, tokens)
    levels: list[list[Level]] = []
    for model in range(len(passes) - 1, -1, -1):
        found, seconds = [], [0.0]
        for wanted in range(1, int(tokens) + 1):
            best = Level(None, 0, passes[model](1) + seconds[wanted - 1])
            for drafter, drafts in enumerate(levels, model + 1):
                for length in range(1, wanted):
                    law = chain_law(checked[model][drafter - 1], length)
                    total = _round(passes[model](length + 1) + drafts[length - 1].seconds, law, seconds)
                    best = best if best.seconds <= total else Level(drafter, length, total)
            found.append(best)
            seconds.append(best.seconds)
        levels.insert(0, found)
    return levels


def _round(cost: float, law: Sequence[Real], known: Sequence[float]) -> float:
    """The cost of a round and of what is then missing, from what fewer tokens cost: `known` from 0 on."""
    wanted = len(known)
    return cost + math.fsum(chance * known[wanted - emitted] for emitted, chance in enumerate(law, 1) if emitted < wanted)


def _checked(passes: Sequence[PassSeconds], rates: Sequence[Sequence[Real]], longest: Integral) -> RateMatrix:
    if len(passes) < 2 or longest < 1:
        raise ValueError(f"a hierarchy has at least 2 models and a length of at least 1, got {len(passes)} and {longest}")
    seconds = [one(1) for one in passes]
    if not (seconds[0] > 0 and min(seconds) >= 0):
        raise ValueError(f"passes take 0 seconds or more, the target's above 0; got {seconds} over one row")
    return checked_rates(len(passes) - 1, rates)
