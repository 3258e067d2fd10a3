"""Measured acceptance rates by rank, which score the guesses of a tree before it is verified."""

import bisect
import math
from dataclasses import dataclass
from itertools import pairwise

from specdec_lib.core.kinds import checked


@checked
@dataclass(frozen=True)
class MatchTable:
    """Acceptance rate by rank, and maybe by gap: P(child accepted | parent accepted).

    rates    by rank, for any gap, never rising; beyond the last rank each is half the one before
    name     shown in records and figures
    edges    bin edges of the gap in nats, ascending; empty if gaps do not matter
    binned   rates [len(edges) + 1, len(rates)]: one row per gap bin, by rank

    A gap on an edge belongs to the bin above it. The gap of a later sibling is how far its noisy
    log-probability lies below the first's; that of the first is how far the second lies below it.
    """

    rates: tuple[float, ...] = (0.75, 0.16, 0.04, 0.03)
    name: str = "default"
    edges: tuple[float, ...] = ()
    binned: tuple[tuple[float, ...], ...] = ()

    def __post_init__(self) -> None:
        falling = not any(later > earlier for earlier, later in pairwise(self.rates))
        if not (self.rates and falling and _are_probabilities(self.rates)):
            raise ValueError(f"match rates are probabilities that never rise, got {self.rates}")
        wanted, ranks = len(self.edges) + 1 if self.edges else 0, len(self.rates)
        if list(self.edges) != sorted(set(self.edges)) or len(self.binned) != wanted:
            got = f"{self.edges} and {len(self.binned)} bins"
            raise ValueError(f"a table has rising edges and one bin more than edges, got {got}")
        if not all(len(row) == ranks and _are_probabilities(row) for row in self.binned):
            raise ValueError(f"each bin holds {ranks} probabilities, got {self.binned}")

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


def _are_probabilities(rates: tuple[float, ...]) -> bool:
    return all(0 <= rate <= 1 for rate in rates)


def leading(tokens: list[int], gaps: list[float], k: int) -> tuple[list[int], list[float]]:
    """Cut what `Chance.rank` gave for at least 2 tokens to k, and make the first gap the lead over
    the second (inf without one), as `MatchTable` needs it.
    """
    lead = gaps[1] if len(gaps) > 1 else math.inf
    return tokens[:k], [lead, *gaps[1:k]]
