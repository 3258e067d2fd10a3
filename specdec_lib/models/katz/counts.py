"""Counts of n-grams in a trie with one level per length: the vocabulary, then pairs (number of the
first n−1 tokens in the level above, last token), sorted.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Bool, Float64, Int, Integer, Shaped

MOST_TOKENS, MOST_ORDER = 2**24, 64  # more would fill the memory


@dataclass(frozen=True, eq=False)
class Level:
    """All n-grams of one length.

    tokens     the last token of each; ascending among the continuations of one shorter n-gram
    counts     how often each was seen, also where the table was pruned
    ends       how often it stood at the end of a stream; 0 in the last level
    offsets    n-gram i continues as numbers offsets[i] to offsets[i + 1] of the next level
    """

    tokens: Int[np.ndarray, " ngrams"]
    counts: Int[np.ndarray, " ngrams"]
    ends: Int[np.ndarray, " ngrams"]
    offsets: Int[np.ndarray, " edges"]

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def totals(self) -> Int[np.ndarray, " ngrams"]:
        """c(h): the sum over all continuations that were seen, kept or not."""
        return self.counts - self.ends


def count_ngrams(
    streams: Iterable[Integer[np.ndarray, " _"]], vocabulary: int, order: int
) -> tuple[Level, ...]:
    """The levels of all n-grams up to `order` tokens, each within one stream."""
    from tqdm import tqdm

    text, inside = _joined(streams, vocabulary, order)
    sizes = [(np.arange(vocabulary, dtype=np.int32), np.bincount(text, minlength=vocabulary), None)]
    starts, numbers = np.arange(len(text)), text
    for length in tqdm(range(2, order + 1), desc="n-grams", unit="level", leave=False):
        alive = inside[starts + length - 2]
        starts, numbers = starts[alive], numbers[alive]
        keys = numbers.astype(np.int64) * vocabulary + text[starts + length - 1]
        seen, numbers, counts = np.unique(keys, return_inverse=True, return_counts=True)
        sizes.append(((seen % vocabulary).astype(np.int32), counts, seen // vocabulary))
    return _linked(sizes)


def above_thresholds(levels: Sequence[Level], thresholds: Sequence[int]) -> tuple[Level, ...]:
    """The levels without n-grams whose count is below their level's threshold; thresholds, one per
    level from 1 on, do not descend, so that beginnings and endings are kept.
    """
    masks = [np.ones(len(levels[0]), bool)] + [
        level.counts >= least for level, least in zip(levels[1:], thresholds, strict=True)
    ]
    fans = [
        np.bincount(parents(level)[mask], minlength=len(level))
        for level, mask in zip(levels, masks[1:], strict=False)
    ]
    fans.append(np.zeros(len(levels[-1]), np.int64))
    return tuple(
        Level(level.tokens[mask], level.counts[mask], level.ends[mask], offsets(fan[mask]))
        for level, mask, fan in zip(levels, masks, fans, strict=True)
    )


def suffixes(levels: Sequence[Level]) -> list[Int[np.ndarray, " ngrams"]]:
    """Per level, the number of each n-gram without its oldest token in the level above."""
    vocabulary = len(levels[0])
    links = [np.zeros(vocabulary, np.int64)]
    keys = np.arange(vocabulary)
    for above, level in pairwise(levels):
        first = parents(above)
        links.append(np.searchsorted(keys, links[-1][first] * vocabulary + level.tokens))
        keys = first * vocabulary + level.tokens
    return links


def parents(level: Level) -> Int[np.ndarray, " children"]:
    """For each n-gram of the next level, the number of the one that it continues."""
    return np.repeat(np.arange(len(level)), np.diff(level.offsets))


def summed(values: Shaped[np.ndarray, " children"], level: Level) -> Float64[np.ndarray, " ngrams"]:
    """The sum over each n-gram's continuations, each taken on its own to lose no bits."""
    sums = np.bincount(parents(level), values, minlength=len(level))
    return sums.astype(np.float64)  # without n-grams numpy counts in integers


def offsets(fans: Integer[np.ndarray, " ngrams"]) -> Int[np.ndarray, " edges"]:
    """Where each n-gram's continuations begin and end, from how many it has."""
    return np.concatenate(([0], np.cumsum(fans, dtype=np.int64)))


def _linked(sizes: list[tuple]) -> tuple[Level, ...]:
    levels = []
    for (tokens, counts, _), (_, continued, first) in pairwise(sizes):
        fans = np.bincount(first, minlength=len(tokens))
        followed = np.bincount(first, continued, minlength=len(tokens)).astype(np.int64)
        levels.append(Level(tokens, counts, counts - followed, offsets(fans)))
    tokens, counts, _ = sizes[-1]
    return (
        *levels,
        Level(tokens, counts, np.zeros(len(tokens), np.int64), np.zeros(len(tokens) + 1, np.int64)),
    )


def _joined(
    streams: Iterable[np.ndarray], vocabulary: int, order: int
) -> tuple[Int[np.ndarray, " text"], Bool[np.ndarray, " text"]]:
    """All streams joined, and for each token whether the next one belongs to the same stream."""
    if not (1 <= vocabulary <= MOST_TOKENS and 1 <= order <= MOST_ORDER):
        wanted = f"at least 1 and at most {MOST_TOKENS:,} tokens and an order of {MOST_ORDER}"
        raise ValueError(f"an n-gram table has {wanted}, got {vocabulary:,} and {order:,}")
    parts = [np.asarray(stream) for stream in streams]
    parts = [part for part in parts if part.size]
    if not parts:
        raise ValueError("an n-gram table is counted on at least one token, the streams hold none")
    for part in parts:
        if part.ndim != 1 or part.dtype.kind not in "iu":
            got = f"shape {part.shape} of {part.dtype}"
            raise ValueError(f"a stream is a one-dimensional array of integers, got {got}")
        if part.min() < 0 or part.max() >= vocabulary:
            got = f"{part.min()}…{part.max()}"
            raise ValueError(f"tokens must lie in 0…{vocabulary - 1}, got {got}")
    inside = np.ones(sum(map(len, parts)), bool)
    inside[np.cumsum([len(part) for part in parts]) - 1] = False
    return np.concatenate(parts).astype(np.int32), inside
