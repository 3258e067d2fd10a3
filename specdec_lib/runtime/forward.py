"""One pass of a decoder as a function of tensors.

Keys and values lie in one buffer, [layers, slots, 2, key heads × size], so that a tree's accepted path is moved with a single copy. A pass comes in
two forms: `Network.__call__` grows with what was read, `Network.static` has the same shapes and addresses whatever was read, as a CUDA graph needs.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

ACTIVATIONS = ("none", "gelu", "gelu_tanh", "relu")
ATTENTION = ("fused", "products")

Norm = Callable[[Tensor], Tensor]
Rotate = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class Linear:
    """x Wᵀ + b, and the activation after it."""

    weight: Float[Tensor, "outs ins"]
    bias: Float[Tensor, " outs"] | None
    activation: str = "none"

    def __call__(self, x: Float[Tensor, "rows ins"]) -> Float[Tensor, "rows outs"]:
        y = functional.linear(x, self.weight, self.bias)
        if self.activation == "none":
            return y
        if self.activation == "relu":
            return functional.relu(y)
        return functional.gelu(y, approximate="tanh" if self.activation == "gelu_tanh" else "none")


@dataclass(frozen=True, eq=False)
class Block:
    """One layer.

    mixed    queries, keys and values of all heads, side by side
    up       with its activation; where the MLP is gated, gate and up side by side, without it
    """

    before_attention: Norm
    mixed: Linear
    out: Linear
    before_mlp: Norm
    up: Linear
    down: Linear


@dataclass(frozen=True, eq=False)
class Network:
    """A decoder as a function of tokens, positions and what was cached.

    heads, key_heads, size    of the attention; key_heads ≤ heads
    embed                     (tokens, positions) to rows
    rotate                    turns queries and keys, [rows, heads, size], by their positions; None where positions are embedded
    gated                     whether the MLP multiplies up with silu of gate
    """

    blocks: tuple[Block, ...]
    heads: int
    key_heads: int
    size: int
    embed: Callable[[Tensor, Tensor], Tensor]
    rotate: Rotate | None
    gated: bool
    norm: Norm
    head: Linear

    def buffer(self, slots: int) -> Float[Tensor, "layers slots two width"]:
        """Room for the keys and values of so many slots."""
        return self.head.weight.new_zeros((len(self.blocks), slots, 2, self.key_heads * self.size))

    def __call__(self, tokens: Tensor, positions: Tensor, cache: Tensor, start: int, mask: Tensor | None, keep: int) -> Float[Tensor, "keep vocab"]:
        """One pass: the logits of the last `keep` rows; keys and values of all rows go to the slots from `start` on.

        mask    [rows, slots up to the last new one]: 0 where seen, −inf elsewhere; None where every row sees all of them
        """
        stop = start + len(tokens)

        def place(kept: Tensor, new: Tensor) -> Tensor:
            kept[start:stop] = new
            return kept[:stop]

        return self._pass(tokens, positions, cache, place, lambda queries, kept: self._products(queries, kept, mask), keep)

    def static(
        self, tokens: Tensor, positions: Tensor, slots: Tensor, cache: Tensor, mask: Tensor, *, keep: int, attention: str = "fused"
    ) -> Float[Tensor, "keep vocab"]:
        """The same with everything that changes in tensors: no shape and no address depends on what was read.

        slots        [rows], where keys and values of each row go; several rows may share one that nobody reads
        cache        [layers, slots, 2, width], all of which is read
        mask         [rows, slots]: 0 where seen, −inf elsewhere; every row sees a slot
        attention    "fused", or "products", which makes more and plainer kernels

        Raises ValueError for another word.
        """
        if attention not in ATTENTION:
            raise ValueError(f"attention is one of {', '.join(ATTENTION)}, got {attention!r}")
        attend = self._fused if attention == "fused" else self._products
        return self._pass(
            tokens, positions, cache, lambda kept, new: kept.index_copy_(0, slots, new), lambda queries, kept: attend(queries, kept, mask), keep
        )

    def _pass(
        self,
        tokens: Tensor,
        positions: Tensor,
        cache: Tensor,
        place: Callable[[Tensor, Tensor], Tensor],
        attend: Callable[[Tensor, Tensor], Tensor],
        keep: int,
    ) -> Tensor:
        """place    stores new keys and values in a layer's part of the cache, and returns what is read of it"""
        rows = len(tokens)
        x = self.embed(tokens, positions)
        for block, kept in zip(self.blocks, cache.unbind(0), strict=True):
            queries, new = self._split(block.mixed(block.before_attention(x)), positions, rows)
            x = x + block.out(attend(queries, place(kept, new)))
            x = x + block.down(self._gate(block.up(block.before_mlp(x))))
        return self.head(self.norm(x if keep == rows else x[rows - keep :]))

    def _split(self, mixed: Tensor, positions: Tensor, rows: int) -> tuple[Tensor, Tensor]:
        """Queries [rows, heads, size], and keys and values as they are stored."""
        queries, width = self.heads * self.size, self.key_heads * self.size
        if self.rotate is None:
            return mixed[:, :queries].view(rows, self.heads, self.size), mixed[:, queries:].view(rows, 2, width)
        turned = self.rotate(mixed[:, : queries + width].view(rows, self.heads + self.key_heads, self.size), positions)
        keys = turned[:, self.heads :].reshape(rows, width)
        return turned[:, : self.heads], torch.stack((keys, mixed[:, queries + width :]), 1)

    def _asked(self, queries: Tensor, kept: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """Queries, keys and values by key head, and the mask: query heads that share a key head are rows of one product."""
        rows, shared = len(queries), self.heads // self.key_heads
        keys, values = (kept[:, part].view(len(kept), self.key_heads, self.size).transpose(0, 1) for part in (0, 1))
        if shared == 1:
            return queries.transpose(0, 1), keys, values, mask
        asked = queries.view(rows, self.key_heads, shared, self.size).permute(1, 2, 0, 3).flatten(1, 2)
        return asked, keys, values, None if mask is None else mask.repeat(shared, 1)

    def _answered(self, read: Tensor, rows: int) -> Tensor:
        """What was read, [rows, heads × size]."""
        if self.heads == self.key_heads:
            return read.transpose(0, 1).reshape(rows, -1)
        return read.view(self.key_heads, -1, rows, self.size).permute(2, 0, 1, 3).reshape(rows, -1)

    def _products(self, queries: Tensor, kept: Tensor, mask: Tensor | None) -> Tensor:
        """Two products and a softmax: for few rows faster than a fused kernel on a CPU."""
        asked, keys, values, seen = self._asked(queries, kept, mask)
        scale = 1 / math.sqrt(self.size)
        if seen is None:
            weights = torch.bmm(asked, keys.transpose(1, 2)).mul_(scale).softmax(-1)
        else:
            weights = torch.baddbmm(seen, asked, keys.transpose(1, 2), alpha=scale).softmax(-1)
        return self._answered(torch.bmm(weights, values), len(queries))

    def _fused(self, queries: Tensor, kept: Tensor, mask: Tensor) -> Tensor:
        """One kernel where the device has one."""
        asked, keys, values, seen = self._asked(queries, kept, mask)
        read = functional.scaled_dot_product_attention(asked[None], keys[None], values[None], attn_mask=seen[None, None])
        return self._answered(read[0], len(queries))

    def _gate(self, up: Tensor) -> Tensor:
        if not self.gated:
            return up
        gate, up = up.chunk(2, -1)
        return functional.silu(gate) * up
