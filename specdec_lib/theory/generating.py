"""Cascades of any depth, vertical and horizontal at once: the exact law of what a round emits and
how often each drafter runs.

A batch of tokens that a drafter hands up is a polynomial p(x) in the number of tokens. With p(αx)
in its place, a term is what the same batch weighs if its reviewer, who keeps each token with rate
α, keeps all of it. One programme over the number of tokens there multiplies such polynomials up to
the stop criterion, remembers which drafter made which token, and gives the polynomial that the
reviewer hands up in turn.
Source: the generating functions of Chen et al. 2024 (cascade speculative drafting), section 4,
which composes two drafters, one way or the other; any depth and both ways at once are ours.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np

from specdec_lib.theory.cascades import ewif

COUNTED = ("tokens", "calls")

Matrix = tuple[tuple[Integral, ...], ...]
RateMatrix = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class CascadeShape:
    """A K matrix: what each drafter is asked for, by whom.

    matrix     row 0 belongs to the target, row r to drafter r − 1, column c to drafter c, strongest
               first; entries are increments, not cumulative. The last drafter makes as many guesses
               at once as its entry says; any other hands up what it makes of a review
    counted    "tokens": drafter i is asked while fewer tokens than all entries up to its own are
               there, so that surplus counts and may spare later drafters; "calls": an entry is the
               number of reviews (of the last drafter still its guesses, made once)

    A drafter with a row of zeros hands up one token per pass.
    Raises ValueError unless the matrix is square, upper triangular and of whole numbers of 0 or
    more, or for another word for `counted`.
    """

    matrix: Matrix
    counted: str = "tokens"

    def __post_init__(self) -> None:
        if self.counted not in COUNTED:
            raise ValueError(f"entries count {' or '.join(COUNTED)}, got {self.counted!r}")
        _check_square("a K matrix", self.matrix)
        for row, entries in enumerate(self.matrix):
            if not all(isinstance(entry, Integral) and entry >= 0 for entry in entries):
                raise ValueError(
                    f"the entries of a K matrix are whole numbers of 0 or more, row {row} is"
                    f" {entries}"
                )

    @classmethod
    def of(cls, matrix: Sequence[Sequence[Integral]], counted: str = "tokens") -> "CascadeShape":
        """The same from any sequence of rows."""
        return cls(tuple(tuple(row) for row in matrix), counted)

    @property
    def drafters(self) -> int:
        """How many there are, with those that are never asked."""
        return len(self.matrix)


class ExpectedRound(NamedTuple):
    """One round of a cascade.

    law       P(it emits n tokens), n = 1, 2, …
    passes    of each drafter, strongest first, expected; the last drafter's are its guesses, one
              pass each
    """

    law: tuple[float, ...]
    passes: tuple[float, ...]

    @property
    def tokens(self) -> float:
        """Expected tokens per target pass."""
        return float(np.arange(1, len(self.law) + 1) @ np.array(self.law))


def expected_round(shape: CascadeShape, rates: Sequence[Sequence[Real]]) -> ExpectedRound:
    """What the target emits per pass, and what that takes of the drafters.

    rates    rates[r][c] = P(a token handed up by drafter c is kept by the reviewer of row r),
             whoever guessed it first; 0 below the diagonal

    Exact for independent guesses whose reviewers are not lenient, and a last drafter that always
    has as many guesses as it is asked for.
    Raises ValueError unless there is a rate in [0, 1] for each entry of the shape's matrix.
    """
    return _reviewed(shape.matrix, checked_rates(shape.drafters, rates), shape.counted)


def cascade_speed_up(
    shape: CascadeShape, rates: Sequence[Sequence[Real]], costs: Sequence[Real]
) -> float:
    """The EWIF of a cascade.

    rates    as `expected_round` takes them
    costs    per drafter, of one pass, relative to the target's; Max-Gram's is 0

    Raises ValueError as `expected_round` and `ewif` do.
    """
    found = expected_round(shape, rates)
    return ewif(found.tokens, found.passes, costs)


def checked_rates(drafters: int, rates: Sequence[Sequence[Real]]) -> RateMatrix:
    """The rates as tuples.  Raises ValueError as `expected_round` does."""
    found = tuple(tuple(map(float, row)) for row in rates)
    _check_square("a matrix of rates", found)
    if len(found) != drafters or not all(0 <= rate <= 1 for row in found for rate in row):
        raise ValueError(
            f"{drafters} drafters need {drafters} × {drafters} acceptance rates in [0, 1], got"
            f" {found}"
        )
    return found


@functools.lru_cache(maxsize=4096)
def _reviewed(matrix: Matrix, rates: RateMatrix, counted: str) -> ExpectedRound:
    """One review by the owner of the first row."""
    passes, emitted = np.zeros(len(matrix)), np.zeros(1)
    there = kept = np.ones(
        1
    )  # by the number of tokens drafted: how likely it is; the same, and that all of them are kept
    until = 0
    for column, (wanted, rate) in enumerate(zip(matrix[0], rates[0], strict=True)):
        if not wanted:
            continue
        until += wanted
        last = column == len(matrix) - 1
        batch, inner = _batch(matrix, rates, counted, column)
        ask = (
            functools.partial(_asked_until, until)
            if counted == "tokens"
            else functools.partial(_asked_times, 1 if last else wanted)
        )
        powers = rate ** np.arange(len(batch))
        longer = np.cumsum(batch[::-1])[::-1] - batch  # P(the batch has more than so many tokens)
        there, asked = ask(there, batch)
        passes[column:] += asked.sum() * inner
        kept, asked = ask(kept, batch * powers)
        emitted = _sum(emitted, np.convolve(asked, longer * powers * (1 - rate)))
    return ExpectedRound(
        tuple(np.trim_zeros(_sum(emitted, kept), "b").tolist()), tuple(passes.tolist())
    )


def _batch(
    matrix: Matrix, rates: RateMatrix, counted: str, column: int
) -> tuple[np.ndarray, np.ndarray]:
    """What one call of a drafter hands up (the probability of each number of tokens, from 0 on),
    and its passes and those below it.
    """
    if column == len(matrix) - 1:
        guesses = matrix[0][column]
        return np.eye(1, guesses + 1, guesses)[0], np.array([float(guesses)])
    below = _reviewed(_without(matrix, column + 1), _without(rates, column + 1), counted)
    return np.array((0.0, *below.law)), np.array((1.0, *below.passes))


def _without(matrix: tuple, drafters: int) -> tuple:
    return tuple(row[drafters:] for row in matrix[drafters:])


def _asked_until(
    tokens: int, weights: np.ndarray, batch: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Weights by the number of tokens, once batches were added wherever fewer than `tokens` were
    there; and those that were asked on.
    """
    weights = _sum(weights, np.zeros(tokens + len(batch)))
    for there in range(tokens):
        weights[there + 1 : there + len(batch)] += weights[there] * batch[1:]
    asked = weights[:tokens].copy()
    weights[:tokens] = 0
    return np.trim_zeros(weights, "b"), asked


def _asked_times(
    calls: int, weights: np.ndarray, batch: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The same after so many batches, whatever is there."""
    asked = np.zeros(1)
    for _ in range(calls):
        asked, weights = _sum(asked, weights), np.convolve(weights, batch)
    return weights, asked


def _sum(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The sum of two polynomials."""
    total = np.zeros(max(len(one), len(other)))
    total[: len(one)] += one
    total[: len(other)] += other
    return total


def _check_square(name: str, rows: Sequence[Sequence[Real]]) -> None:
    if not rows or any(len(row) != len(rows) for row in rows):
        raise ValueError(
            f"{name} has a row and a column per drafter, got {len(rows)} rows of"
            f" {[len(row) for row in rows]}"
        )
    for number, row in enumerate(rows):
        if any(row[:number]):
            raise ValueError(
                f"{name} is upper triangular: the first {number} entries of row {number} are 0, got"
                f" {row}"
            )
