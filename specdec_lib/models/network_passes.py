"""Forward passes of Llama layers over padded batches, for training: with any window, from any
input, and with the hidden states on the way.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention
from transformers import LlamaForCausalLM
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

Rotation = tuple[Float[Tensor, "rows length size"], Float[Tensor, "rows length size"]]
"""Cosines and sines of positions: one row for all texts, or one for each."""


def rotation_of(
    network: LlamaForCausalLM, length: int, hidden: Float[Tensor, "batch length width"]
) -> Rotation:
    """Cosines and sines of positions from 0 on."""
    positions = torch.arange(length, device=hidden.device)[None]
    return network.model.rotary_emb(hidden, positions)


def window_mask(
    length: int, window: int | None, device: torch.device
) -> Bool[Tensor, "length length"]:
    """Which positions (columns) each position (rows) sees: the last `window` with its own, or all
    before it.
    """
    at = torch.arange(length, device=device)
    behind = at[:, None] - at[None, :]
    seen = behind >= 0
    return seen if window is None else seen & (behind < window)


def attention_heads(
    layer: nn.Module, normed: Float[Tensor, "batch length width"], rotation: Rotation
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values of a layer, rotated, as (batch, heads, length, size)."""
    own: Any = layer.self_attn
    shape = (*normed.shape[:-1], -1, own.head_dim)
    query = own.q_proj(normed).view(shape).transpose(1, 2)
    key = own.k_proj(normed).view(shape).transpose(1, 2)
    value = own.v_proj(normed).view(shape).transpose(1, 2)
    query, key = apply_rotary_pos_emb(query, key, *rotation)
    return query, key, value


def shared_heads(rows: Tensor, query: Tensor) -> Tensor:
    """Keys or values, repeated for the query heads that share them."""
    return rows.repeat_interleave(query.shape[1] // rows.shape[1], dim=1)


def run_layers(
    layers: Iterable[Any],
    hidden: Float[Tensor, "batch length width"],
    rotation: Rotation,
    mask: Bool[Tensor, "length length"] | None,
    wanted: Sequence[int] = (),
) -> tuple[Float[Tensor, "batch length width"], list[Float[Tensor, "batch length width"]]]:
    """The hidden states after all layers (before the last norm), and after those numbered in
    `wanted`, counted from 0; a mask of None is causal.
    """
    found = []
    for number, layer in enumerate(layers):
        normed = layer.input_layernorm(hidden)
        query, key, value = attention_heads(layer, normed, rotation)
        attended = scaled_dot_product_attention(
            query,
            shared_heads(key, query),
            shared_heads(value, query),
            attn_mask=mask,
            is_causal=mask is None,
        )
        hidden = finish_layer(layer, hidden, attended)
        if number in wanted:
            found.append(hidden)
    return hidden, found


def finish_layer(
    layer: Any,
    hidden: Float[Tensor, "batch length width"],
    attended: Float[Tensor, "batch heads length size"],
) -> Float[Tensor, "batch length width"]:
    """What a layer puts out, from its input and what its heads attended to."""
    joined = attended.transpose(1, 2).reshape(hidden.shape)
    hidden = hidden + layer.self_attn.o_proj(joined)
    return hidden + layer.mlp(layer.post_attention_layernorm(hidden))


def padded_ids(texts: Sequence[Sequence[int]], device: torch.device) -> Int[Tensor, "batch length"]:
    """Texts as rows of one tensor, filled with 0 behind their end."""
    longest = max(map(len, texts))
    rows = [[*text, *[0] * (longest - len(text))] for text in texts]
    return torch.tensor(rows, device=device)
