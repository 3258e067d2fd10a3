"""Scoring of a tree with a `PathCache`: which rows a network has still to compute."""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from specdec_lib.core.tree import TokenTree
from specdec_lib.models.cached.path_cache import BEFORE, PathCache

SLACK = 32  # entries of dead branches that stay in the cache before it is compacted

Forward = Callable[[Sequence[int], Sequence[int], Sequence[int], int], range]
"""One pass over new rows, of these parent entries, tokens and positions, with logits for so many of
the last; returns the rows' entries.
"""


class PathScorer:
    """The rows that one model has computed, and the scoring of trees with them."""

    def __init__(self, cache: PathCache, chunk_rows: int) -> None:
        if chunk_rows < 1:
            raise ValueError(f"chunk_rows must be at least 1, got {chunk_rows}")
        self.cache = cache
        self._chunk_rows = chunk_rows
        self._known: tuple[tuple[int, ...], list[int]] = ((), [])

    def forget(self) -> None:
        """Drop everything remembered."""
        self.cache.clear()
        self._known = ((), [])

    def score(
        self, tokens: tuple[int, ...], tree: TokenTree, forward: Forward
    ) -> Float[Tensor, "nodes vocab"]:
        """The logits after every node of a tree rooted at the end of `tokens`."""
        try:
            path = self._read(tokens, forward)
            entries = self._run(tokens, path, tree, forward)
            return torch.stack([self.cache.logits[entry] for entry in entries])
        except BaseException:
            self.forget()  # an interrupted pass leaves entries half filled
            raise

    def _read(self, tokens: tuple[int, ...], forward: Forward) -> list[int]:
        """The known entries of `tokens`, after long unknown stretches were read in chunks."""
        known, entries = self._known
        shared = len(known) if tokens[: len(known)] == known else 0
        path = self.cache.compact(self.cache.find(tokens, entries[:shared]), SLACK)
        self.cache.drop_logits(path)
        self._known = (tokens[: len(path)], path)
        if len(path) == len(tokens) and path[-1] not in self.cache.logits:
            self.cache.forget(path[-2] if len(path) > 1 else BEFORE, tokens[-1])
            path.pop()
        while len(tokens) - len(path) > self._chunk_rows:
            piece = tokens[len(path) : len(path) + self._chunk_rows]
            parents = self._after(path, len(piece))
            path.extend(forward(parents, piece, range(len(path), len(path) + len(piece)), 1))
        self._known = (tokens[: len(path)], path)
        return path

    def _run(
        self, tokens: tuple[int, ...], path: list[int], tree: TokenTree, forward: Forward
    ) -> list[int]:
        """The entry of every node, after one forward pass over the rows that are not known yet."""
        rows = list(tokens[len(path) :])
        rest = len(rows)
        parents, positions = self._after(path, rest), list(range(len(path), len(tokens)))
        first = self.cache.used
        entries = [first + rest - 1 if rest else path[-1]]
        fresh: dict[tuple[int, int], int] = {}
        for node in range(1, len(tree)):
            key = (entries[tree.parents[node]], tree.tokens[node])
            entry = self.cache.child(*key)
            if entry is None or entry not in self.cache.logits:
                if key not in fresh:
                    fresh[key] = first + len(rows)
                    parents.append(key[0])
                    rows.append(key[1])
                    positions.append(tree.position(node))
                entry = fresh[key]
            entries.append(entry)
        if rows:
            forward(parents, rows, positions, len(fresh) + bool(rest))
            self._known = (tokens, [*path, *range(first, first + rest)])
        return entries

    def _after(self, path: list[int], count: int) -> list[int]:
        """Parents of `count` new rows that continue `path` in a chain."""
        if not count:
            return []
        return [path[-1] if path else BEFORE, *range(self.cache.used, self.cache.used + count - 1)]
