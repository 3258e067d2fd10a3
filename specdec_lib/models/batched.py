"""One token for each of many independent sequences per pass: a Llama decoder over a static cache,
where each sequence has its own length and is replaced as soon as it has ended.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import rms_norm, scaled_dot_product_attention, silu
from transformers import LlamaForCausalLM


class BatchedPasses:
    """The logits of a Llama model's next token for `sequences` sequences at a time.

    positions    how many tokens each may have at most
    dtype        None is bfloat16 where the processor multiplies it: to learn from, not to measure
    head         the token ids that are scored, None for all
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
        config = model.config
        self.heads, self.kv_heads = config.num_attention_heads, config.num_key_value_heads
        self.width, self.epsilon = config.hidden_size, config.rms_norm_eps
        self.head_width = self.width // self.heads
        self.dtype = dtype or fastest_dtype()
        self.weights = [_layer(layer, self.dtype) for layer in model.model.layers]
        self.norm = model.model.norm.weight.detach().to(self.dtype)
        self.embedding = model.model.embed_tokens.weight.detach().to(self.dtype)
        rows = model.lm_head.weight.detach()
        self.head = (rows if head is None else rows[list(head)]).to(self.dtype)
        self.rotation = _rotation(model, positions, self.dtype)
        shape = (len(self.weights), sequences, self.kv_heads, positions, self.head_width)
        self.keys = torch.zeros(shape, dtype=self.dtype)
        self.values = torch.zeros(shape, dtype=self.dtype)

    @torch.inference_mode()
    def logits(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """The logits after one more token, with its position, of every sequence."""
        rows, seen = torch.arange(len(tokens)), int(positions.max()) + 1
        hidden = self.embedding[tokens]
        cosine, sine = (part[positions, None] for part in self.rotation)
        visible = (torch.arange(seen) <= positions[:, None])[:, None, None]
        group = self.heads // self.kv_heads
        for number, layer in enumerate(self.weights):
            normed = rms_norm(hidden, (self.width,), layer["attention_norm"], self.epsilon)
            projected = (normed @ layer["query_key_value"]).view(len(tokens), -1, self.head_width)
            turned, value = (
                projected[:, : self.heads + self.kv_heads],
                projected[:, self.heads + self.kv_heads :],
            )
            turned = turned * cosine + _half_turn(turned) * sine
            query, key = turned[:, : self.heads], turned[:, self.heads :]
            self.keys[number][rows, :, positions] = key
            self.values[number][rows, :, positions] = value
            attended = scaled_dot_product_attention(
                query.view(len(tokens), self.kv_heads, group, self.head_width),
                self.keys[number][:, :, :seen],
                self.values[number][:, :, :seen],
                attn_mask=visible,
            )
            hidden = hidden + attended.reshape(len(tokens), self.width) @ layer["output"]
            normed = rms_norm(hidden, (self.width,), layer["feed_forward_norm"], self.epsilon)
            gate, up = (normed @ layer["gate_up"]).chunk(2, dim=-1)
            hidden = hidden + (silu(gate) * up) @ layer["down"]
        return rms_norm(hidden, (self.width,), self.norm, self.epsilon) @ self.head.T


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


def _layer(layer: torch.nn.Module, dtype: torch.dtype) -> dict[str, Tensor]:
    attention, network = layer.self_attn, layer.mlp

    def joined(*parts: torch.nn.Linear) -> Tensor:
        return torch.cat([part.weight.detach() for part in parts]).to(dtype).T

    return {
        "attention_norm": layer.input_layernorm.weight.detach().to(dtype),
        "query_key_value": joined(attention.q_proj, attention.k_proj, attention.v_proj),
        "output": joined(attention.o_proj),
        "feed_forward_norm": layer.post_attention_layernorm.weight.detach().to(dtype),
        "gate_up": joined(network.gate_proj, network.up_proj),
        "down": joined(network.down_proj),
    }


def _rotation(model: LlamaForCausalLM, positions: int, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    place = torch.arange(positions)[None]
    cosine, sine = model.model.rotary_emb(torch.zeros(1, dtype=torch.float32), place)
    return cosine[0].to(dtype), sine[0].to(dtype)


def _half_turn(heads: Tensor) -> Tensor:
    first, second = heads.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)
