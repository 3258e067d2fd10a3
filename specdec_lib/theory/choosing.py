"""The price of time: which draft to use in which situation, and what a setting's gain hangs on.

Rounds are the cycles of a renewal process, so the speed in the long run is R = E[tokens] ÷
E[seconds], a ratio of means. The policy with the largest R takes, in every situation, the draft
with the largest t − λ c, where λ = R is the price of time (Dinkelbach 1967): as long as the
situations come as often, whichever draft is used.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from specdec_lib.core.kinds import checked
from specdec_lib.theory.work import NO_OVERHEAD, Overhead, PassTable, Work

STEPS = 50  # the price rises in every step but the last, among finitely many policies
SAME = 1e-12
Name = TypeVar("Name", bound=Hashable)  # of a draft
PRIOR = 60.0  # rounds in a situation after which its own mean counts as much as that of all


class Tally(NamedTuple):
    """A number of rounds, and the tokens and seconds of all of them together.

    At a price of 50 tokens per second, a round of 3 tokens in 0.02 seconds is worth 3 − 50 · 0.02:

    >>> Tally(rounds=1, tokens=3, seconds=0.02).worth(50)
    2.0
    """

    rounds: float
    tokens: float
    seconds: float

    def worth(self, price: float) -> float:
        """The tokens minus what their seconds cost, t − λ c, with λ the `price` of a second."""
        return self.tokens - price * self.seconds


@dataclass(frozen=True)
class Policy(Generic[Name]):
    """A draft per situation, by its name, and the tokens per second of them together."""

    choice: tuple[Name, ...]
    price: float


class Margin(NamedTuple):
    """How sensitive a setting's speed-up over plain decoding is: where it would break even, and
    what it would be if drafts or extra rows were free.

    tokens          emitted per round
    needed          tokens per round from which on it pays
    dearer_drafts   how many times as long the drafts' passes may take before it pays no more; at 0
                    or less even free ones do not pay; infinite without any
    free_drafts     the speed-up if drafts' passes took no time
    free_rows       the speed-up if a pass of the target over many rows took no longer than over one
    """

    tokens: float
    needed: float
    dearer_drafts: float
    free_drafts: float
    free_rows: float


def smoothed(tallies: Sequence[Tally], rounds: float = PRIOR) -> list[Tally]:
    """The means per round of each situation, shrunk to the mean over all situations, which counts
    as much as `rounds` rounds of the situation's own.

    >>> often, never = smoothed([Tally(60, 180, 6.0), Tally(0, 0, 0.0)], rounds=60)
    >>> often.tokens, never.tokens
    (3.0, 3.0)

    Raises ValueError if no situation has a round.
    """
    total = sum(one.rounds for one in tallies)
    if not total > 0:
        raise ValueError(f"tallies need a round in some situation, got {list(tallies)}")
    tokens = sum(one.tokens for one in tallies) / total
    seconds = sum(one.seconds for one in tallies) / total
    return [
        Tally(
            rounds=1.0,
            tokens=(one.tokens + rounds * tokens) / (one.rounds + rounds),
            seconds=(one.seconds + rounds * seconds) / (one.rounds + rounds),
        )
        for one in tallies
    ]


@checked
def best_policy(means: Mapping[Name, Sequence[Tally]], shares: Sequence[float]) -> Policy[Name]:
    """The draft for each situation with which tokens come fastest; of equals the first.

    means     per draft and situation the tokens and seconds of one round, as `smoothed` gives
    shares    of rounds in each situation, whichever draft is used
    """
    if not means or {len(its) for its in means.values()} != {len(shares)}:
        raise ValueError(
            f"a policy needs drafts with a tally per situation, got {len(means)} and {len(shares)}"
        )

    def worthiest(place: int, price: float) -> Name:
        return max(means, key=lambda name: means[name][place].worth(price))

    choice: tuple[Name, ...] = ()
    price = 0.0
    for _ in range(STEPS):
        before = price
        choice = tuple(worthiest(place, price) for place in range(len(shares)))
        taken = [means[name][place] for place, name in enumerate(choice)]
        tokens = sum(share * one.tokens for share, one in zip(shares, taken, strict=True))
        seconds = sum(share * one.seconds for share, one in zip(shares, taken, strict=True))
        price = tokens / seconds
        if price - before <= SAME * price:
            break
    return Policy(choice, price)


def margin(
    work: Work,
    plain: Work,
    tables: Mapping[str, PassTable],
    overhead: Overhead = NO_OVERHEAD,
    plain_overhead: Overhead = NO_OVERHEAD,
) -> Margin:
    """How sensitive the speed-up of `work` over `plain` is, both on the same text."""
    alone = plain.seconds(tables, plain_overhead) / plain.tokens  # seconds per token
    whole = work.seconds(tables, overhead)
    drafts = 0.0
    saved = 0.0
    for (model, rows, context), count in work.passes.items():
        seconds = tables[model].at(rows, context)
        if model != work.target:
            drafts += count * seconds
        else:
            saved += count * (seconds - tables[model].at(1, context))
    budget = alone * work.tokens - (whole - drafts)
    return Margin(
        tokens=work.tokens_per_round,
        needed=whole / work.rounds / alone,
        dearer_drafts=budget / drafts if drafts else float("inf"),
        free_drafts=alone * work.tokens / (whole - drafts),
        free_rows=alone * work.tokens / (whole - max(0.0, saved)),
    )
