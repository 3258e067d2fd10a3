"""Keys and values of cache entries, in one preallocated buffer per layer."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor


class KeyValues:
    """The buffers of one model, with the two methods that Hugging Face decoders call."""

    def __init__(self, capacity: int) -> None:
        self.capacity, self.used, self._end = capacity, 0, 0
        self._keys: list[Tensor] = []
        self._values: list[Tensor] = []

    def begin(
        self, used: int, committed: int, paths: Sequence[Sequence[int]]
    ) -> Bool[np.ndarray, "rows entries"]:
        """Make room for a pass over new rows, in the entries from `used` on; returns its attention
        mask: each row sees the first `committed` entries and those of its path.
        """
        self.used, self._end = used, used + len(paths)
        while self.capacity < self._end:
            self.capacity *= 2
        for buffers in (self._keys, self._values):
            for layer, old in enumerate(buffers):
                if old.shape[2] < self.capacity:
                    buffers[layer] = self._buffer(old)
                    buffers[layer][:, :, :used] = old[:, :, :used]
        sees = np.zeros((len(paths), self._end), dtype=bool)
        sees[:, :committed] = True
        for row, path in enumerate(paths):
            sees[row, path] = True
        return sees

    def move(self, sources: Sequence[int], first: int) -> None:
        """Move the entries `sources` to the places `first`, first + 1, …"""
        if self._keys:
            given = torch.tensor(sources, device=self._keys[0].device)
            for buffer in (*self._keys, *self._values):
                buffer[:, :, first : first + len(sources)] = buffer[:, :, given]

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
        kept = self._keys[layer_idx], self._values[layer_idx]
        for buffer, rows in zip(kept, (keys, values), strict=True):
            buffer[:, :, self.used : self._end] = rows
        return kept[0][:, :, : self._end], kept[1][:, :, : self._end]

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Entries in use before this pass."""
        return self.used
