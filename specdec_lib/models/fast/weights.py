"""The weights of a GPT-2 or Llama model from Hugging Face, laid out for the compiled pass."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from specdec_lib.models.cached.model import check_attention
from specdec_lib.models.fast.layouts import (
    Linear,
    Matrix,
    Numbers,
    Shape,
    gpt2_layout,
    llama_layout,
    numbers,
)
from specdec_lib.models.fast.tiles import COLUMNS

STORED = ("exact", "int8")
LAYOUTS = {"gpt2": gpt2_layout, "llama": llama_layout}

Panels = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Weights [layers, panels, ins, …], and a scale and a bias per output, [layers, panels, 16]."""


@dataclass(frozen=True, eq=False)
class Weights:
    """The arguments of the compiled pass that stay the same; see `Layout`.

    layers    norms, then the panels of the four linear layers
    head      the panels of the output matrix, as one layer
    """

    shape: Shape
    tables: tuple[Numbers, Numbers, Numbers, Numbers]
    layers: tuple[Numbers, Panels, Panels, Panels, Panels]
    head: Panels
    stored: str

    @property
    def nbytes(self) -> int:
        """Of all tables and panels."""
        norms, *groups = self.layers
        parts = (part for group in (*groups, self.head) for part in group)
        return norms.nbytes + sum(part.nbytes for part in (*self.tables, *parts))

    @property
    def columns(self) -> int:
        """The width of a row of logits as the pass writes it: whole panels."""
        return self.head[0].shape[1] * COLUMNS

    def buffers(self, entries: int) -> tuple[Numbers, Numbers]:
        """Empty keys [layers, heads, entries ÷ 16, size, 16] and values [layers, heads, size ÷ 16,
        entries, 16].
        """
        layers, heads, size = len(self.layers[0]) - 1, self.shape[1], self.shape[2]
        panels = -(-entries // COLUMNS)
        keys = np.zeros((layers, heads, panels, size, COLUMNS), np.float32)
        return keys, np.zeros((layers, heads, size // COLUMNS, entries, COLUMNS), np.float32)


def read_weights(model: PreTrainedModel, stored: str = "exact") -> Weights:
    """The weights of a model: "exact" in bfloat16 if that changes none, else in float32; or "int8",
    rounded with a scale per output.

    Raises ValueError for a model that computes anything the compiled pass does not, and names it.
    """
    if stored not in STORED:
        raise ValueError(f"weights are stored {' or '.join(STORED)}, got {stored!r}")
    kind = model.config.model_type
    if kind not in LAYOUTS:
        raise ValueError(
            f"the fast runtime knows {' and '.join(LAYOUTS)} models, got {kind!r}; the reference"
            " runtime runs any decoder"
        )
    if model.dtype not in (torch.float32, torch.bfloat16) or model.device.type != "cpu":
        raise ValueError(
            f"the fast runtime computes in float32 on a CPU, got a model in {model.dtype} on"
            f" {model.device}"
        )
    check_attention(model)
    with torch.no_grad():
        layout = LAYOUTS[kind](model)
    matrices = [weight for group in (*layout.linears, [layout.head]) for weight, _ in group]
    form = exact_format(matrices) if stored == "exact" else stored
    return Weights(
        layout.shape,
        layout.tables,
        (layout.norms, *(stack_panels(group, form) for group in layout.linears)),
        stack_panels([layout.head], form),
        form,
    )


def replace_head(weights: Weights, rows: Tensor) -> Weights:
    """The same weights with an output matrix of these rows."""
    return replace(weights, head=stack_panels([(numbers(rows), None)], weights.stored))


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
