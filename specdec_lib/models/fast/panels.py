"""Weight matrices in panels of sixteen outputs, in one of three number formats."""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float32

from specdec_lib.models.fast.tiles import COLUMNS

Numbers = Float32[np.ndarray, "..."]
Matrix = Float32[np.ndarray, "_ _"]
Linear = tuple[Matrix, Numbers | None]
"""The weight [outs, ins] and the bias of a linear layer."""
Panels = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Weights [layers, panels, ins, …], and a scale and a bias per output, [layers, panels, 16]."""


def exact_format(weights: Sequence[Matrix]) -> str:
    """ "bfloat16" if that changes no weight, else "float32"."""
    exact = all(not (weight.view(np.uint32) & 0xFFFF).any() for weight in weights)
    return "bfloat16" if exact else "float32"


def stack_panels(layers: Sequence[Linear], form: str) -> Panels:
    """The panels of one linear layer of every decoder layer."""
    weights, scales, biases = zip(*(FORMATS[form](*layer) for layer in layers), strict=True)
    return np.stack(weights), np.stack(scales), np.stack(biases)


def _float32(weight: Matrix, bias: Numbers | None) -> Panels:
    panels = _panels(weight)
    return panels, np.ones((len(panels), COLUMNS), np.float32), _columns(bias, len(panels))


def _bfloat16(weight: Matrix, bias: Numbers | None) -> Panels:
    """Two columns per 32-bit word: column j in the lower half of word j, j + 8 in the upper."""
    panels, scales, biases = _float32(weight, bias)
    words = panels.view(np.uint32)
    low, high = words[..., :8] >> np.uint32(16), words[..., 8:] & np.uint32(0xFFFF0000)
    return np.ascontiguousarray(low | high), scales, biases


def _int8(weight: Matrix, bias: Numbers | None) -> Panels:
    """Weights rounded to eight bits with a scale per output."""
    scale = np.maximum(np.abs(weight).max(1), np.float32(1e-12)) / np.float32(127)
    panels = np.rint(_panels(weight / scale[:, None])).astype(np.int8)
    return panels, _columns(scale, len(panels)), _columns(bias, len(panels))


FORMATS: dict[str, Callable[[Matrix, Numbers | None], Panels]] = {
    "float32": _float32,
    "bfloat16": _bfloat16,
    "int8": _int8,
}


def _panels(weight: Matrix) -> np.ndarray:
    """[outs, ins] to [panels, ins, 16]; missing outputs are zeros."""
    outs, ins = weight.shape
    whole = np.zeros((-(-outs // COLUMNS) * COLUMNS, ins), np.float32)
    whole[:outs] = weight
    return np.ascontiguousarray(whole.reshape(-1, COLUMNS, ins).transpose(0, 2, 1))


def _columns(values: Numbers | None, panels: int) -> np.ndarray:
    """A value per output, [panels, 16]; zeros where there is none."""
    whole = np.zeros(panels * COLUMNS, np.float32)
    if values is not None:
        whole[: len(values)] = values
    return whole.reshape(panels, COLUMNS)
