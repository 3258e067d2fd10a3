"""The keys and values of cache entries, which a path memory crops, hides and moves."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel


class KeyValues(DynamicCache):
    """The keys and values of cache entries, as Hugging Face decoders append them; and hidden states
    of the entries' tokens, where these are kept.
    """

    states: Float[Tensor, "entries states width"] | None = None

    @property
    def _own(self) -> list[Any]:
        """Its layers, each with keys and values."""
        return self.layers

    def begin(
        self, used: int, committed: int, paths: Sequence[Sequence[int]], window: int | None = None
    ) -> Bool[np.ndarray, "rows entries"]:
        """Drop the entries beyond `used`, and return the attention mask of the new rows, see
        `seen_entries`.
        """
        for layer in self._own:
            layer.keys = layer.keys[:, :, :used]
            layer.values = layer.values[:, :, :used]
        if self.states is not None:
            self.states = self.states[:used]
        return seen_entries(used, committed, paths, window)

    def move(self, sources: list[int], first: int) -> None:
        """Move the entries `sources` to the places `first`, first + 1, …"""
        given = torch.tensor(sources)
        for layer in self._own:
            for rows in (layer.keys, layer.values):
                rows[:, :, first : first + len(sources)] = rows[:, :, given]
        if self.states is not None:
            self.states[first : first + len(sources)] = self.states[given]

    def add_states(self, found: Sequence[Float[Tensor, "1 rows width"]]) -> None:
        """Keep the hidden states of the new rows, which `begin` announced."""
        new = torch.stack([one[0] for one in found], dim=1)
        self.states = new if self.states is None else torch.cat([self.states, new])


def seen_entries(
    used: int, committed: int, paths: Sequence[Sequence[int]], window: int | None
) -> Bool[np.ndarray, "rows entries"]:
    """Which entries, the new rows' own after the `used` ones, each row sees: the first `committed`
    and those of its path; of all these the last `window`.
    """
    sees = np.zeros((len(paths), used + len(paths)), dtype=bool)
    for row, path in enumerate(paths):
        hidden = 0 if window is None else max(0, committed + len(path) - window)
        sees[row, hidden:committed] = True
        sees[row, path[max(0, hidden - committed) :]] = True
    return sees


def reference_runtime(model: PreTrainedModel) -> str:
    """The runtime of a model that Hugging Face's own code runs, in words."""
    return f"reference: Hugging Face in {str(model.dtype).removeprefix('torch.')} on {model.device}"
