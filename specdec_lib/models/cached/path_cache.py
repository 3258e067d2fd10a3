"""A key-value cache that holds many token paths, in one preallocated buffer per layer. The entries
0, 1, … that form one unbroken path are the committed context; a row attends to a prefix of these
and to its own branch.
"""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

BEFORE = -1  # the parent of a first token
LOGITS_KEPT = 16  # of the last tokens, so that a caller may go back a little


class PathCache:
    """The cache of one model, with the two methods that Hugging Face decoders call.

    used         entries in use
    committed    how many of them, from the first on, form the committed context
    logits       by entry, where they are kept
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._keys: list[Tensor] = []
        self._values: list[Tensor] = []
        self.clear()

    def clear(self) -> None:
        """Free every entry; the buffers stay."""
        self.used = self.committed = self._pending = 0
        self.parents: list[int] = []
        self.logits: dict[int, Tensor] = {}
        self._children: dict[tuple[int, int], int] = {}

    def child(self, entry: int, token: int) -> int | None:
        """The entry that holds `token` after the path of `entry`, or None."""
        return self._children.get((entry, token))

    def find(self, tokens: Sequence[int], start: Sequence[int] = ()) -> list[int]:
        """The entries of the longest known beginning of `tokens`, of which `start` are known."""
        path = list(start)
        entry = path[-1] if path else BEFORE
        for token in tokens[len(path) :]:
            entry = self._children.get((entry, token))
            if entry is None:
                break
            path.append(entry)
        return path

    def forget(self, entry: int, token: int) -> None:
        """Remove `token` after `entry` from the trie, so that it is computed again."""
        del self._children[entry, token]

    def add(self, parents: Sequence[int], tokens: Sequence[int]) -> range:
        """Reserve the next entries for one forward pass: row i continues entry `parents[i]`."""
        self._reserve(self.used + len(tokens))
        new = range(self.used, self.used + len(tokens))
        for entry, parent, token in zip(new, parents, tokens, strict=True):
            self._children[parent, token] = entry
            self.parents.append(parent)
            if entry == self.committed and parent == entry - 1:
                self.committed += 1
        self._pending = len(tokens)
        return new

    def mask(self, new: range) -> Bool[np.ndarray, "rows entries"]:
        """The attention mask of the entries just added: each sees its path and itself."""
        sees = np.zeros((len(new), new.stop), dtype=bool)
        for row, entry in enumerate(new):
            parent = self.parents[entry]
            while parent >= self.committed and parent < new.start:
                sees[row, parent] = True
                parent = self.parents[parent]
            if parent >= new.start:
                sees[row] |= sees[parent - new.start]
            else:
                sees[row, : parent + 1] = True
            sees[row, entry] = True
        return sees

    def commit_pass(self) -> None:
        """Count the entries just added as used: their forward pass is done."""
        self.used += self._pending
        self._pending = 0

    def drop_logits(self, path: Sequence[int]) -> None:
        """Free the logits of `path`, except near its end."""
        if len(self.logits) > 4 * LOGITS_KEPT:
            passed = set(path[:-LOGITS_KEPT])
            self.logits = {entry: row for entry, row in self.logits.items() if entry not in passed}

    def compact(self, path: Sequence[int], slack: int) -> list[int]:
        """Keep `path` and the branches that continue it, at the front of the buffers, and free all
        others if these are more than `slack`; returns the entries of `path` afterwards.
        """
        if self.used - len(path) <= slack:
            return list(path)
        below: set[int] = set()
        for entry in range(path[-1] + 1, self.used) if path else ():
            if self.parents[entry] == path[-1] or self.parents[entry] in below:
                below.add(entry)
        keep = [*path, *sorted(below)]
        if self.used - len(keep) <= slack:
            return list(path)
        self._move(keep)
        return list(range(len(path)))

    def _move(self, keep: list[int]) -> None:
        """Move the entries `keep` to 0, 1, … and free all others."""
        place = {entry: new for new, entry in enumerate(keep)} | {BEFORE: BEFORE}
        still = next((new for new, entry in enumerate(keep) if new != entry), len(keep))
        if still < len(keep):
            sources = torch.tensor(keep[still:], device=self._keys[0].device)
            for buffer in (*self._keys, *self._values):
                buffer[:, :, still : len(keep)] = buffer[:, :, sources]
        self._children = {
            (place[parent], token): place[entry]
            for (parent, token), entry in self._children.items()
            if entry in place
        }
        self.logits = {place[entry]: row for entry, row in self.logits.items() if entry in place}
        self.parents = [place[self.parents[entry]] for entry in keep]
        self.used = len(keep)
        self.committed = next(
            (entry for entry in range(self.used) if self.parents[entry] != entry - 1), self.used
        )

    def _reserve(self, entries: int) -> None:
        while self.capacity < entries:
            self.capacity *= 2
        for buffers in (self._keys, self._values):
            for layer, old in enumerate(buffers):
                if old.shape[2] < self.capacity:
                    buffers[layer] = self._buffer(old)
                    buffers[layer][:, :, : self.used] = old[:, :, : self.used]

    def _buffer(self, like: Tensor) -> Tensor:
        return like.new_empty((1, like.shape[1], self.capacity, like.shape[3]))

    def update(
        self,
        keys: Float[Tensor, "1 heads rows size"],
        values: Float[Tensor, "1 heads rows size"],
        layer_idx: int,
        cache_kwargs: object = None,
    ) -> tuple[Float[Tensor, "1 heads entries size"], Float[Tensor, "1 heads entries size"]]:
        """Store the new rows of one layer for a decoder, and return all of its rows so far."""
        if layer_idx == len(self._keys):
            self._keys.append(self._buffer(keys))
            self._values.append(self._buffer(values))
        end = self.used + self._pending
        self._keys[layer_idx][:, :, self.used : end] = keys
        self._values[layer_idx][:, :, self.used : end] = values
        return self._keys[layer_idx][:, :, :end], self._values[layer_idx][:, :, :end]

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Entries in use before this pass."""
        return self.used
