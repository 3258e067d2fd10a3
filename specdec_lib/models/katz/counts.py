"""Counts of n-grams in a trie with one level per length: the vocabulary, then pairs (number of the
first n−1 tokens in the level above, last token), sorted; and their file, packed as byte planes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import pairwise, zip_longest
from pathlib import Path

import numpy as np
from jaxtyping import Float64, Int, Integer, Shaped


@dataclass(frozen=True, eq=False)
class Level:
    """All n-grams of one length: last tokens, ascending among the continuations of one n-gram.

    counts     how often each was seen, also where the table was pruned
    ends       how often it stood at the end of a stream; 0 in the last level
    parents    the number in the level above of the n-gram that each continues; 0 in the first
    """

    tokens: Int[np.ndarray, " ngrams"]
    counts: Int[np.ndarray, " ngrams"]
    ends: Int[np.ndarray, " ngrams"]
    parents: Int[np.ndarray, " ngrams"]

    def __len__(self) -> int:
        return len(self.tokens)

    def fans(self, longer: "Level") -> Int[np.ndarray, " ngrams"]:
        """How many n-grams of the next level continue each."""
        return np.bincount(longer.parents, minlength=len(self))

    def summed(
        self, values: Shaped[np.ndarray, " children"], longer: "Level"
    ) -> Float64[np.ndarray, " ngrams"]:
        """The sum over each n-gram's continuations, each taken on its own to lose no bits."""
        sums = np.bincount(longer.parents, values, minlength=len(self))
        return sums.astype(np.float64)  # without n-grams numpy counts in integers


def count_ngrams(
    streams: Iterable[Integer[np.ndarray, " _"]], vocabulary: int, order: int
) -> tuple[Level, ...]:
    """The levels of all n-grams up to `order` tokens, each within one stream."""
    parts = [part for part in map(np.asarray, streams) if part.size]
    if not parts or min(vocabulary, order) < 1:
        raise ValueError(
            "an n-gram table has a vocabulary, an order and text, got"
            f" {vocabulary}, {order} and {len(parts)} streams with tokens"
        )
    text = np.concatenate(parts).astype(np.int64)
    if text.min() < 0 or text.max() >= vocabulary:
        raise ValueError(f"tokens must lie in 0…{vocabulary - 1}, got {text.min()}…{text.max()}")
    inside = np.ones(len(text), bool)  # whether the next token belongs to the same stream
    inside[np.cumsum([len(part) for part in parts]) - 1] = False
    tokens = np.arange(vocabulary, dtype=np.int32)
    counts = np.bincount(text, minlength=vocabulary)
    found = [(tokens, counts, np.zeros(vocabulary, np.int64))]
    starts = np.arange(len(text))
    numbers = text
    for length in range(2, order + 1):
        alive = inside[starts + length - 2]
        starts = starts[alive]
        numbers = numbers[alive]
        keys = numbers * vocabulary + text[starts + length - 1]
        seen, numbers, counts = np.unique(keys, return_inverse=True, return_counts=True)
        found.append(((seen % vocabulary).astype(np.int32), counts, seen // vocabulary))
    levels = []
    for (tokens, counts, parents), longer in zip_longest(found, found[1:]):
        followed = np.bincount(longer[2], longer[1], minlength=len(tokens)) if longer else counts
        levels.append(Level(tokens, counts, counts - followed.astype(np.int64), parents))
    return tuple(levels)


def above_thresholds(levels: Sequence[Level], thresholds: Sequence[int]) -> tuple[Level, ...]:
    """The levels without n-grams whose count is below their level's threshold; thresholds, one per
    level from 1 on, do not descend, so that beginnings and endings are kept.
    """
    kept = [levels[0]]
    places = np.arange(len(levels[0]))
    for level, least in zip(levels[1:], thresholds, strict=True):
        mask = level.counts >= least
        parents = places[level.parents[mask]]
        kept.append(Level(level.tokens[mask], level.counts[mask], level.ends[mask], parents))
        places = np.cumsum(mask) - 1
    return tuple(kept)


def suffixes(levels: Sequence[Level]) -> list[Int[np.ndarray, " ngrams"]]:
    """Per level, the number of each n-gram without its oldest token in the level above."""
    vocabulary = len(levels[0])
    links = [np.zeros(vocabulary, np.int64)]
    for above, level in pairwise(levels):
        keys = above.parents * vocabulary + above.tokens
        links.append(np.searchsorted(keys, links[-1][level.parents] * vocabulary + level.tokens))
    return links


def pack_levels(levels: Sequence[Level], taken: np.ndarray) -> bytes:
    """The content of a table's file; the same table gives the same bytes."""
    arrays = {"order": np.array(len(levels)), "taken": taken}
    for depth, (level, longer) in enumerate(zip_longest(levels, levels[1:])):
        if depth:
            arrays[f"tokens_{depth}"] = _planes(level.tokens)
        arrays[f"counts_{depth}"] = _planes(level.counts)
        if longer is not None:
            arrays[f"fans_{depth}"] = _planes(level.fans(longer))
            arrays[f"ends_{depth}"] = _planes(level.ends)
    stream = BytesIO()
    np.savez_compressed(stream, allow_pickle=False, **arrays)
    return stream.getvalue()


def read_levels(path: Path) -> tuple[tuple[Level, ...], np.ndarray]:
    """The levels and taken counts of a table's file.  Raises ValueError if it is damaged."""
    levels: list[Level] = []
    try:
        with np.load(path, allow_pickle=False) as arrays:
            order = int(arrays["order"])
            if order < 1:
                raise ValueError(f"it has {order} levels")
            for depth in range(order):
                counts = _whole(arrays[f"counts_{depth}"])
                tokens = np.arange(len(counts))
                parents = 0 * counts
                ends = 0 * counts
                if depth:
                    tokens = _whole(arrays[f"tokens_{depth}"])
                    parents = np.arange(len(levels[-1])).repeat(_whole(arrays[f"fans_{depth - 1}"]))
                if depth + 1 < order:
                    ends = _whole(arrays[f"ends_{depth}"])
                if len({len(tokens), len(counts), len(ends), len(parents)}) > 1:
                    raise ValueError(f"its arrays do not fit each other at level {depth}")
                levels.append(Level(tokens.astype(np.int32), counts, ends, parents))
            return tuple(levels), arrays["taken"]
    except Exception as damage:  # of numpy, the zip file or its compression
        raise ValueError(
            f"the n-gram table {path} is missing or damaged ({damage}):"
            " `specdec distil ngrams` counts it anew"
        ) from damage


def _planes(values: np.ndarray) -> np.ndarray:
    small = values.astype(np.min_scalar_type(int(values.max(initial=0))).newbyteorder("<"))
    return np.ascontiguousarray(small.view(np.uint8).reshape(len(small), small.itemsize).T)


def _whole(planes: np.ndarray) -> np.ndarray:
    whole = np.ascontiguousarray(planes.T).view(f"<u{len(planes)}").reshape(-1)
    return whole.astype(np.int64)
