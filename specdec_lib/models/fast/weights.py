"""The weights of a GPT-2 or Llama model from Hugging Face, laid out for the compiled pass."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float32
from torch import Tensor
from transformers import PreTrainedModel

from specdec_lib.models.cached.model import check_attention
from specdec_lib.models.fast.arithmetic import count_steps
from specdec_lib.models.fast.layouts import (
    Linear,
    Matrix,
    Numbers,
    Shape,
    Tables,
    gpt2_layout,
    llama_layout,
    numbers,
)
from specdec_lib.models.fast.tiles import BLOCK, COLUMNS

EDITIONS = {  # and their arithmetic
    "exact": "float32 sums over float32 weights",
    "int8": "whole sums over rows and weights of 8 bits",
}
LAYOUTS = {"gpt2": gpt2_layout, "llama": llama_layout}

Panels = tuple[np.ndarray, np.ndarray]
"""Weights [layers, panels, …], see `tiles`, and a bias per output, [layers, panels · 16]."""


@dataclass(frozen=True, eq=False)
class Weights:
    """The arguments of the compiled pass that stay the same, see `layouts`: of the layers the norms
    and the panels of the four linear layers, of the head its panels as one layer.
    """

    shape: Shape
    tables: Tables
    layers: tuple[Numbers, Panels, Panels, Panels, Panels]
    head: Panels
    edition: str

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
        """Empty keys […, entries ÷ 16, size, 16] and values […, size ÷ 16, entries, 16]."""
        layers, heads, size = len(self.layers[0]) - 1, self.shape[1], self.shape[2]
        panels = -(-entries // COLUMNS)
        keys = np.zeros((layers, heads, panels, size, COLUMNS), np.float32)
        return keys, np.zeros((layers, heads, size // COLUMNS, entries, COLUMNS), np.float32)


def read_weights(model: PreTrainedModel, edition: str = "exact") -> Weights:
    """The weights of a model, "exact" in float32 or "int8" in blocks of 32, see `block_steps`;
    raises ValueError that names what the compiled pass does not compute.
    """
    if edition not in EDITIONS:
        raise ValueError(f"an edition is {' or '.join(EDITIONS)}, got {edition!r}")
    kind = model.config.model_type
    if kind not in LAYOUTS:
        known = f"the fast runtime knows {' and '.join(LAYOUTS)} models"
        raise ValueError(f"{known}, got {kind!r}; the reference runtime runs any decoder")
    if model.dtype not in (torch.float32, torch.bfloat16) or model.device.type != "cpu":
        got = f"a model in {model.dtype} on {model.device}"
        raise ValueError(f"the fast runtime computes in float32 on a CPU, got {got}")
    check_attention(model)
    with torch.no_grad():
        shape, tables, norms, linears, head = LAYOUTS[kind](model)
        panels = (stack_panels(group, edition, len(norms) - 1) for group in linears)
        return Weights(shape, tables, (norms, *panels), stack_panels([head], edition), edition)


def replace_outputs(weights: Weights, first: int, rows: Tensor) -> Weights:
    """The same weights with other rows of the output matrix from `first`, a whole panel, on."""
    panels, biases = stack_panels([(numbers(rows), None)], weights.edition)
    joined = (
        np.concatenate([old[:, : first // part], new], axis=1)
        for old, new, part in zip(weights.head, (panels, biases), (COLUMNS, 1), strict=True)
    )
    return replace(weights, head=tuple(joined))


def stack_panels(layers: Iterable[Linear], edition: str, count: int = 1) -> Panels:
    """The panels of one linear layer of each of `count` decoder layers, made one at a time."""
    panels, biases = np.empty(0), np.empty(0)
    for number, (weight, bias) in enumerate(layers):
        made = PANELS[edition](weight)
        if not number:
            panels = np.empty((count, *made.shape), made.dtype)
            biases = np.zeros((count, len(made) * COLUMNS), np.float32)
        panels[number] = made
        if bias is not None:
            biases[number, : len(bias)] = bias
    return panels, biases


def _bytes(weight: Matrix) -> np.ndarray:
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


def block_steps(
    blocks: Float32[np.ndarray, "outs blocks 32"],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The whole numbers (uint8), steps and lows (float16) of blocks: those of Q4_1 and Q8_0 in GGUF
    where they give the very weights back, else 255 steps from lowest to highest.
    """
    low, high, size = blocks.min(2), blocks.max(2), np.abs(blocks).max(2)
    found = _in_steps(blocks, (high - low) / 255, low)[:3]
    for step, start in (((high - low) / 15, low), (size / 127, size / 127 * -128)):
        *tried, same = _in_steps(blocks, step, start)
        for old, new in zip(found, tried, strict=True):
            old[same] = new[same]
    return found


def _in_steps(
    blocks: np.ndarray, step: np.ndarray, low: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The nearest whole numbers of rounded steps, and whether blocks come back exactly."""
    step, low = step.astype(np.float16), low.astype(np.float16)
    numbers, same = np.empty(blocks.shape, np.uint8), np.empty(step.shape, np.bool_)
    count_steps(blocks, step.astype(np.float32), low.astype(np.float32), numbers, same)
    return numbers, step, low, same


def _panels(weight: Matrix) -> np.ndarray:
    """[outs, ins] to [panels, ins, 16]; missing outputs are zeros."""
    whole = _filled(weight)
    return np.ascontiguousarray(whole.reshape(-1, COLUMNS, whole.shape[1]).transpose(0, 2, 1))


PANELS = {"exact": _panels, "int8": _bytes}


def _filled(weight: Matrix, block: int = 1) -> Matrix:
    """The weights of whole panels and blocks, with zeros behind the given ones."""
    outs, ins = weight.shape
    return np.pad(weight, ((0, -outs % COLUMNS), (0, -ins % block)))
