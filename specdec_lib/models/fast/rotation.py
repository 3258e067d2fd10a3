"""The rotary embeddings of a model as tables, and which of them each layer applies."""

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float32, Int64

RotaryTables = Float32[np.ndarray, "rotations positions half"]
"""Cosines or sines: of each of a model's rotary embeddings, by position."""


def layer_rotations(body: Any) -> tuple[list[str], Int64[np.ndarray, " layers"]]:
    """The names of a decoder's rotary embeddings, "" for its only one, and the place of each
    layer's in them; −1 for a layer that applies none.
    """
    rotary = getattr(body, "rotary_emb", None)
    if rotary is None:
        return [], np.full(body.config.num_hidden_layers, -1)
    layers = body.layers
    typed = "layer_type" in inspect.signature(rotary.forward).parameters
    types = list(body.config.layer_types) if typed else [""] * len(layers)
    names = sorted(set(types))
    applied = [getattr(layer.self_attn, "use_rope", True) for layer in layers]
    places = [names.index(name) if one else -1 for name, one in zip(types, applied, strict=True)]
    return names, np.array(places)


@torch.no_grad()
def rotary_tables(
    body: Any, names: Sequence[str], positions: int
) -> tuple[RotaryTables, RotaryTables]:
    """Cosines and sines of so many positions, in the order of the names; raises ValueError for
    embeddings that do not rotate the two halves of a head by the same angles.
    """
    if not names:
        empty = np.empty((0, 0, 0), np.float32)
        return empty, empty
    at = torch.arange(positions)[None]
    tables = [body.rotary_emb(torch.zeros(1), at, *([name] if name else [])) for name in names]
    cosines, sines = (
        np.stack([table[0].numpy() for table in both]) for both in zip(*tables, strict=True)
    )
    half = cosines.shape[2] // 2
    for table in (cosines, sines):
        if not np.array_equal(table[..., :half], table[..., half:]):
            raise ValueError("the fast runtime rotates the two halves of a head by the same angles")
    return cosines[..., :half].copy(), sines[..., :half].copy()
