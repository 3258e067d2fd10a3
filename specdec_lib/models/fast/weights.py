"""The weights of a GPT-2 or Llama model from Hugging Face, laid out for the compiled pass."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float32, Int64
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from specdec_lib.models.cached.probing import check_attention
from specdec_lib.models.cut_head import CutHead, output_weight
from specdec_lib.models.fast.arithmetic import GELU_TANH, NONE, count_steps
from specdec_lib.models.fast.products import BLOCK, COLUMNS
from specdec_lib.models.reading import SCALE

EDITIONS = {  # and their arithmetic, on weights of a kind
    "exact": "float32 sums over {} weights",
    "int8": "whole sums over rows and weights of 8 bits",
}
READ = (torch.float32, torch.bfloat16, torch.float16)  # numbers that float32 holds exactly
GELU_NAMES = ("gelu_new", "gelu_pytorch_tanh")
# by kind of model: the norms before attention and before the MLP, and the last one
NORMS = {
    "gpt2": ("ln_1", "ln_2", "ln_f"),
    "llama": ("input_layernorm", "post_attention_layernorm", "norm"),
}
# and the linear layers: queries, keys and values; attention's output; the MLP's up, after its gate
# if there is one; and down
LINEARS = {
    "gpt2": (("attn.c_attn",), ("attn.c_proj",), ("mlp.c_fc",), ("mlp.c_proj",)),
    "llama": (
        ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
        ("self_attn.o_proj",),
        ("mlp.gate_proj", "mlp.up_proj"),
        ("mlp.down_proj",),
    ),
}
EMPTY = np.empty((0, 0), np.float32)
EVERYTHING = 2**40  # a window of all tokens

Numbers = Float32[np.ndarray, "..."]
Matrix = Float32[np.ndarray, "_ _"]
Linear = tuple[Matrix, Numbers | None]
"""The weight [outs, ins] and the bias of a linear layer."""
Shape = tuple[int, int, int, int, bool, bool, np.float32, int]
"""Heads, key heads, size of a head, activation, whether the MLP is gated, whether norms are
centred, epsilon, and the last tokens that each sees.
"""
Tables = tuple[Numbers, Numbers, Numbers, Numbers]
"""Token and position embeddings, cosines and sines by position; empty for none."""
Panels = tuple[np.ndarray, np.ndarray]
"""Weights [layers, panels, …], see `tiles`, and a bias per output, [layers, panels · 16]."""

Buffers = tuple[Numbers, Numbers, Numbers, Numbers]
"""Keys […, panels, size, 16] and values […, size ÷ 16, panels · 16, 16] of cache entries; their
hidden states after the layers that are kept, [states, entries, width]; and what is added to the
input of each one's children, [1 + entries, width], before the first that of the first entry itself.
"""


class Weights(NamedTuple):
    """The arguments of the compiled pass that stay the same.

    layers    norms [layers + 1, 4, width], weight and bias before attention and before the MLP, the
              last one behind them; and the panels of the four linear layers, see `LINEARS`
    head      its panels as one layer
    kept      numbers of the layers whose hidden states are kept; none of most models
    own       what a draft's output adds to the input of the guess after it, of a draft that reads
              its target; no panel of others
    """

    shape: Shape
    tables: Tables
    layers: tuple[Numbers, Panels, Panels, Panels, Panels]
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
        _, heads, size, *_ = self.shape
        width = self.tables[0].shape[1]
        panels = -(-entries // COLUMNS)
        room = panels * COLUMNS
        added = room + 1 if self.own[0].shape[1] else 0
        return (
            np.zeros((layers, heads, panels, size, COLUMNS), np.float32),
            np.zeros((layers, heads, size // COLUMNS, room, COLUMNS), np.float32),
            np.zeros((len(self.kept), room, width), np.float32),
            np.zeros((added, width), np.float32),
        )

    def with_prompt_of(self, head: CutHead, edition: str) -> "Weights":
        """These weights with the outputs of a head whose prompt has changed."""
        first = len(head.frequent) // COLUMNS * COLUMNS  # the panels before it stay
        new = stack_panels([(_numbers(head.scored_rows(first)), None)], edition)
        panels, biases = (
            np.concatenate([old[:, : first // part], more], axis=1)
            for old, more, part in zip(self.head, new, (COLUMNS, 1), strict=True)
        )
        return self._replace(head=(panels, biases))


def read_weights(model: PreTrainedModel, edition: str, window: int | None = None) -> Weights:
    """The weights of a model, in float32; raises ValueError that names what is not computed.

    window    the last tokens that each sees; None for all
    """
    if edition not in EDITIONS:
        raise ValueError(f"an edition is {' or '.join(EDITIONS)}, got {edition!r}")
    kind = model.config.model_type
    if kind not in LINEARS:
        raise ValueError(
            f"the fast runtime knows {' and '.join(LINEARS)} models, got {kind!r};"
            " the reference runtime runs any decoder"
        )
    if model.dtype not in READ or model.device.type != "cpu":
        raise ValueError(
            "the fast runtime computes in float32 on the CPU, from weights of float32, bfloat16 or"
            f" float16; got a model in {model.dtype} on {model.device}"
        )
    check_attention(model)
    shape, tables = (_gpt2_tables if kind == "gpt2" else _llama_tables)(model)
    body: Any = model.base_model
    head = model.get_output_embeddings()
    layers = body.h if kind == "gpt2" else body.layers
    *inner, last = NORMS[kind]
    pairs = [[layer.get_submodule(name) for name in inner] for layer in layers]
    pairs.append([body.get_submodule(last)] * 2)
    norms = np.stack([_norm_rows(pair) for pair in pairs])
    joined, output, up, down = (
        stack_panels((_linear(layer, names) for layer in layers), edition, len(layers))
        for names in LINEARS[kind]
    )
    outputs = head.scored_rows() if isinstance(head, CutHead) else output_weight(model)
    head_panels = stack_panels([(_numbers(outputs), None)], edition)
    return Weights(
        shape=(*shape, EVERYTHING if window is None else window),
        tables=tables,
        layers=(norms, joined, output, up, down),
        head=head_panels,
        kept=np.empty(0, np.int64),
        own=_own_panels(model, edition, tables[0].shape[1]),
    )


def _own_panels(model: PreTrainedModel, edition: str, width: int) -> Panels:
    """See `Weights.own`."""
    part = getattr(model, "reading", None)
    if part is not None:
        return stack_panels([(_numbers(part.from_own.weight) * SCALE, None)], edition)
    panels, biases = stack_panels([(np.zeros((COLUMNS, width), np.float32), None)], edition)
    return panels[:, :0].copy(), biases[:, :0].copy()


def _gpt2_tables(model: PreTrainedModel) -> tuple[tuple, Tables]:
    config = model.config
    body: Any = model.base_model
    size = config.n_embd // config.n_head
    activation = config.activation_function
    scaled = config.scale_attn_by_inverse_layer_idx or not config.scale_attn_weights
    reasons = {
        f"the activation {activation!r}": activation not in GELU_NAMES,
        "attention scaled by layer": scaled,
        "cross-attention": config.add_cross_attention,
    }
    _check(model, reasons, {"an MLP": config.n_inner or 0, "heads": size})
    epsilon = np.float32(config.layer_norm_epsilon)
    shape = config.n_head, config.n_head, size, GELU_TANH, False, True, epsilon
    return shape, (_numbers(body.wte.weight), _numbers(body.wpe.weight), EMPTY, EMPTY)


def _llama_tables(model: PreTrainedModel) -> tuple[tuple, Tables]:
    config = model.config
    body: Any = model.base_model
    size = body.layers[0].self_attn.head_dim
    width = config.hidden_size
    sizes = {"a width": width, "heads": size, "an MLP": config.intermediate_size}
    _check(model, {f"the activation {config.hidden_act!r}": config.hidden_act != "silu"}, sizes)
    positions = torch.arange(config.max_position_embeddings)[None]
    cosines, sines = (
        _numbers(table[0]) for table in body.rotary_emb(torch.zeros(width), positions)
    )
    epsilon = np.float32(config.rms_norm_eps)
    heads = int(config.num_attention_heads)
    shape = heads, int(config.num_key_value_heads), size, NONE, True, False, epsilon
    return shape, (_numbers(body.embed_tokens.weight), EMPTY, cosines, sines)


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


def _numbers(tensor: Tensor) -> Numbers:
    """The elements as contiguous float32."""
    return np.ascontiguousarray(tensor.detach().float().numpy())


def _norm_rows(norms: Sequence[Any]) -> Numbers:
    """Weight and bias of each of some norms, in turn; zeros for the bias of an RMS norm."""
    pairs = [(norm.weight, getattr(norm, "bias", torch.zeros_like(norm.weight))) for norm in norms]
    return np.stack([_numbers(one) for pair in pairs for one in pair])


def _linear(layer: nn.Module, names: Sequence[str]) -> Linear:
    """The linear layers with these names in one; GPT-2 stores a weight as [ins, outs]."""
    parts: list[Any] = [layer.get_submodule(name) for name in names]
    weights = [part.weight.t() if isinstance(part, Conv1D) else part.weight for part in parts]
    biases = [part.bias for part in parts if part.bias is not None]
    return _numbers(torch.cat(weights)), _numbers(torch.cat(biases)) if biases else None


def stack_panels(layers: Iterable[Linear], edition: str, count: int = 1) -> Panels:
    """The panels of one linear layer of each of `count` decoder layers, made one at a time."""
    panels = np.empty(0)
    biases = np.empty(0)
    for number, (weight, bias) in enumerate(layers):
        made = _byte_panels(weight) if edition == "int8" else _panels(weight)
        if not number:
            panels = np.empty((count, *made.shape), made.dtype)
            biases = np.zeros((count, len(made) * COLUMNS), np.float32)
        panels[number] = made
        if bias is not None:
            biases[number, : len(bias)] = bias
    return panels, biases


def _panels(weight: Matrix) -> np.ndarray:
    """[outs, ins] to [panels, ins, 16]; missing outputs are zeros."""
    whole = _filled(weight)
    return np.ascontiguousarray(whole.reshape(-1, COLUMNS, whole.shape[1]).transpose(0, 2, 1))


def _byte_panels(weight: Matrix) -> np.ndarray:
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


def _filled(weight: Matrix, block: int = 1) -> Matrix:
    """The weights of whole panels and blocks, with zeros behind the given ones."""
    outs, ins = weight.shape
    return np.pad(weight, ((0, -outs % COLUMNS), (0, -ins % block)))


def block_steps(
    blocks: Float32[np.ndarray, "outs blocks 32"],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The whole numbers (uint8), steps and lows (float16) of blocks: those of Q4_1 and Q8_0 in GGUF
    where they give the very weights back, else 255 steps from lowest to highest.
    """
    low = blocks.min(2)
    high = blocks.max(2)
    size = np.abs(blocks).max(2)
    *found, _ = _in_steps(blocks, (high - low) / 255, low)
    for step, start in (((high - low) / 15, low), (size / 127, size / 127 * -128)):
        *tried, same = _in_steps(blocks, step, start)
        for old, new in zip(found, tried, strict=True):
            old[same] = new[same]
    numbers, steps, lows = found
    return numbers, steps, lows


def _in_steps(blocks: np.ndarray, step: np.ndarray, low: np.ndarray) -> tuple[np.ndarray, ...]:
    """The nearest whole numbers of rounded steps, and whether blocks come back exactly."""
    step = step.astype(np.float16)
    low = low.astype(np.float16)
    numbers = np.empty(blocks.shape, np.uint8)
    same = np.empty(step.shape, np.bool_)
    count_steps(blocks, step.astype(np.float32), low.astype(np.float32), numbers, same)
    return numbers, step, low, same
