"""The keys and values of cache entries, which a path memory crops, hides and moves."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool
from transformers import DynamicCache, PreTrainedModel


class KeyValues(DynamicCache):
    """The keys and values of cache entries, as Hugging Face decoders append them."""

    @property
    def _own(self) -> list[Any]:
        """Its layers, each with keys and values."""
        return self.layers

    def begin(
        self, used: int, committed: int, paths: Sequence[Sequence[int]]
    ) -> Bool[np.ndarray, "rows entries"]:
        """Drop the entries beyond `used`, and return the attention mask of the new rows: each sees
        the first `committed` entries and those of its path.
        """
        for layer in self._own:
            layer.keys = layer.keys[:, :, :used]
            layer.values = layer.values[:, :, :used]
        sees = np.zeros((len(paths), used + len(paths)), dtype=bool)
        sees[:, :committed] = True
        for row, path in enumerate(paths):
            sees[row, path] = True
        return sees

    def move(self, sources: list[int], first: int) -> None:
        """Move the entries `sources` to the places `first`, first + 1, …"""
        given = torch.tensor(sources)
        for layer in self._own:
            for rows in (layer.keys, layer.values):
                rows[:, :, first : first + len(sources)] = rows[:, :, given]


def reference_runtime(model: PreTrainedModel) -> str:
    """The runtime of a model that Hugging Face's own code runs, in words."""
    return f"reference: Hugging Face in {str(model.dtype).removeprefix('torch.')} on {model.device}"
