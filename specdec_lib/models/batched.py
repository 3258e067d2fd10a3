"""A token for each of many independent sequences per pass: a Llama decoder over a static cache."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from torch.nn.utils.rnn import pad_sequence
from transformers import PreTrainedModel
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

from specdec_lib.models.network_passes import attention_heads, finish_layer, shared_heads


class BatchedPasses:
    """The logits of a Llama model's next token for some sequences of at most so many positions.

    dtype    None is bfloat16 where the device multiplies it: to learn from, not to measure
    head     the token ids that are scored, None for all

    It computes on the model's device. Keys and values take `cache_bytes`.  Raises ValueError for
    another kind of model, whose layers would be computed otherwise than it does.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        sequences: int,
        positions: int,
        *,
        dtype: torch.dtype | None = None,
        head: Sequence[int] | None = None,
    ) -> None:
        config = model.config
        if config.model_type != "llama":
            raise ValueError(f"batched passes are of a llama model, got {config.model_type!r}")
        dtype = dtype or fastest_dtype(model.device)
        self.device = model.device
        whole: Any = model
        self.body: Any = whole.model
        if model.dtype != dtype:
            self.body = deepcopy(self.body).to(dtype)
        self.body.rotary_emb = whole.model.rotary_emb  # bfloat16 would round its frequencies
        rows = whole.lm_head.weight.detach()
        self.head = (rows if head is None else rows[list(head)]).to(dtype)
        size = self.body.layers[0].self_attn.head_dim
        heads = int(config.num_key_value_heads or config.num_attention_heads)
        shape = (len(self.body.layers), sequences, heads, positions, int(size))
        self.keys = torch.zeros(shape, dtype=dtype, device=self.device)
        self.values = torch.zeros(shape, dtype=dtype, device=self.device)

    @property
    def cache_bytes(self) -> int:
        """The bytes of all keys and values."""
        return self.keys.nbytes + self.values.nbytes

    @torch.inference_mode()
    def logits(
        self, tokens: Int[Tensor, " sequences"], positions: Int[Tensor, " sequences"]
    ) -> Float[Tensor, "sequences scored"]:
        """The logits after one more token, with its position, of every sequence."""
        seen = int(positions.max()) + 1
        tokens = tokens.to(self.device)
        positions = positions.to(self.device)
        rows = torch.arange(len(tokens), device=self.device)
        heads = (len(tokens), -1, 1, self.keys.shape[-1])
        hidden = self.body.embed_tokens(tokens)
        rotation = self.body.rotary_emb(hidden, positions[:, None])
        every = torch.arange(seen, device=self.device)
        visible = (every <= positions[:, None])[:, None, None]
        for layer, keys, values in zip(self.body.layers, self.keys, self.values, strict=True):
            normed = layer.input_layernorm(hidden)
            own = layer.self_attn
            query, key = (part(normed).view(heads) for part in (own.q_proj, own.k_proj))
            query, key = apply_rotary_pos_emb(query, key, *rotation)
            keys[rows, :, positions] = key.squeeze(2)
            values[rows, :, positions] = own.v_proj(normed).view(heads).squeeze(2)
            groups = query.view(len(tokens), keys.shape[1], -1, keys.shape[-1])
            attended = scaled_dot_product_attention(
                groups, keys[:, :, :seen], values[:, :, :seen], attn_mask=visible
            )
            hidden = hidden + own.o_proj(attended.reshape(hidden.shape))
            hidden = hidden + layer.mlp(layer.post_attention_layernorm(hidden))
        return self.body.norm(hidden) @ self.head.T

    @torch.inference_mode()
    def read(
        self, slots: Sequence[int], texts: Sequence[Sequence[int]], starts: Sequence[int]
    ) -> Float[Tensor, "texts scored"]:
        """The logits after the last token of each text, which is read in one pass.

        slots     which sequence each text belongs to, each at most once
        starts    the position of its first token; what the sequence holds before it is seen
        """
        place = torch.tensor(slots, device=self.device)
        first = torch.tensor(starts, device=self.device)
        sizes = torch.tensor([len(text) for text in texts], device=self.device)
        padded = [torch.tensor(text, device=self.device) for text in texts]
        ids = pad_sequence(padded, batch_first=True)
        steps = torch.arange(ids.shape[1], device=self.device)
        positions = first[:, None] + steps
        real = steps < sizes[:, None]
        at = (place[:, None].expand_as(positions)[real], positions[real])
        fresh = not any(starts)
        seen = max(start + len(text) for start, text in zip(starts, texts, strict=True))
        every = torch.arange(seen, device=self.device)
        visible = None if fresh else (every <= positions[..., None])[:, None]
        hidden = self.body.embed_tokens(ids)
        rotation = self.body.rotary_emb(hidden, positions)
        for layer, keys, values in zip(self.body.layers, self.keys, self.values, strict=True):
            normed = layer.input_layernorm(hidden)
            query, key, value = attention_heads(layer, normed, rotation)
            keys[at[0], :, at[1]] = key.transpose(1, 2)[real]
            values[at[0], :, at[1]] = value.transpose(1, 2)[real]
            if not fresh:
                key = keys[place, :, :seen]
                value = values[place, :, :seen]
            attended = scaled_dot_product_attention(
                query,
                shared_heads(key, query),
                shared_heads(value, query),
                attn_mask=visible,
                is_causal=fresh,
            )
            hidden = finish_layer(layer, hidden, attended)
        last = hidden[torch.arange(len(texts), device=self.device), sizes - 1]
        return self.body.norm(last) @ self.head.T


def draw(
    logits: Float[Tensor, "rows scored"],
    temperature: float | Float[Tensor, " rows"],
    generator: torch.Generator,
    *,
    greedy: Tensor,
) -> Int[Tensor, " rows"]:
    """The place of each row's next token: the likeliest where `greedy`, else one drawn.

    temperature    of all rows, or one of each row; that of a greedy row is not used
    """
    best = logits.argmax(dim=-1)
    drawn = ~greedy
    if isinstance(temperature, Tensor):
        temperature = temperature[drawn, None]
    odds = (logits[drawn].float() / temperature).softmax(dim=-1).cumsum(dim=-1)
    place = torch.rand(len(odds), 1, generator=generator, device=generator.device) * odds[:, -1:]
    best[drawn] = torch.searchsorted(odds, place).squeeze(1).clamp(max=logits.shape[1] - 1)
    return best


def fastest_dtype(device: torch.device | None = None) -> torch.dtype:
    """bfloat16 where the device multiplies it, else float32, which is then far quicker.

    device    None is the processor
    """
    if device is not None and device.type == "cuda":
        return torch.bfloat16
    capable = torch.cpu.get_capabilities()
    known = any(capable.get(name) for name in ("avx512_bf16", "amx_bf16", "bf16"))
    return torch.bfloat16 if known else torch.float32
