"""Acceptance rates by depth and rank, from which the value of a tree follows."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from numbers import Real

from scipy.optimize import isotonic_regression

Rates = Iterable[Iterable[Real]]
"""rates[depth − 1][rank] = P(the target takes this child | it took the parent).

The last depth's vector repeats for deeper ones; ranks beyond a vector have rate 0. One vector P for
all depths is [P]. Siblings are different tokens, so a vector sums to at most 1.
"""

SLACK = 1e-9  # above 1, for sums of measured rates


def checked_rates(rates: Rates, *, falling: bool = False) -> tuple[tuple[float, ...], ...]:
    """The rates as tuples.  Raises ValueError if there is no vector, a rate is outside [0, 1], a
    vector sums above 1 or, with `falling`, rises with the rank.
    """
    vectors = tuple(tuple(float(rate) for rate in vector) for vector in rates)
    if not vectors:
        raise ValueError("rates need at least one vector, for depth 1 and all deeper ones")
    for depth, vector in enumerate(vectors, 1):
        for rate in vector:
            if not 0 <= rate <= 1:
                raise ValueError(f"rates lie in [0, 1], got {rate} at depth {depth}")
        if sum(vector) > 1 + SLACK:
            raise ValueError(
                "the target takes at most one of several siblings: rates sum to at most 1, got"
                f" {sum(vector)} at depth {depth}"
            )
        for earlier, later in pairwise(vector):
            if falling and later > earlier:
                raise ValueError(
                    f"rates must not rise with the rank here, got {earlier}, then {later} at depth"
                    f" {depth}; use monotone(rates)"
                )
    return vectors


def at_depth(vectors: Sequence[tuple[float, ...]], depth: int) -> tuple[float, ...]:
    """The vector of a depth, 1 for the root's children."""
    return vectors[min(depth, len(vectors)) - 1]


def monotone(rates: Rates) -> list[list[float]]:
    """The closest vectors (least squares, same sums) that never rise with the rank: mended measured
    rates, where a late rank may by chance lie above an earlier one.
    """
    return [
        isotonic_regression(vector, increasing=False).x.tolist() if vector else []
        for vector in checked_rates(rates)
    ]
