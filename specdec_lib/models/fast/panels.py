"""Weights in panels of sixteen outputs, made some outputs at a time, see `products`."""

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from jaxtyping import Float, Float32
from torch import Tensor

from specdec_lib.models.fast.blocks import block_steps
from specdec_lib.models.fast.products import BLOCK, COLUMNS
from specdec_lib.models.mapped import give_back

PACKED_AT_ONCE = 4_000_000  # weights

Matrix = Float32[np.ndarray, "_ _"]
Linear = tuple[Sequence[Float[Tensor, "_ ins"]], Float[Tensor, " outs"] | None]
"""The weights of a linear layer, one below the other, and its bias."""
Panels = tuple[np.ndarray, np.ndarray]
"""Weights [layers, panels, …], see `tiles`, and a bias per output, [layers, panels · 16]."""


def numbers_of(tensor: Tensor) -> Float32[np.ndarray, "..."]:
    """The elements of a tensor as contiguous float32."""
    return np.ascontiguousarray(tensor.detach().float().numpy())


def stack_panels(
    layers: Iterable[Linear], edition: str, count: int = 1, *, as_in_files: bool = False
) -> Panels:
    """The panels of one linear layer of each of `count` decoder layers, made some outputs at a
    time, so that little more memory is needed than they take.
    """
    make = _byte_panels if edition == "int8" else _panels
    panels = np.empty(0)
    biases = np.empty(0)
    for number, (weights, bias) in enumerate(layers):
        outs = sum(map(len, weights))
        step = max(1, PACKED_AT_ONCE // (weights[0].shape[1] * COLUMNS)) * COLUMNS
        for first in range(0, outs, step):
            pieces = _rows_of(weights, first, first + step)
            made = make(numbers_of(torch.cat(pieces)))
            if as_in_files:
                give_back(pieces)
            if not number and not first:
                whole = -(-outs // COLUMNS)
                panels = np.empty((count, whole, *made.shape[1:]), made.dtype)
                biases = np.zeros((count, whole * COLUMNS), np.float32)
            place = first // COLUMNS
            panels[number, place : place + len(made)] = made
        if bias is not None:
            biases[number, : len(bias)] = numbers_of(bias)
    return panels, biases


def _rows_of(weights: Sequence[Tensor], first: int, stop: int) -> list[Tensor]:
    """The rows from `first` to `stop` of some weights that stand one below the other."""
    found = []
    for weight in weights:
        found.append(weight[max(first, 0) : max(stop, 0)])
        first -= len(weight)
        stop -= len(weight)
    return found


def _panels(weight: Matrix) -> np.ndarray:
    """[outs, ins] to [panels, ins, 16]; missing outputs are zeros."""
    whole = _filled(weight)
    return np.ascontiguousarray(whole.reshape(-1, COLUMNS, whole.shape[1]).transpose(0, 2, 1))


def _byte_panels(weight: Matrix) -> np.ndarray:
    """[outs, ins] to [panels, ins ÷ 32, 576], see `tiles`: in steps of which `block_steps` says."""
    whole = _filled(weight, BLOCK)
    blocks = whole.reshape(len(whole), -1, BLOCK)
    numbers, step, low = block_steps(blocks)
    count = blocks.shape[1]
    tiled = numbers.reshape(-1, COLUMNS, count, BLOCK // 4, 4).transpose(0, 2, 3, 1, 4)
    ends = [
        one.reshape(-1, COLUMNS, count).transpose(0, 2, 1).copy().view(np.uint8)
        for one in (step, low)
    ]
    return np.concatenate([tiled.reshape(-1, count, BLOCK * COLUMNS), *ends], axis=2)


def _filled(weight: Matrix, block: int = 1) -> Matrix:
    """The weights of whole panels and blocks, with zeros behind the given ones."""
    outs, ins = weight.shape
    more = (0, -outs % COLUMNS), (0, -ins % block)
    return np.pad(weight, more) if any(more[0] + more[1]) else weight
