"""What each step of training looks at: a function of the seed and the step alone, so that a run can
go on where it stopped.
"""

import functools
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import PreTrainedModel


@dataclass(frozen=True)
class Windows:
    """Windows of a stream: every token but the first is wanted."""

    tokens: Int[Tensor, "rows positions"]

    @property
    def wanted(self) -> Int[Tensor, " places"]:
        """Every token but the first of its window."""
        return self.tokens[:, 1:].flatten()

    def logits(self, model: PreTrainedModel) -> Float[Tensor, "places vocab"]:
        """What a decoder says after every token but the last of its window; in bfloat16."""
        with torch.autocast(self.tokens.device.type, torch.bfloat16):
            return model(self.tokens[:, :-1], use_cache=False).logits.flatten(0, 1)

    def to(self, device: str) -> "Windows":
        """The same on a device."""
        return Windows(self.tokens.to(device))


def windows(stream: np.ndarray, positions: int, rows: int, seed: int, step: int) -> Windows:
    """The windows of one step: each window of the stream comes once per epoch."""
    count = (len(stream) - 1) // positions
    chosen = [place(count, step * rows + row, seed) * positions for row in range(rows)]
    return Windows(
        torch.from_numpy(
            np.stack([stream[at : at + positions + 1] for at in chosen]).astype(np.int64)
        )
    )


def place(count: int, index: int, seed: int) -> int:
    """Which of `count` things comes at this place of an endless sequence in which each comes once
    per epoch.
    """
    epoch, within = divmod(index, count)
    return int(_order(count, epoch, seed)[within])


@functools.lru_cache(maxsize=4)
def _order(count: int, epoch: int, seed: int) -> np.ndarray:
    return np.random.default_rng([seed, epoch]).permutation(count)
