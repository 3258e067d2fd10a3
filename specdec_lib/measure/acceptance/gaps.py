"""Which gap a guess had, told from its confidence."""

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

    Where two bins of a rank have the same rate, the gap is told by the first of them.  Raises
    ValueError if the table does not look at gaps, or gave no guess its confidence.
    """
    if not match.edges:
        raise ValueError(f"match table {match.name!r} does not look at gaps")
    names = [f"{low:g}–{high:g}" for low, high in pairwise((0.0, *match.edges))] + [
        f"{match.edges[-1]:g} and more"
    ]
    middles = [0.0, *match.edges]  # a gap at an edge lies in the bin above it
    known: dict[int, list[float]] = {}
    places = []
    for rank, confidence in zip(table["rank"], table["confidence"], strict=True):
        if rank not in known:
            known[rank] = [match.rate(rank, gap) for gap in middles]
        places.append(
            next(
                (
                    place
                    for place, rate in enumerate(known[rank])
                    if math.isclose(rate, confidence, rel_tol=SAME)
                ),
                None,
            )
        )
    found = table.assign(
        gap=[None if place is None else names[place] for place in places], place=places
    ).dropna(subset=["gap"])
    if found.empty:
        raise ValueError(
            f"no guess has a confidence of match table {match.name!r}: were they scored by another,"
            " or at temperature 0?"
        )
    return found.sort_values("place", kind="stable").drop(columns="place")
