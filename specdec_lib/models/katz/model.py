"""A Katz back-off n-gram model: a language model that costs microseconds per token.

    P(w|h) = (c(hw) − taken) / c(h) if hw was seen, else a(h) · P(w|h′), where h′ is h without its
    oldest token

Discounts are multiples of 2⁻²⁰: row sums are exact in float64 (up to 2³³ tokens of text). Source:
Katz 1987; where we differ, c(h) is the sum over continuations, and absolute discounting (Chen and
Goodman 1999, section 2) replaces a Good–Turing estimate that leaves (0, 1].
"""

import functools
import sys
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float, Float64, Int, Int64, Integer
from torch import Tensor

from specdec_lib.core.context import Context
from specdec_lib.core.files import write_whole
from specdec_lib.core.protocols import check_root
from specdec_lib.core.tree import TokenTree
from specdec_lib.models.katz import counts
from specdec_lib.models.katz.counts import Level
from specdec_lib.models.katz.trie import Trie, find_likeliest

DISCOUNTED = 5  # the largest count that Good–Turing discounts
SMOOTHING = 1  # added to every unigram count
GRAIN = 2.0**-20


@dataclass(frozen=True, eq=False)
class Katz:
    """Counts of all n-grams up to some length, the unigrams first, with Katz back-off.

    taken     per length from 2 on, the discount of a count of 0, 1, … 5 and above
    """

    levels: tuple[Level, ...]
    taken: Float64[np.ndarray, "lengths r"]
    name: str = "n-gram"
    max_positions: ClassVar[int] = sys.maxsize
    runtime: ClassVar[str] = ""
    usage: ClassVar[None] = None

    def forget(self) -> None:
        pass

    @classmethod
    def fit(
        cls, streams: Iterable[Integer[np.ndarray, " _"]], vocabulary: int, order: int = 3
    ) -> "Katz":
        """The model of token streams, with n-grams of at most `order` tokens within a stream."""
        levels = counts.count_ngrams(streams, vocabulary, order)
        taken = [taken_counts(level.counts) for level in levels[1:]]
        return cls(levels, np.array(taken).reshape(order - 1, DISCOUNTED + 2))

    @classmethod
    def load(cls, path: Path) -> "Katz":
        """The table that `save` wrote.  Raises ValueError if the file is missing or damaged."""
        return cls(*counts.read_levels(path))

    def save(self, path: Path) -> None:
        """Write the table to a compressed .npz file, whole or not at all."""
        write_whole(path, counts.pack_levels(self.levels, self.taken))

    @property
    def file_bytes(self) -> int:
        """The size of the file that `save` writes."""
        return len(counts.pack_levels(self.levels, self.taken))

    @property
    def order(self) -> int:
        return len(self.levels)

    @property
    def vocabulary(self) -> int:
        return len(self.levels[0])

    @property
    def ngrams(self) -> int:
        """How many n-grams of two and more tokens the table holds."""
        return sum(map(len, self.levels[1:]))

    @functools.cached_property
    def trie(self) -> Trie:
        levels = self.levels
        probabilities, weights = back_off(self.levels, self.taken)
        fans = [level.fans(longer) for level, longer in pairwise(levels)]
        fans = np.concatenate([*fans, np.zeros(len(levels[-1]), np.int64)])
        stop = self.vocabulary + np.cumsum(fans)
        tokens = np.concatenate([one.tokens for one in levels])
        mass = np.concatenate(probabilities)
        rows = np.concatenate([np.zeros(self.vocabulary), 1 + np.arange(len(fans)).repeat(fans)])
        best = np.lexsort((-mass, rows))
        weights = np.concatenate([*weights, np.ones(len(levels[-1]))])
        sizes = self.vocabulary, self.order
        return Trie(*sizes, tokens, stop - fans, stop, weights, tokens[best], mass[best])

    def probs(self, tokens: Sequence[int]) -> Float64[np.ndarray, " vocab"]:
        """The distribution of the next token after `tokens`, of which the last order − 1 count."""
        found = self.top(tokens, self.vocabulary)
        row = np.zeros(self.vocabulary)
        row[found[0]] = found[1]
        return row

    def top(self, tokens: Sequence[int], m: int) -> tuple[list[int], list[float]]:
        """The m likeliest next tokens, best first, a tie to the lower one, and probabilities."""
        if m < 1:  # the compiled search writes where there would be no room
            raise ValueError(f"m is at least 1, got {m}")
        found, values = find_likeliest(self.trie, self.window(tokens), min(m, self.vocabulary))
        return found.tolist(), values.tolist()

    def window(self, tokens: Sequence[int]) -> Int64[np.ndarray, " known"]:
        """The last order − 1 tokens.  Raises ValueError if one is beyond the vocabulary."""
        window = tokens[max(0, len(tokens) - self.order + 1) :]
        for token in window:
            if not 0 <= token < self.vocabulary:
                raise ValueError(f"tokens must lie in 0…{self.vocabulary - 1}, got {token}")
        return np.array(window, np.int64)

    def score(self, context: Context, tree: TokenTree) -> Float[Tensor, "nodes vocab"]:
        """The log probabilities after each node: float64, −inf for probability 0."""
        check_root(context, tree, self.vocabulary, self.max_positions, self.name)
        window = context.tokens[-self.order :]
        rows = [self.probs(window + tree.path_tokens(node)) for node in range(len(tree))]
        return torch.from_numpy(np.stack(rows)).log()

    def bigrams(self) -> Int[np.ndarray, " vocab"]:
        """The most likely seen continuation of each token, the lowest of a tie; −1 for none."""
        begin, stop = (ends[: self.vocabulary] for ends in (self.trie.begin, self.trie.stop))
        first = self.trie.best_tokens.take(begin, mode="clip")
        return np.where(begin < stop, first, np.int64(-1))

    def pruned(self, max_bytes: int) -> "Katz":
        """This table without its rarest n-grams, so that `save` writes at most `max_bytes`: with
        the lowest thresholds on counts, not falling with length.
        """
        lengths = self.order - 1

        def thinned(raised: int) -> Katz:
            """Below thresholds raised this many times in turn, the longest n-grams' first."""
            thresholds = [1 + (raised + depth) // lengths for depth in range(lengths)]
            return replace(self, levels=counts.above_thresholds(self.levels, thresholds))

        most = max((int(level.counts.max(initial=0)) for level in self.levels[1:]), default=0)
        every = range(lengths * most + 1)
        raised = bisect_left(every, True, key=lambda one: thinned(one).file_bytes <= max_bytes)
        if raised == len(every):
            raise ValueError(f"the unigrams alone take more than the allowed {max_bytes} bytes")
        return thinned(raised)


def taken_counts(seen: Int[np.ndarray, " ngrams"]) -> Float64[np.ndarray, " r"]:
    """The discount of a count of 0, 1, … 5 and above, for the n-grams of one length: Good–Turing
    where all its discounts lie in (0, 1] and no N_1 … N_6 is zero, else absolute with D = N_1 /
    (N_1 + 2 N_2), or ½ where N_1 or N_2 is zero.
    """
    often = np.bincount(np.minimum(seen, DISCOUNTED + 2), minlength=DISCOUNTED + 3)
    n = often.astype(np.float64)
    r = np.arange(1, DISCOUNTED + 1)
    taken = np.zeros(DISCOUNTED + 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        common = (DISCOUNTED + 1) * n[DISCOUNTED + 1] / n[1]
        discounts = ((r + 1) * n[r + 1] / (r * n[r]) - common) / (1 - common)
    if n[1 : DISCOUNTED + 2].all() and ((0 < discounts) & (discounts <= 1)).all():
        taken[1:-1] = (1 - discounts) * r
    else:
        taken[1:] = n[1] / (n[1] + 2 * n[2]) if n[1] and n[2] else 0.5
    return np.floor(taken / GRAIN) * GRAIN


def back_off(
    levels: Sequence[Level], taken: Float64[np.ndarray, "lengths r"]
) -> tuple[list[Float64[np.ndarray, " _"]], list[Float64[np.ndarray, " _"]]]:
    """Per level, the probability of each n-gram's last token after the others, and back-off
    weights. A row whose seen continuations hold all that is left is scaled to sum to 1.
    """
    links = counts.suffixes(levels)
    mass = (levels[0].counts + SMOOTHING).astype(np.float64)
    held = np.array([mass.sum()])
    scale = np.array([mass.sum()])
    left = np.zeros(1)
    probabilities = [mass / mass.sum()]
    weights = []
    for depth, (level, longer) in enumerate(pairwise(levels)):
        link = links[depth]
        continued = level.fans(longer) > 0
        shorter_mass = mass
        mass = longer.counts - taken[depth][np.minimum(longer.counts, DISCOUNTED + 1)]
        seen = level.summed(shorter_mass[links[depth + 1]], longer)
        unseen = (held[link] - seen) / scale[link] + left[link]
        held = level.summed(mass, longer)
        total = level.counts - level.ends
        scale = np.where(unseen > 0, total, held)
        scale[~continued] = 1.0
        left = np.where(unseen > 0, total - held, 0.0) / scale
        weights.append(np.divide(left, unseen, out=np.zeros_like(left), where=unseen > 0))
        weights[-1][~continued] = 1.0
        probabilities.append(mass / scale[longer.parents])
    return probabilities, weights
