"""The weights of a Hugging Face decoder of GPT-2's or Llama's kind, laid out for the compiled pass."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float32
from torch import Tensor, nn
from transformers import PreTrainedModel

from specdec_lib.models.cached.model import check_attention

COLUMNS = 16  # of a panel, as in tiles.py
STORED = ("exact", "int8")
ACTIVATIONS = {
    "gelu_new": 1,
    "gelu_pytorch_tanh": 1,
    "gelu": 2,
    "relu": 3,
}  # numbered as in kernels.py

Numbers = Float32[np.ndarray, "..."]
Matrix = Float32[np.ndarray, "_ _"]
Panels = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Weights [(layers,) panels, depth, …] in one of three forms, a scale and a bias per column,
[(layers,) panels, 16].
"""


@dataclass(frozen=True, eq=False)
class Weights:
    """What the compiled pass is called with.

    shape     heads, key heads, size of a head, activation, whether the MLP is gated, whether norms
              are centred, epsilon
    tables    token embeddings, position embeddings, cosines and sines of every position; empty
              where there are none
    layers    norms [layers + 1, 4, width], then panels of queries, keys and values; of what follows
              attention; and of the MLP, up and down
    stored    "float32", "bfloat16" or "int8"
    """

    shape: tuple[int, int, int, int, bool, bool, np.float32]
    tables: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
    layers: tuple[np.ndarray, Panels, Panels, Panels, Panels]
    head: Panels
    vocabulary: int
    stored: str

    @property
    def nbytes(self) -> int:
        """Of all tables and panels."""
        norms, *panels = self.layers
        return norms.nbytes + sum(
            table.nbytes
            for table in (*self.tables, *(part for group in (*panels, self.head) for part in group))
        )

    def buffers(self, slots: int) -> tuple[Numbers, Numbers]:
        """Room for the keys, [layers, heads, slots ÷ 16, size, 16], and values, [layers, heads,
        size ÷ 16, slots, 16], of so many slots.
        """
        layers, heads, size = len(self.layers[0]) - 1, self.shape[1], self.shape[2]
        panels = -(-slots // COLUMNS)
        return np.zeros((layers, heads, panels, size, COLUMNS), np.float32), np.zeros(
            (layers, heads, size // COLUMNS, slots, COLUMNS), np.float32
        )


def read(model: PreTrainedModel, stored: str = "exact") -> Weights:
    """The weights of a model.

    stored    "exact": in bfloat16 if that changes no weight, else in float32; "int8": rounded to
              eight bits with a scale per output, another law

    Raises ValueError, naming what it is, for a model that computes anything the compiled pass does
    not.
    """
    known = {"gpt2": _gpt2, "llama": _llama}
    if stored not in STORED:
        raise ValueError(f"weights are stored {' or '.join(STORED)}, got {stored!r}")
    kind = model.config.model_type
    if kind not in known:
        raise ValueError(
            f"the fast runtime knows {' and '.join(known)} models, got {kind!r}; the reference"
            " runtime runs any decoder"
        )
    if model.dtype not in (torch.float32, torch.bfloat16) or model.device.type != "cpu":
        raise ValueError(
            f"the fast runtime computes in float32 on a CPU, got a model in {model.dtype} on"
            f" {model.device}"
        )
    check_attention(model)
    with torch.no_grad():
        return known[kind](model, stored)


def _gpt2(model: PreTrainedModel, stored: str) -> Weights:
    config, body = model.config, model.transformer
    refused = {
        f"the activation {config.activation_function!r}": config.activation_function
        not in ACTIVATIONS,
        "attention scaled by layer": config.scale_attn_by_inverse_layer_idx
        or not config.scale_attn_weights,
        "cross-attention": config.add_cross_attention,
        f"an MLP of {config.n_inner}, not a multiple of {COLUMNS}": (config.n_inner or 0) % COLUMNS
        > 0,
        f"heads of {config.n_embd // config.n_head}, not a multiple of {COLUMNS}": config.n_embd
        // config.n_head
        % COLUMNS
        > 0,
    }
    _refuse(refused, model)
    layers = body.h
    norms = [
        [layer.ln_1.weight, layer.ln_1.bias, layer.ln_2.weight, layer.ln_2.bias] for layer in layers
    ]
    norms.append([body.ln_f.weight, body.ln_f.bias, body.ln_f.weight, body.ln_f.bias])
    parts = (
        [layer.attn.c_attn for layer in layers],
        [layer.attn.c_proj for layer in layers],
        [layer.mlp.c_fc for layer in layers],
    )
    groups = [
        [(_numbers(one.weight.t()), _numbers(one.bias)) for one in part]
        for part in (*parts, [layer.mlp.c_proj for layer in layers])
    ]
    form = _form(
        stored,
        [weight for group in groups for weight, _ in group] + [_numbers(model.lm_head.weight)],
    )
    nothing = np.empty((0, 0), np.float32)
    return Weights(
        shape=(
            config.n_head,
            config.n_head,
            config.n_embd // config.n_head,
            ACTIVATIONS[config.activation_function],
            False,
            True,
            np.float32(config.layer_norm_epsilon),
        ),
        tables=(_numbers(body.wte.weight), _numbers(body.wpe.weight), nothing, nothing),
        layers=(
            np.stack([[_numbers(one) for one in norm] for norm in norms]),
            *(_stacked(group, form) for group in groups),
        ),
        head=form(_numbers(model.lm_head.weight), None),
        vocabulary=len(model.lm_head.weight),
        stored=form.__name__.strip("_"),
    )


def _llama(model: PreTrainedModel, stored: str) -> Weights:
    config, body = model.config, model.model
    refused = {
        f"the activation {config.hidden_act!r}": config.hidden_act != "silu",
        f"a width of {config.hidden_size}, not a multiple of {COLUMNS}": config.hidden_size
        % COLUMNS
        > 0,
        f"heads of {body.layers[0].self_attn.head_dim}, not a multiple of {COLUMNS}": body.layers[
            0
        ].self_attn.head_dim
        % COLUMNS
        > 0,
        f"an MLP of {config.intermediate_size}, not a multiple of {COLUMNS}": config.intermediate_size
        % COLUMNS
        > 0,
    }
    _refuse(refused, model)
    layers, zeros = body.layers, torch.zeros(config.hidden_size)
    norms = [
        [layer.input_layernorm.weight, zeros, layer.post_attention_layernorm.weight, zeros]
        for layer in layers
    ]
    norms.append([body.norm.weight, zeros, body.norm.weight, zeros])
    groups = [
        [
            _joined(layer.self_attn.q_proj, layer.self_attn.k_proj, layer.self_attn.v_proj)
            for layer in layers
        ],
        [_joined(layer.self_attn.o_proj) for layer in layers],
        [_joined(layer.mlp.gate_proj, layer.mlp.up_proj) for layer in layers],
        [_joined(layer.mlp.down_proj) for layer in layers],
    ]
    form = _form(
        stored,
        [weight for group in groups for weight, _ in group] + [_numbers(model.lm_head.weight)],
    )
    places = torch.arange(config.max_position_embeddings)[None]
    cosines, sines = (_numbers(table[0]) for table in body.rotary_emb(zeros, places))
    size = layers[0].self_attn.head_dim
    return Weights(
        shape=(
            config.num_attention_heads,
            config.num_key_value_heads,
            size,
            0,
            True,
            False,
            np.float32(config.rms_norm_eps),
        ),
        tables=(_numbers(body.embed_tokens.weight), np.empty((0, 0), np.float32), cosines, sines),
        layers=(
            np.stack([[_numbers(one) for one in norm] for norm in norms]),
            *(_stacked(group, form) for group in groups),
        ),
        head=form(_numbers(model.lm_head.weight), None),
        vocabulary=len(model.lm_head.weight),
        stored=form.__name__.strip("_"),
    )


def _numbers(tensor: Tensor) -> np.ndarray:
    return np.ascontiguousarray(tensor.detach().float().numpy())


def _joined(*parts: nn.Linear) -> tuple[Matrix, np.ndarray | None]:
    biases = [part.bias for part in parts]
    return _numbers(torch.cat([part.weight for part in parts])), None if biases[
        0
    ] is None else _numbers(torch.cat(biases))


def _stacked(
    group: Sequence[tuple[Matrix, np.ndarray | None]], form: Callable[..., Panels]
) -> Panels:
    """The panels of every layer on top of each other."""
    weights, scales, biases = zip(*(form(weight, bias) for weight, bias in group), strict=True)
    return np.stack(weights), np.stack(scales), np.stack(biases)


def _form(stored: str, weights: Sequence[Matrix]) -> Callable[..., Panels]:
    if stored == "int8":
        return _int8
    exact = all(not (weight.view(np.uint32) & 0xFFFF).any() for weight in weights)
    return _bfloat16 if exact else _float32


def _float32(weight: Matrix, bias: np.ndarray | None) -> Panels:
    panels = _panels(weight)
    return panels, np.ones((len(panels), COLUMNS), np.float32), _columns(bias, len(panels))


def _bfloat16(weight: Matrix, bias: np.ndarray | None) -> Panels:
    panels, scales, biases = _float32(weight, bias)
    words = panels.view(np.uint32)
    return (
        np.ascontiguousarray(
            (words[..., :8] >> np.uint32(16)) | (words[..., 8:] & np.uint32(0xFFFF0000))
        ),
        scales,
        biases,
    )


def _int8(weight: Matrix, bias: np.ndarray | None) -> Panels:
    scale = np.maximum(np.abs(weight).max(1), np.float32(1e-12)) / np.float32(127)
    panels = np.rint(_panels(weight / scale[:, None])).astype(np.int8)
    return panels, _columns(scale, len(panels)), _columns(bias, len(panels))


def _panels(weight: Matrix) -> np.ndarray:
    """[outs, ins] to [panels, ins, 16]; missing outputs are zeros."""
    outs, ins = weight.shape
    whole = np.zeros((-(-outs // COLUMNS) * COLUMNS, ins), np.float32)
    whole[:outs] = weight
    return np.ascontiguousarray(whole.reshape(-1, COLUMNS, ins).transpose(0, 2, 1))


def _columns(values: np.ndarray | None, panels: int) -> np.ndarray:
    whole = np.zeros(panels * COLUMNS, np.float32)
    if values is not None:
        whole[: len(values)] = values
    return whole.reshape(panels, COLUMNS)


def _refuse(reasons: dict[str, bool], model: PreTrainedModel) -> None:
    found = [reason for reason, holds in reasons.items() if holds]
    if found:
        raise ValueError(
            f"the fast runtime does not know {' or '.join(found)} of this"
            f" {model.config.model_type}; the reference runtime does"
        )
