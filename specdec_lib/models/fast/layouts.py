"""The parameters of GPT-2 and Llama models under common names."""

from collections.abc import Iterable, Sequence

import numpy as np
import torch
from jaxtyping import Float32
from torch import Tensor, nn
from transformers import PreTrainedModel

from specdec_lib.models.cut_head import CutHead
from specdec_lib.models.fast.arithmetic import GELU_TANH, NONE
from specdec_lib.models.fast.tiles import COLUMNS

GELU_NAMES = ("gelu_new", "gelu_pytorch_tanh")
EMPTY = np.empty((0, 0), np.float32)

Numbers = Float32[np.ndarray, "..."]
Matrix = Float32[np.ndarray, "_ _"]
Linear = tuple[Matrix, Numbers | None]
"""The weight [outs, ins] and the bias of a linear layer."""
Shape = tuple[int, int, int, int, bool, bool, np.float32]
"""Heads, key heads, size of a head, activation, whether the MLP is gated, whether norms are
centred, epsilon.
"""
Tables = tuple[Numbers, Numbers, Numbers, Numbers]
"""Token and position embeddings, cosines and sines by position; empty for none."""


Layout = tuple[Shape, Tables, Numbers, tuple[Iterable[Linear], ...], Linear]
"""The parameters of a decoder: sizes; tables; norms [layers + 1, 4, width], weight and bias before
attention and before the MLP, the final norm last; of every layer, made in turn, the linear layers:
queries, keys and values in one, attention's output, the MLP's up (gate and up in one where it is
gated) and down; and the head.
"""


def gpt2_layout(model: PreTrainedModel) -> Layout:
    """The parameters of a GPT-2.  Raises ValueError if the compiled pass cannot run it."""
    config, body = model.config, model.transformer
    size, activation = config.n_embd // config.n_head, config.activation_function
    reasons = {
        f"the activation {activation!r}": activation not in GELU_NAMES,
        "attention scaled by layer": config.scale_attn_by_inverse_layer_idx
        or not config.scale_attn_weights,
        "cross-attention": config.add_cross_attention,
    }
    _check(model, reasons, {"an MLP": config.n_inner or 0, "heads": size})
    norms = [(layer.ln_1, layer.ln_2) for layer in body.h] + [(body.ln_f, body.ln_f)]
    sizes = (config.n_head, config.n_head, size, GELU_TANH, False, True)
    return (
        (*sizes, np.float32(config.layer_norm_epsilon)),
        (numbers(body.wte.weight), numbers(body.wpe.weight), EMPTY, EMPTY),
        _norms([(one.weight, one.bias, two.weight, two.bias) for one, two in norms]),
        (
            (_transposed(layer.attn.c_attn) for layer in body.h),
            (_transposed(layer.attn.c_proj) for layer in body.h),
            (_transposed(layer.mlp.c_fc) for layer in body.h),
            (_transposed(layer.mlp.c_proj) for layer in body.h),
        ),
        (numbers(_head(model)), None),
    )


def llama_layout(model: PreTrainedModel) -> Layout:
    """The parameters of a Llama.  Raises ValueError if the compiled pass cannot run it."""
    config, body = model.config, model.model
    layers, size = body.layers, body.layers[0].self_attn.head_dim
    sizes = {"a width": config.hidden_size, "heads": size, "an MLP": config.intermediate_size}
    _check(model, {f"the activation {config.hidden_act!r}": config.hidden_act != "silu"}, sizes)
    zeros = torch.zeros(config.hidden_size)
    norms = [(layer.input_layernorm, layer.post_attention_layernorm) for layer in layers]
    norms.append((body.norm, body.norm))
    positions = torch.arange(config.max_position_embeddings)[None]
    cosines, sines = (numbers(table[0]) for table in body.rotary_emb(zeros, positions))
    attentions, mlps = [layer.self_attn for layer in layers], [layer.mlp for layer in layers]
    heads = config.num_attention_heads, config.num_key_value_heads
    return (
        (*heads, size, NONE, True, False, np.float32(config.rms_norm_eps)),
        (numbers(body.embed_tokens.weight), EMPTY, cosines, sines),
        _norms([(one.weight, zeros, two.weight, zeros) for one, two in norms]),
        (
            (_joined(one.q_proj, one.k_proj, one.v_proj) for one in attentions),
            (_joined(one.o_proj) for one in attentions),
            (_joined(one.gate_proj, one.up_proj) for one in mlps),
            (_joined(one.down_proj) for one in mlps),
        ),
        (numbers(_head(model)), None),
    )


def numbers(tensor: Tensor) -> Numbers:
    """The elements as contiguous float32."""
    return np.ascontiguousarray(tensor.detach().float().numpy())


def _head(model: PreTrainedModel) -> Tensor:
    head = model.get_output_embeddings()
    return head.scored_rows() if isinstance(head, CutHead) else head.weight


def _norms(norms: Sequence[Sequence[Tensor]]) -> Numbers:
    return np.stack([[numbers(one) for one in norm] for norm in norms])


def _transposed(layer: nn.Module) -> Linear:
    """A linear layer of GPT-2, which stores its weight as [ins, outs]."""
    return numbers(layer.weight.t()), numbers(layer.bias)


def _joined(*parts: nn.Linear) -> Linear:
    weight, biases = torch.cat([part.weight for part in parts]), [part.bias for part in parts]
    return numbers(weight), None if biases[0] is None else numbers(torch.cat(biases))


def _check(model: PreTrainedModel, reasons: dict[str, bool], sizes: dict[str, int]) -> None:
    """Raises ValueError if a reason holds, or a size is no multiple of the panels' columns."""
    found = [reason for reason, holds in reasons.items() if holds]
    for name, size in sizes.items():
        if size % COLUMNS:
            found.append(f"{name} of {size}, not a multiple of {COLUMNS}")
    if found:
        what = f"{' or '.join(found)} of this {model.config.model_type}"
        raise ValueError(f"the fast runtime does not know {what}; the reference runtime does")
