"""The gap bin that a guess fell into, recovered from its confidence."""

import math
from itertools import pairwise
from typing import TYPE_CHECKING

from specdec_lib.core.tree import MatchTable

if TYPE_CHECKING:
    from pandas import DataFrame

SAME = 1e-6  # a confidence is a quotient of products: equal ones differ in the last digits


def with_gaps(table: "DataFrame", match: MatchTable) -> "DataFrame":
    """The rows of guesses whose confidence this match table gave, with a column `gap`, the name of
    its bin in nats, "0.5–1".

    Where two bins of a rank have the same rate, the first of them is named.  Raises ValueError if
    the table does not look at gaps, or gave no guess its confidence.
    """
    if not match.edges:
        raise ValueError(f"match table {match.name!r} does not look at gaps")
    lows = (0.0, *match.edges)  # a gap at an edge lies in the bin above it
    names = [f"{low:g}–{high:g}" for low, high in pairwise(lows)] + [f"{lows[-1]:g} and more"]

    def bin_of(rank: int, confidence: float) -> int | None:
        rates = enumerate(match.rate(rank, low) for low in lows)
        same = (i for i, rate in rates if math.isclose(rate, confidence, rel_tol=SAME))
        return next(same, None)

    bins = [bin_of(*one) for one in zip(table["rank"], table["confidence"], strict=True)]
    gaps = [None if one is None else names[one] for one in bins]
    found = table.assign(gap=gaps, bin=bins).dropna(subset=["gap"])
    if found.empty:
        raise ValueError(
            f"no guess has a confidence of match table {match.name!r}: were they scored by another,"
            " or at temperature 0?"
        )
    return found.sort_values("bin", kind="stable").drop(columns="bin")
