"""The weights of a Hugging Face decoder of GPT-2's or Llama's kind, as a network without the ceremony: the same numbers from a tenth of the calls."""

from collections.abc import Sequence

import torch
from torch import Tensor
from transformers import PreTrainedModel

from specdec_lib.runtime.forward import Block, Linear, Network, Norm, Rotate


def lean(model: PreTrainedModel) -> Network:
    """The network of a GPT-2 or Llama model; it shares the model's weights where these lie side by side, and holds copies of the others.

    Raises ValueError, naming what it is, for a model that computes anything else.
    """
    known = {"gpt2": _gpt2, "llama": _llama}
    kind = model.config.model_type
    if kind not in known:
        raise ValueError(f"this runtime knows {' and '.join(known)} models, got {kind!r}; the reference runtime runs any decoder")
    with torch.no_grad():
        return known[kind](model)


def _gpt2(model: PreTrainedModel) -> Network:
    config, body = model.config, model.transformer
    activation = {"gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh", "gelu": "gelu", "relu": "relu"}.get(config.activation_function)
    refused = {
        f"the activation {config.activation_function!r}": activation is None,
        "attention scaled by layer": config.scale_attn_by_inverse_layer_idx or not config.scale_attn_weights,
        "cross-attention": config.add_cross_attention,
    }
    _refuse(model, refused)
    words, places = body.wte.weight, body.wpe.weight
    blocks = []
    for layer in body.h:
        attention, mlp = layer.attn, layer.mlp
        blocks.append(
            Block(
                before_attention=_layer_norm(layer.ln_1),
                mixed=Linear(attention.c_attn.weight.t(), attention.c_attn.bias),
                out=Linear(attention.c_proj.weight.t(), attention.c_proj.bias),
                before_mlp=_layer_norm(layer.ln_2),
                up=Linear(mlp.c_fc.weight.t(), mlp.c_fc.bias, activation),
                down=Linear(mlp.c_proj.weight.t(), mlp.c_proj.bias),
            )
        )
    return Network(
        blocks=tuple(blocks),
        heads=config.n_head,
        key_heads=config.n_head,
        size=config.n_embd // config.n_head,
        embed=lambda tokens, positions: words[tokens] + places[positions],
        rotate=None,
        gated=False,
        norm=_layer_norm(body.ln_f),
        head=Linear(model.lm_head.weight, None),
    )


def _llama(model: PreTrainedModel) -> Network:
    config, body = model.config, model.model
    _refuse(model, {f"the activation {config.hidden_act!r}": config.hidden_act != "silu"})
    blocks = []
    for layer in body.layers:
        attention, mlp = layer.self_attn, layer.mlp
        blocks.append(
            Block(
                before_attention=_rms_norm(layer.input_layernorm),
                mixed=_joined(attention.q_proj, attention.k_proj, attention.v_proj),
                out=_joined(attention.o_proj),
                before_mlp=_rms_norm(layer.post_attention_layernorm),
                up=_joined(mlp.gate_proj, mlp.up_proj),
                down=_joined(mlp.down_proj),
            )
        )
    words = body.embed_tokens.weight
    return Network(
        blocks=tuple(blocks),
        heads=config.num_attention_heads,
        key_heads=config.num_key_value_heads,
        size=body.layers[0].self_attn.head_dim,
        embed=lambda tokens, positions: words[tokens],
        rotate=_rotation(model),
        gated=True,
        norm=_rms_norm(body.norm),
        head=_joined(model.lm_head),
    )


def _rotation(model: PreTrainedModel) -> Rotate:
    """Llama's: pairs half a head apart are turned; cosines and sines of all positions are the model's own."""
    words = model.model.embed_tokens.weight
    places = torch.arange(model.config.max_position_embeddings, device=words.device)[None]
    cosines, sines = (table[0, :, None] for table in model.model.rotary_emb(words, places))

    def rotate(x: Tensor, positions: Tensor) -> Tensor:
        near, far = x.chunk(2, -1)
        return x * cosines[positions] + torch.cat((-far, near), -1) * sines[positions]

    return rotate


def _joined(*parts: torch.nn.Linear) -> Linear:
    biases = [part.bias for part in parts]
    return Linear(torch.cat([part.weight for part in parts]), None if biases[0] is None else torch.cat(biases))


def _layer_norm(norm: torch.nn.LayerNorm) -> Norm:
    shape, weight, bias, epsilon = norm.normalized_shape, norm.weight, norm.bias, norm.eps
    return lambda x: torch.layer_norm(x, shape, weight, bias, epsilon)


def _rms_norm(norm: torch.nn.Module) -> Norm:
    shape, weight, epsilon = norm.weight.shape, norm.weight, norm.variance_epsilon
    return lambda x: torch.rms_norm(x, shape, weight, epsilon)


def _refuse(model: PreTrainedModel, reasons: dict[str, bool]) -> None:
    found: Sequence[str] = [reason for reason, holds in reasons.items() if holds]
    if found:
        raise ValueError(f"this runtime does not know {' or '.join(found)} of this {model.config.model_type}; the reference runtime runs any decoder")
