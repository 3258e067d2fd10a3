"""A Katz back-off n-gram model: a language model that costs microseconds per token."""

import functools
import os
import sys
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
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
from specdec_lib.models.katz import table_file
from specdec_lib.models.katz.backoff import DISCOUNTED, back_off, taken_counts
from specdec_lib.models.katz.counts import Level, above_thresholds, count_ngrams
from specdec_lib.models.katz.trie import Trie, find_contexts, find_likeliest, make_trie


@dataclass(frozen=True, eq=False)
class Katz:
    """Counts of all n-grams up to some length, the unigrams first, with Katz back-off.

    taken     per length from 2 on, the discount of a count of 0, 1, … 5 and above

    Source: Katz 1987. Where we differ: absolute discounting replaces a Good–Turing estimate that
    leaves (0, 1], and c(h) is the sum over continuations.
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
        levels = count_ngrams(streams, vocabulary, order)
        taken = [taken_counts(level.counts) for level in levels[1:]]
        return cls(levels, np.array(taken).reshape(order - 1, DISCOUNTED + 2))

    @classmethod
    def load(cls, path: str | os.PathLike) -> "Katz":
        """The table that `save` wrote.  Raises ValueError if the file is missing or damaged."""
        return cls(*table_file.read(Path(path)))

    def save(self, path: str | os.PathLike) -> None:
        """Write the table to a compressed .npz file, whole or not at all."""
        write_whole(Path(path), table_file.packed(self.levels, self.taken))

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
        return make_trie(self.levels, *back_off(self.levels, self.taken))

    def probs(self, tokens: Sequence[int]) -> Float64[np.ndarray, " vocab"]:
        """The distribution of the next token after `tokens`, of which the last order − 1 count."""
        trie = self.trie
        row = trie.probabilities[: self.vocabulary].copy()
        for entry in find_contexts(trie, self.window(tokens)):
            its = slice(trie.begin[entry], trie.stop[entry])
            row *= trie.weights[entry]
            row[trie.tokens[its]] = trie.probabilities[its]
        return row

    def top(self, tokens: Sequence[int], m: int) -> tuple[list[int], list[float]]:
        """The m likeliest next tokens, best first, a tie to the lower one, and probabilities."""
        if m < 1:
            raise ValueError(f"m is at least 1, got {m}")
        most, window = min(m, self.vocabulary), self.window(tokens)
        found, values = find_likeliest(self.trie, self.vocabulary, window, most)
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
        check_root(context, tree, self.vocabulary, self.max_positions)
        window = context.tokens[-self.order :]
        rows = [self.probs(window + tree.path_tokens(node)) for node in range(len(tree))]
        with np.errstate(divide="ignore"):
            return torch.from_numpy(np.log(np.stack(rows)))

    def bigrams(self) -> Int[np.ndarray, " vocab"]:
        """The most likely seen continuation of each token, the lowest of a tie; −1 for none."""
        begin, stop = (ends[: self.vocabulary] for ends in (self.trie.begin, self.trie.stop))
        likeliest = np.full(self.vocabulary, -1, np.int64)
        continued = begin < stop
        likeliest[continued] = self.trie.best_tokens[begin[continued]]
        return likeliest

    def pruned(self, max_bytes: int) -> "Katz":
        """This table without its rarest n-grams, so that `save` writes at most `max_bytes`: with
        the lowest thresholds on counts, not falling with length.
        """
        lengths = self.order - 1

        def thinned(raised: int) -> Katz:
            """Below thresholds raised this many times in turn, the longest n-grams' first."""
            thresholds = [1 + (raised + depth) // lengths for depth in range(lengths)]
            return replace(self, levels=above_thresholds(self.levels, thresholds))

        def fits(raised: int) -> bool:
            table = thinned(raised)
            return len(table_file.packed(table.levels, table.taken)) <= max_bytes

        most = max((int(level.counts.max(initial=0)) for level in self.levels[1:]), default=0)
        every = range(lengths * most + 1)
        raised = bisect_left(every, True, key=fits)
        if raised == len(every):
            raise ValueError(f"the unigrams alone take more than the allowed {max_bytes} bytes")
        return thinned(raised)
