"""The price of time: which draft to use in which situation, and what a setting's gain hangs on.

Rounds are the cycles of a renewal process, so the speed in the long run is R = E[tokens] ÷
E[seconds], a ratio of means. The policy with the largest R takes, in every situation, the draft
with the largest t − λ c, where λ = R is the price of time (Dinkelbach 1967): as long as the
situations come as often, whichever draft is used.
"""

from collections.abc import Hashable, Mapping, Sequence
from operator import mul
from typing import NamedTuple

from specdec_lib.core.kinds import checked
from specdec_lib.theory.work import NO_OVERHEAD, Overhead, PassTable, Work

STEPS = 50  # the price rises in every step but the last, among finitely many policies
SAME = 1e-12
PRIOR = 60.0  # rounds in a situation after which its own mean counts as much as that of all


class Tally(NamedTuple):
    """A number of rounds, and the tokens and seconds of all of them."""

    rounds: float
    tokens: float
    seconds: float

    def worth(self, price: float) -> float:
        """t − λ c, with λ the price of a second in tokens."""
        return self.tokens - price * self.seconds


class Policy(NamedTuple):
    """A draft per situation, by its name, and the tokens per second of them together."""

    choice: tuple[Hashable, ...]
    price: float


class Margin(NamedTuple):
    """What the gain of a setting over plain decoding hangs on.

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
    """Means per round of each situation, drawn towards the mean of all by so many rounds of it;
    ValueError if no situation has a round.
    """
    total = Tally(*map(sum, zip(*tallies, strict=True)))
    if not total.rounds > 0:
        raise ValueError(f"tallies need a round in some situation, got {list(tallies)}")
    mean = [value / total.rounds for value in total]
    return [
        Tally(1.0, *((one[at] + rounds * mean[at]) / (one.rounds + rounds) for at in (1, 2)))
        for one in tallies
    ]


@checked
def best_policy(means: Mapping[Hashable, Sequence[Tally]], shares: Sequence[float]) -> Policy:
    """The draft for each situation with which tokens come fastest; of equals the first.

    means     per draft and situation the tokens and seconds of one round, as `smoothed` gives
    shares    of rounds in each situation, whichever draft is used
    """
    if not means or {len(its) for its in means.values()} != {len(shares)}:
        got = f"{len(means)} and {len(shares)}"
        raise ValueError(f"a policy needs drafts with a tally per situation, got {got}")

    def worthiest(place: int, price: float) -> Hashable:
        return max(means, key=lambda name: means[name][place].worth(price))

    choice, price = (), 0.0
    for _ in range(STEPS):
        before, choice = price, tuple(worthiest(place, price) for place in range(len(shares)))
        taken = [means[name][place] for place, name in enumerate(choice)]
        _, tokens, seconds = (sum(map(mul, shares, column)) for column in zip(*taken, strict=True))
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
    """What the gain of `work` over `plain`, on the same text, hangs on."""
    alone = plain.seconds(tables, plain_overhead) / plain.tokens  # seconds per token
    whole, drafts, saved = work.seconds(tables, overhead), 0.0, 0.0
    for (model, rows, context), count in work.passes.items():
        seconds = tables[model].at(rows, context)
        if model != work.target:
            drafts += count * seconds
        else:
            saved += count * (seconds - tables[model].at(1, context))
    budget = alone * work.tokens - (whole - drafts)
    return Margin(
        work.tokens_per_round,
        whole / work.rounds / alone,
        budget / drafts if drafts else float("inf"),
        alone * work.tokens / (whole - drafts),
        alone * work.tokens / (whole - max(0.0, saved)),
    )
