"""A token for each of many independent sequences per pass: a Llama decoder over a static cache."""

from collections.abc import Sequence
from copy import deepcopy

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from transformers import LlamaForCausalLM
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb


class BatchedPasses:
    """The logits of a Llama model's next token for some sequences of at most so many positions.

    dtype    None is bfloat16 where the processor multiplies it: to learn from, not to measure
    head     the token ids that are scored, None for all
    """

    def __init__(
        self,
        model: LlamaForCausalLM,
        sequences: int,
        positions: int,
        *,
        dtype: torch.dtype | None = None,
        head: Sequence[int] | None = None,
    ) -> None:
        config, dtype = model.config, dtype or fastest_dtype()
        self.body = model.model if model.dtype == dtype else deepcopy(model.model).to(dtype)
        self.body.rotary_emb = model.model.rotary_emb  # bfloat16 would round its frequencies
        rows = model.lm_head.weight.detach()
        self.head = (rows if head is None else rows[list(head)]).to(dtype)
        size = config.hidden_size // config.num_attention_heads
        shape = (len(self.body.layers), sequences, config.num_key_value_heads, positions, size)
        self.keys, self.values = torch.zeros(shape, dtype=dtype), torch.zeros(shape, dtype=dtype)

    @torch.inference_mode()
    def logits(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """The logits after one more token, with its position, of every sequence."""
        rows, seen = torch.arange(len(tokens)), int(positions.max()) + 1
        heads = (len(tokens), -1, 1, self.keys.shape[-1])
        hidden = self.body.embed_tokens(tokens)
        rotation = self.body.rotary_emb(hidden, positions[:, None])
        visible = (torch.arange(seen) <= positions[:, None])[:, None, None]
        for layer, keys, values in zip(self.body.layers, self.keys, self.values, strict=True):
            normed, own = layer.input_layernorm(hidden), layer.self_attn
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


def draw(
    logits: Tensor, temperature: float, generator: torch.Generator, *, greedy: Tensor
) -> Tensor:
    """The place of each row's next token: the likeliest where `greedy`, else one drawn."""
    best = logits.argmax(dim=-1)
    odds = (logits[~greedy].float() / temperature).softmax(dim=-1).cumsum(dim=-1)
    place = torch.rand(len(odds), 1, generator=generator) * odds[:, -1:]
    best[~greedy] = torch.searchsorted(odds, place).squeeze(1).clamp(max=logits.shape[1] - 1)
    return best


def fastest_dtype() -> torch.dtype:
    """bfloat16 where the processor multiplies it, else float32, which is then far quicker."""
    capable = torch.cpu.get_capabilities()
    known = any(capable.get(name) for name in ("avx512_bf16", "amx_bf16", "bf16"))
    return torch.bfloat16 if known else torch.float32
