"""Measured acceptance rates by rank, which score the guesses of a tree before it is verified."""

import bisect
import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

from specdec_lib.core.kinds import Within, checked

Probability = Annotated[float, Within(0, 1)]


@checked
@dataclass(frozen=True)
class MatchTable:
    """Acceptance rate by rank, and maybe by gap: P(child accepted | parent accepted).

    rates    by rank, for any gap, never rising; beyond the last rank each is half the one before
    edges    bin edges of the gap in nats, ascending; empty if gaps do not matter
    binned   rates [len(edges) + 1, len(rates)]: one row per gap bin, by rank

    A gap on an edge belongs to the bin above it. The gap of a later sibling is how far its noisy
    log-probability lies below the first's; that of the first is how far the second lies below it.
    """

    rates: tuple[Probability, ...] = (0.75, 0.16, 0.04, 0.03)
    name: str = "default"
    edges: tuple[float, ...] = ()
    binned: tuple[tuple[Probability, ...], ...] = ()

    def __post_init__(self) -> None:
        if list(self.rates) != sorted(self.rates, reverse=True) or not self.rates:
            raise ValueError(f"match rates are probabilities that never rise, got {self.rates}")
        wanted = [len(self.rates)] * (len(self.edges) + 1 if self.edges else 0)
        if list(self.edges) != sorted(set(self.edges)) or list(map(len, self.binned)) != wanted:
            raise ValueError(
                "a table has rising edges and one bin more than edges, each of"
                f" {len(self.rates)} rates, got {self.edges} and {self.binned}"
            )

    @property
    def bins(self) -> tuple[str, ...]:
        """The names of the gap's bins in nats, such as "0–0.5"; raises ValueError without edges."""
        if not self.edges:
            raise ValueError(f"match table {self.name!r} does not look at gaps")
        names = [f"{low:g}–{high:g}" for low, high in pairwise((0.0, *self.edges))]
        return (*names, f"{self.edges[-1]:g} and more")

    def rate(self, rank: int, gap: float | None = None) -> float:
        """The rate of a child of rank 0, 1, …, whose gap in nats counts if the table has edges."""
        rates = self.rates
        if gap is not None and self.edges:
            rates = self.binned[bisect.bisect_right(self.edges, gap)]
        last = len(rates) - 1
        return rates[rank] if rank <= last else rates[last] * 0.5 ** (rank - last)


def leading(tokens: list[int], gaps: list[float], k: int) -> tuple[list[int], list[float]]:
    """Tokens and gaps of `Chance.rank` (of 2 or more) cut to k, the first gap being the lead."""
    lead = gaps[1] if len(gaps) > 1 else math.inf
    return tokens[:k], [lead, *gaps[1:k]]
