"""Keys and values of many token paths in one preallocated buffer per layer, and the trie that says
which slot holds which path.

A slot holds one token after one particular path. Slots that form one unbroken run from the first
token on are the trunk (slot number = position), so a row's mask is a prefix of the trunk and a few
more slots. `SlotCache` speaks the two cache calls that Hugging Face decoders make (`update`,
`get_seq_length`), the same in transformers 5.17 to 5.23: whatever of that interface moves is mended
here.
"""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

BEFORE = -1  # the parent of a first token
LOGITS_KEPT = 16  # of the trunk's end, so that a caller may go back a little


class SlotCache:
    """The memory of one model; empty at first, grows by doubling. `used` counts slots in use."""

    def __init__(self, slots: int) -> None:
        self.capacity = slots
        self._keys: list[Tensor] = []
        self._values: list[Tensor] = []
        self.clear()

    def clear(self) -> None:
        """Free every slot; the buffers stay."""
        self.used = self.trunk = self._pending = 0
        self.parents: list[int] = []
        self.logits: dict[int, Tensor] = {}
        self._children: dict[tuple[int, int], int] = {}

    def child(self, slot: int, token: int) -> int | None:
        """The slot that holds `token` after the path of `slot`, or None."""
        return self._children.get((slot, token))

    def find(self, tokens: Sequence[int], start: Sequence[int] = ()) -> list[int]:
        """The slots of the longest known beginning of `tokens`; `start` are slots already found for
        its first tokens.
        """
        path = list(start)
        slot = path[-1] if path else BEFORE
        for token in tokens[len(path) :]:
            slot = self._children.get((slot, token))
            if slot is None:
                break
            path.append(slot)
        return path

    def forget(self, slot: int, token: int) -> None:
        """Make `token` after `slot` unknown, so that it is computed again."""
        del self._children[slot, token]

    def add(self, parents: Sequence[int], tokens: Sequence[int]) -> range:
        """Name the next slots: row i continues `parents[i]`, which may be an earlier row.

        To be filled by one forward pass.
        """
        self._reserve(self.used + len(tokens))
        new = range(self.used, self.used + len(tokens))
        for slot, parent, token in zip(new, parents, tokens, strict=True):
            self._children[parent, token] = slot
            self.parents.append(parent)
            if slot == self.trunk and parent == slot - 1:
                self.trunk += 1
        self._pending = len(tokens)
        return new

    def mask(self, new: range) -> Bool[np.ndarray, "rows slots"]:
        """What each of the slots just added sees, itself included."""
        sees = np.zeros((len(new), new.stop), dtype=bool)
        for row, slot in enumerate(new):
            parent = self.parents[slot]
            while parent >= self.trunk and parent < new.start:
                sees[row, parent] = True
                parent = self.parents[parent]
            if parent >= new.start:
                sees[row] |= sees[parent - new.start]
            else:
                sees[row, : parent + 1] = True
            sees[row, slot] = True
        return sees

    def filled(self) -> None:
        """The forward pass over the slots just added is done."""
        self.used += self._pending
        self._pending = 0

    def drop_logits(self, path: Sequence[int]) -> None:
        """Forget the logits of `path`, except near its end: a caller may go back a little."""
        if len(self.logits) > 4 * LOGITS_KEPT:
            passed = set(path[:-LOGITS_KEPT])
            self.logits = {slot: row for slot, row in self.logits.items() if slot not in passed}

    def compact(self, path: Sequence[int], slack: int) -> list[int]:
        """Move `path` (from the first token on) and what hangs below its end together; free the
        rest if it is more than `slack` slots.

        The slots of `path` afterwards. Forgetting never changes a result, only what has to be
        computed again.
        """
        if self.used - len(path) <= slack:
            return list(path)
        below: set[int] = set()
        for slot in range(path[-1] + 1, self.used) if path else ():
            if self.parents[slot] == path[-1] or self.parents[slot] in below:
                below.add(slot)
        keep = [*path, *sorted(below)]
        if self.used - len(keep) <= slack:
            return list(path)
        self._move(keep)
        return list(range(len(path)))

    def _move(self, keep: list[int]) -> None:
        place = {slot: new for new, slot in enumerate(keep)} | {BEFORE: BEFORE}
        still = next((new for new, slot in enumerate(keep) if new != slot), len(keep))
        if still < len(keep):
            moved = torch.tensor(keep[still:], device=self._keys[0].device)
            for buffer in (*self._keys, *self._values):
                buffer[:, :, still : len(keep)] = buffer[:, :, moved]
        self._children = {
            (place[parent], token): place[slot]
            for (parent, token), slot in self._children.items()
            if slot in place
        }
        self.logits = {place[slot]: row for slot, row in self.logits.items() if slot in place}
        self.parents = [place[self.parents[slot]] for slot in keep]
        self.used = len(keep)
        self.trunk = next(
            (slot for slot in range(self.used) if self.parents[slot] != slot - 1), self.used
        )

    def _reserve(self, slots: int) -> None:
        while self.capacity < slots:
            self.capacity *= 2
        for buffers in (self._keys, self._values):
            for layer, old in enumerate(buffers):
                if old.shape[2] < self.capacity:
                    buffers[layer] = old.new_empty((1, old.shape[1], self.capacity, old.shape[3]))
                    buffers[layer][:, :, : self.used] = old[:, :, : self.used]

    # what a Hugging Face decoder calls

    def update(
        self,
        keys: Float[Tensor, "1 heads rows size"],
        values: Float[Tensor, "1 heads rows size"],
        layer_idx: int,
        cache_kwargs: object = None,
    ) -> tuple[Float[Tensor, "1 heads slots size"], Float[Tensor, "1 heads slots size"]]:
        """Store the new rows of one layer; all rows of that layer so far."""
        if layer_idx == len(self._keys):
            self._keys.append(keys.new_empty((1, keys.shape[1], self.capacity, keys.shape[3])))
            self._values.append(
                values.new_empty((1, values.shape[1], self.capacity, values.shape[3]))
            )
        end = self.used + self._pending
        self._keys[layer_idx][:, :, self.used : end] = keys
        self._values[layer_idx][:, :, self.used : end] = values
        return self._keys[layer_idx][:, :, :end], self._values[layer_idx][:, :, :end]

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Slots in use before this pass."""
        return self.used
