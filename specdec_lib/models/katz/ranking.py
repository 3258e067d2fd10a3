"""The likeliest continuations in microseconds, from rows sorted once, best first."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int

from specdec_lib.models.katz.counts import Level


@dataclass(frozen=True, eq=False)
class Ranking:
    """All rows of a table, each sorted by falling probability, ties by rising token.

    bounds           per context length, where each context's row begins and ends
    tokens           per context length, the rows' tokens
    probabilities    theirs, before any back-off weight
    """

    bounds: tuple[Int[np.ndarray, " _"], ...]
    tokens: tuple[Int[np.ndarray, " _"], ...]
    probabilities: tuple[Float64[np.ndarray, " _"], ...]

    @classmethod
    def of(
        cls, levels: Sequence[Level], probabilities: Sequence[Float64[np.ndarray, " _"]]
    ) -> "Ranking":
        """Sort the rows of a table."""
        bounds = (np.array([0, len(levels[0])]), *(level.offsets for level in levels[:-1]))
        orders = [
            np.lexsort((-row, np.repeat(np.arange(len(edges) - 1), np.diff(edges))))
            for edges, row in zip(bounds, probabilities, strict=True)
        ]
        tokens = tuple(level.tokens[order] for level, order in zip(levels, orders, strict=True))
        return cls(
            bounds,
            tokens,
            tuple(row[order] for row, order in zip(probabilities, orders, strict=True)),
        )

    def row(self, length: int, number: int) -> tuple[memoryview, memoryview]:
        """Tokens and probabilities of one context of `length` tokens, best first."""
        edges = self.bounds[length]
        its = slice(int(edges[number]), int(edges[number + 1]))
        return memoryview(self.tokens[length])[its], memoryview(self.probabilities[length])[its]


def merge(
    rows: Sequence[tuple[memoryview, memoryview]],
    known: Sequence[memoryview],
    weights: Sequence[float],
    m: int,
) -> tuple[list[int], list[float]]:
    """The m most likely tokens of rows that back off to one another, and their probabilities.

    rows       best first, the empty context's row first and the longest context's last
    known      per row, the tokens of the next longer context's row in rising order
    weights    the back-off weight of each context but the empty one
    """
    best: list[tuple[float, int]] = []
    floor = 0.0
    for length in range(len(rows) - 1, -1, -1):
        room = m
        for token, probability in zip(*rows[length], strict=True):
            for weight in weights[length:]:
                probability *= weight
            if probability <= floor:
                break
            if not _contains(known[length], token):
                best.append((-probability, token))
                room -= 1
                if not room:
                    break
        best.sort()
        del best[m:]
        floor = -best[-1][0] if len(best) == m else 0.0
    return [token for _, token in best], [-negative for negative, _ in best]


def _contains(ascending: memoryview, token: int) -> bool:
    at = bisect_left(ascending, token)
    return at < len(ascending) and ascending[at] == token
