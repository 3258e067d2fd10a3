"""The best lengths of a cascade by closed form: over reviews and a scout's length, over turns, over whole K matrices."""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from numbers import Integral, Real
from typing import NamedTuple

from specdec_lib.theory.cascades import relay_speed_up, vertical_speed_up
from specdec_lib.theory.generating import CascadeShape, cascade_speed_up

Choices = Sequence[Sequence[Iterable[Integral]]]
"""choices[r][c]: the values that an entry of a K matrix may take; below the diagonal nothing but 0 may stand, or nothing at all."""

LARGEST_SEARCH = 200_000  # matrices


class BestLengths(NamedTuple):
    """Lengths, and the speed-up (EWIF) that they give."""

    lengths: tuple[int, ...]
    speed_up: float


class BestCascade(NamedTuple):
    """A K matrix, and the speed-up (EWIF) that it gives."""

    shape: CascadeShape
    speed_up: float


def best_vertical(
    acceptance_rate: Real, inner_rate: Real, *, draft_cost: Real, scout_cost: Real = 0.0, reviews: Iterable[Integral], lengths: Iterable[Integral]
) -> BestLengths:
    """The reviews n and the scout's length k with the largest `vertical_speed_up`, of all pairs of those given; the lengths are (n, k).

    A tie goes to the first, reviews before lengths.  Raises ValueError if there is nothing to try, and as `vertical_speed_up` does.
    """
    pairs = itertools.product(reviews, tuple(lengths))
    tried = (
        BestLengths((n, k), vertical_speed_up(acceptance_rate, inner_rate, k, n, draft_cost=draft_cost, scout_cost=scout_cost)) for n, k in pairs
    )
    return _best(tried, "reviews and lengths")


def best_relay(rates: Sequence[Real], costs: Sequence[Real], *, longest: Integral) -> BestLengths:
    """The length of each drafter's turn, 0 to `longest`, with the largest `relay_speed_up`: all are tried, (longest + 1) to the drafters.

    rates, costs    per drafter in the order of their turns

    A tie goes to the shorter turn of the earliest drafter that differs.
    Raises ValueError if `longest` is negative, and as `relay_speed_up` does.
    """
    every = itertools.product(range(int(longest) + 1), repeat=len(rates))
    return _best((BestLengths(lengths, relay_speed_up(rates, costs, lengths)) for lengths in every), "lengths")


def best_cascade(choices: Choices, rates: Sequence[Sequence[Real]], costs: Sequence[Real], *, counted: str = "tokens") -> BestCascade:
    """The K matrix with the largest `cascade_speed_up` of all that the choices allow: every one is tried, which takes up to 1 ms each.

    A tie goes to the one that stands first among the choices, the last row's first.
    Raises ValueError if there are more than 200,000 matrices (`climbed_cascade` finds good ones of more), or none, and as `cascade_speed_up` does.
    """
    allowed = _allowed(choices)
    size = math.prod(map(len, allowed.values()))
    if size > LARGEST_SEARCH:
        raise ValueError(f"at most {LARGEST_SEARCH} K matrices are tried one by one, got {size}; climbed_cascade needs fewer, with a weaker promise")
    order = sorted(allowed, key=lambda place: (-place[0], place[1]))  # the first row varies fastest: what lies below is known already
    every = (dict(zip(order, values, strict=True)) for values in itertools.product(*(allowed[place] for place in order)))
    shapes = (_shape(entries, len(choices), counted) for entries in every)
    return _best((BestCascade(shape, cascade_speed_up(shape, rates, costs)) for shape in shapes), "K matrices")


def climbed_cascade(start: CascadeShape, choices: Choices, rates: Sequence[Sequence[Real]], costs: Sequence[Real]) -> BestCascade:
    """A K matrix that no change of one entry or of two at once, within the choices, makes faster; it is at least as fast as `start`.

    Not always the best of all: `best_cascade` promises that.
    Raises ValueError if the start is not as large as the choices or not among them, and as `cascade_speed_up` does.
    """
    allowed = _allowed(choices)
    if start.drafters != len(choices) or any(start.matrix[row][column] not in values for (row, column), values in allowed.items()):
        raise ValueError(f"the start is one of the choices, of {len(choices)} drafters; got {start.matrix}")
    best = BestCascade(start, cascade_speed_up(start, rates, costs))
    while True:
        shapes = (_shape(entries, len(choices), start.counted) for entries in _changed(best.shape, allowed))
        found = _best(itertools.chain([best], (BestCascade(shape, cascade_speed_up(shape, rates, costs)) for shape in shapes)), "K matrices")
        if found.speed_up <= best.speed_up * (1 + 1e-12):
            return best
        best = found


def _changed(shape: CascadeShape, allowed: dict[tuple[int, int], tuple[int, ...]]) -> Iterator[dict[tuple[int, int], int]]:
    """The entries with one or two of them changed."""
    entries = {(row, column): shape.matrix[row][column] for row, column in allowed}
    for one, other in itertools.combinations_with_replacement(allowed, 2):
        if one == other:
            yield from (entries | {one: value} for value in allowed[one])
        else:
            yield from (entries | {one: first, other: second} for first, second in itertools.product(allowed[one], allowed[other]))


def _allowed(choices: Choices) -> dict[tuple[int, int], tuple[int, ...]]:
    """The choices of each entry on or above the diagonal."""
    rows = [[tuple(values) for values in row] for row in choices]
    if not rows or any(len(row) != len(rows) for row in rows):
        raise ValueError(f"choices have a row and a column per drafter, got {len(rows)} rows of {[len(row) for row in rows]}")
    if any(any(values) for number, row in enumerate(rows) for values in row[:number]):
        raise ValueError(f"below the diagonal of a K matrix stands 0, got the choices {rows}")
    return {(number, column): row[column] for number, row in enumerate(rows) for column in range(number, len(rows))}


def _shape(entries: dict[tuple[int, int], int], drafters: int, counted: str) -> CascadeShape:
    return CascadeShape(tuple(tuple(entries.get((row, column), 0) for column in range(drafters)) for row in range(drafters)), counted)


def _best(tried: Iterable, what: str) -> BestLengths | BestCascade:
    """The first of the fastest."""
    best = max(tried, key=lambda one: one.speed_up, default=None)
    if best is None:
        raise ValueError(f"there are no {what} to try")
    return best
