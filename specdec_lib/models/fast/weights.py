"""The weights of a decoder from Hugging Face, laid out for the compiled pass."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float32, Int64, UInt8
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from specdec_lib.models.cached.probing import check_attention
from specdec_lib.models.cached.windows import layer_windows
from specdec_lib.models.cut_head import CutHead, output_weight
from specdec_lib.models.fast.arithmetic import GELU, GELU_TANH, SILU
from specdec_lib.models.fast.families import FAMILIES, Family
from specdec_lib.models.fast.panels import Linear, Panels, numbers_of, stack_panels
from specdec_lib.models.fast.products import COLUMNS
from specdec_lib.models.fast.rotation import RotaryTables, layer_rotations, rotary_tables
from specdec_lib.models.reading import SCALE

EDITIONS = {  # and their arithmetic, on weights of a kind
    "exact": "float32 sums over {} weights",
    "int8": "whole sums over rows and weights of 8 bits",
}
READ = (torch.float32, torch.bfloat16, torch.float16)  # numbers that float32 holds exactly
ACTIVATIONS = {  # by their names in configurations
    "silu": SILU,
    "swish": SILU,
    "gelu": GELU,
    "gelu_new": GELU_TANH,
    "gelu_pytorch_tanh": GELU_TANH,
}
EMPTY = np.empty((0, 0), np.float32)
EVERYTHING = 2**40  # a window of all tokens


Numbers = Float32[np.ndarray, "..."]
Tables = tuple[UInt8[np.ndarray, "vocab bytes"], Numbers, RotaryTables, RotaryTables]
"""Token embeddings, the bytes of float32 or bfloat16; position embeddings; and cosines and sines,
see `rotation`. Empty for none.
"""
Buffers = tuple[Numbers, Numbers, Numbers, Numbers]
"""Keys […, panels, size, 16] and values […, panels of a head, panels · 16, 16] of entries; their
hidden states after the layers that are kept, [states, entries, width]; and what is added to the
input of each one's children, [1 + entries, width], before the first that of the first entry itself.
"""


class DecoderShape(NamedTuple):
    """The numbers by which one model differs from another.

    heads, key_heads, size         of queries; of keys and values; columns of a head
    activation, gated              of the MLP
    centred, epsilon               of norms: by mean and deviation, or the latter alone
    normed_before, normed_after    what attention and the MLP read, and what they write
    scale                          of products of queries and keys
    embedded, residual, divisor    what embeddings, and what attention and the MLP write, are
                                   multiplied by; what logits are divided by
    """

    heads: int
    key_heads: int
    size: int
    activation: int
    gated: bool
    centred: bool
    epsilon: np.float32
    normed_before: bool
    normed_after: bool
    scale: np.float32
    embedded: np.float32
    residual: np.float32
    divisor: np.float32


class Weights(NamedTuple):
    """The arguments of the compiled pass that stay the same.

    by_layer  the last tokens that each layer sees, and the place of its rotary embedding in the
              tables, −1 for none
    layers    norms [layers + 1, 8, width], weight and bias before attention and before the MLP,
              after attention and after the MLP, the last one behind them; those of queries and of
              keys, [layers, columns], none of most models; and the panels of the four linear
              layers, see `families`
    head      its panels as one layer
    kept      numbers of the layers whose hidden states are kept; none of most models
    own       what a draft's output adds to the input of the guess after it, of a draft that reads
              its target; no panel of others
    """

    shape: DecoderShape
    tables: Tables
    by_layer: Int64[np.ndarray, "2 layers"]
    layers: tuple[Numbers, Numbers, Numbers, Panels, Panels, Panels, Panels]
    head: Panels
    kept: Int64[np.ndarray, " states"]
    own: Panels

    @property
    def columns(self) -> int:
        """The width of a row of logits as the pass writes it: whole panels."""
        return self.head[0].shape[1] * COLUMNS

    def buffers(self, entries: int) -> Buffers:
        """Empty buffers for so many cache entries."""
        layers = len(self.layers[0]) - 1
        heads = self.shape.key_heads
        size = self.shape.size
        width = self.layers[0].shape[2]
        panels = -(-entries // COLUMNS)
        room = panels * COLUMNS
        added = room + 1 if self.own[0].shape[1] else 0
        return (
            np.zeros((layers, heads, panels, size, COLUMNS), np.float32),
            np.zeros((layers, heads, -(-size // COLUMNS), room, COLUMNS), np.float32),
            np.zeros((len(self.kept), room, width), np.float32),
            np.zeros((added, width), np.float32),
        )

    def with_prompt_of(self, head: CutHead, edition: str) -> "Weights":
        """These weights with the outputs of a head whose prompt has changed."""
        first = len(head.frequent) // COLUMNS * COLUMNS  # the panels before it stay
        rows = head.scored_rows(first)
        panels, biases = self.head[0][:, : first // COLUMNS], self.head[1][:, :first]
        if len(rows):
            more, nothing = stack_panels([([rows], None)], edition)
            panels = np.concatenate([panels, more], axis=1)
            biases = np.concatenate([biases, nothing], axis=1)
        return self._replace(head=(panels.copy(), biases.copy()))

    def with_positions(self, body: Any, positions: int) -> "Weights":
        """These weights with the rotary embeddings of a decoder at so many positions."""
        names, _ = layer_rotations(body)
        return self._replace(tables=(*self.tables[:2], *rotary_tables(body, names, positions)))


def read_weights(
    model: PreTrainedModel, edition: str, window: int | None = None, *, as_in_files: bool = False
) -> Weights:
    """The weights of a model, in float32, without rotary embeddings; raises ValueError that names
    what is not computed.

    window         the last tokens that each sees; None for all
    as_in_files    see `FastModel`
    """
    _check_readable(model, edition)
    family = FAMILIES[model.config.model_type]
    body: Any = model.get_decoder()
    layers = list(getattr(body, family.layers))
    shape = _shape(model, family, layers[0])
    head = model.get_output_embeddings()
    joined, output, up, down = (
        stack_panels(
            (_linear(layer, names) for layer in layers),
            edition,
            len(layers),
            as_in_files=as_in_files,
        )
        for names in family.linears
    )
    norms = _norms(body, family, layers)
    outputs = head.scored_rows() if isinstance(head, CutHead) else output_weight(model)
    head_panels = stack_panels([([outputs], None)], edition, as_in_files=as_in_files)
    nothing, _ = rotary_tables(body, [], 0)
    _, rotations = layer_rotations(body)
    windows = [min(one or EVERYTHING, window or EVERYTHING) for one in layer_windows(model)]
    places = numbers_of(body.wpe.weight) if hasattr(body, "wpe") else EMPTY
    embedded: Any = model.get_input_embeddings()
    tokens = _embedding_bytes(embedded.weight.detach())
    return Weights(
        shape=shape,
        tables=(tokens, places, nothing, nothing),
        by_layer=np.stack([np.array(windows), rotations]),
        layers=(*norms, joined, output, up, down),
        head=head_panels,
        kept=np.empty(0, np.int64),
        own=_own_panels(model, edition, norms[0].shape[2]),
    )


def _check_readable(model: PreTrainedModel, edition: str) -> None:
    """Raises ValueError for an unknown edition, and a model of an unknown kind, precision, device
    or attention.
    """
    if edition not in EDITIONS:
        raise ValueError(f"an edition is {' or '.join(EDITIONS)}, got {edition!r}")
    kind = model.config.model_type
    if kind not in FAMILIES:
        *names, last = FAMILIES
        raise ValueError(
            f"the fast runtime knows {', '.join(names)} and {last} models, got {kind!r};"
            " the reference runtime runs any decoder"
        )
    if model.dtype not in READ or model.device.type != "cpu":
        raise ValueError(
            "the fast runtime computes in float32 on the CPU, from weights of float32, bfloat16 or"
            f" float16; got a model in {model.dtype} on {model.device}"
        )
    check_attention(model)


def _own_panels(model: PreTrainedModel, edition: str, width: int) -> Panels:
    """See `Weights.own`."""
    part = getattr(model, "reading", None)
    if part is not None:
        return stack_panels([([part.from_own.weight.detach().float() * SCALE], None)], edition)
    panels, biases = stack_panels([([torch.zeros(COLUMNS, width)], None)], edition)
    return panels[:, :0].copy(), biases[:, :0].copy()


def _shape(model: PreTrainedModel, family: Family, layer: Any) -> DecoderShape:
    """The shape of a model, of which this is a layer; raises ValueError for what is not known."""
    config = model.config.get_text_config()
    gpt2 = family.layers == "h"
    heads = int(config.num_attention_heads)
    attention = layer.attn if gpt2 else layer.self_attn
    size = int(attention.head_dim)
    width = int(config.hidden_size)
    names = ("activation_function",) if gpt2 else ("hidden_activation", "hidden_act")
    activation = next(filter(None, (getattr(config, name, None) for name in names)))
    scaled = gpt2 and (config.scale_attn_by_inverse_layer_idx or not config.scale_attn_weights)
    soft = ("attn_logit_softcapping", "final_logit_softcapping")
    reasons = {
        f"the activation {activation!r}": activation not in ACTIVATIONS,
        "attention scaled by layer": scaled,
        "cross-attention": getattr(config, "add_cross_attention", False),
        "attention in both directions": getattr(config, "use_bidirectional_attention", False),
        "soft limits of logits": any(getattr(config, name, None) for name in soft),
    }
    middle = (config.n_inner or 0) if gpt2 else config.intermediate_size
    _check(model, reasons, {"a width": width, "an MLP": middle})
    epsilon = config.layer_norm_epsilon if gpt2 else config.rms_norm_eps
    scales = {
        "scale": size**-0.5 if gpt2 else attention.scaling,
        "embedded": _embedding_scale(model),
        "residual": getattr(config, "residual_multiplier", 1.0),
        "divisor": getattr(config, "logits_scaling", 1.0),
    }
    return DecoderShape(
        heads=heads,
        key_heads=heads if gpt2 else int(config.num_key_value_heads),
        size=size,
        activation=ACTIVATIONS[activation],
        gated=not gpt2,
        centred=gpt2,
        epsilon=np.float32(epsilon),
        normed_before=bool(family.before),
        normed_after=bool(family.after),
        **{name: np.float32(one) for name, one in scales.items()},
    )


def _embedding_scale(model: PreTrainedModel) -> float:
    """What a model multiplies its embeddings by."""
    scale = getattr(model.get_input_embeddings(), "scalar_embed_scale", None)
    if scale is not None:
        return float(scale)
    return float(getattr(model.config, "embedding_multiplier", 1.0))


def _check(model: PreTrainedModel, reasons: dict[str, bool], sizes: dict[str, int]) -> None:
    """Raises ValueError if a reason holds, or a size is no multiple of the panels' columns."""
    odd = {f"{name} of {size}, not a multiple of {COLUMNS}": size for name, size in sizes.items()}
    found = [reason for reason, holds in reasons.items() if holds]
    found += [reason for reason, size in odd.items() if size % COLUMNS]
    if found:
        raise ValueError(
            f"the fast runtime does not know {' or '.join(found)} of this"
            f" {model.config.model_type}; the reference runtime does"
        )


def _norms(body: Any, family: Family, layers: Sequence[Any]) -> tuple[Numbers, Numbers, Numbers]:
    """The norms of all layers and the last one, and those of queries and keys; see `Weights`."""
    raised = np.float32(family.raised)
    width = numbers_of(body.get_submodule(family.last).weight).shape

    def rows(layer: Any, names: Sequence[str]) -> list[Numbers]:
        found = []
        for norm in map(layer.get_submodule, names):
            bias = getattr(norm, "bias", None)
            own = np.zeros(width, np.float32) if bias is None else numbers_of(bias)
            found += [numbers_of(norm.weight) + raised, own]
        return found or [np.zeros(width, np.float32)] * 4

    outer = [[*rows(layer, family.before), *rows(layer, family.after)] for layer in layers]
    outer.append(rows(body, [family.last] * 4))
    whole = np.stack([np.stack(one) for one in outer])
    if not family.inner:
        return whole, np.empty((len(layers), 0), np.float32), np.empty((len(layers), 0), np.float32)
    queries, keys = (
        np.stack([numbers_of(layer.get_submodule(name).weight) + raised for layer in layers])
        for name in family.inner
    )
    return whole, queries, keys


def _embedding_bytes(weight: Tensor) -> UInt8[np.ndarray, "vocab bytes"]:
    """The bytes of token embeddings, where they are if they can be; of float16 as float32."""
    kept = weight if weight.dtype in (torch.float32, torch.bfloat16) else weight.float()
    return kept.contiguous().view(torch.uint8).numpy()


def _linear(layer: nn.Module, names: Sequence[str]) -> Linear:
    """The linear layers with these names of one layer; GPT-2 stores a weight as [ins, outs]."""
    parts: list[Any] = [layer.get_submodule(name) for name in names]
    weights = [part.weight.t() if isinstance(part, Conv1D) else part.weight for part in parts]
    biases = [part.bias for part in parts if part.bias is not None]
    return weights, torch.cat(biases) if biases else None
