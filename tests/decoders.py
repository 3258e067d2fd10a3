"""Small random models of every family that the fast runtime knows, each with what it differs in."""

import copy

import numpy as np
import torch
import transformers as hub
from transformers.pytorch_utils import Conv1D

from specdec_lib.models.fast.blocks import block_steps

POSITIONS = 2100
WORDS = 61
WINDOW = 50
SIZES = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3, "vocab_size": WORDS}
SIZES |= {"num_attention_heads": 4, "num_key_value_heads": 2, "initializer_range": 0.1}
SIZES |= {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
SIZES |= {"max_position_embeddings": POSITIONS}
GPT2 = {"n_embd": 48, "n_head": 2, "n_layer": 3, "n_positions": POSITIONS, "vocab_size": WORDS}
GPT2 |= {"initializer_range": 0.1, "bos_token_id": None, "eos_token_id": None}
LOCAL = {"sliding_window": WINDOW}
MIXED = LOCAL | {"layer_types": ["sliding_attention", "full_attention", "sliding_attention"]}
SCALED = {"embedding_multiplier": 3.0, "attention_multiplier": 0.2}
SCALED |= {"residual_multiplier": 0.6, "logits_scaling": 2.5}
PARTIAL = {"rope_type": "default", "rope_theta": 10_000.0, "partial_rotary_factor": 0.5}
LONGER = {"rope_type": "llama3", "rope_theta": 10_000.0, "factor": 8.0, "low_freq_factor": 1.0}
LONGER |= {"high_freq_factor": 4.0, "original_max_position_embeddings": 512}
YARN = {"rope_type": "yarn", "rope_theta": 10_000.0, "factor": 4.0}
YARN |= {"original_max_position_embeddings": 512}
Made = type[hub.PreTrainedModel]
DECODERS: dict[str, tuple[Made, dict]] = {  # the class, and its own sizes
    "gpt2": (hub.GPT2LMHeadModel, GPT2 | {"n_head": 6}),
    "gpt2, exact gelu": (hub.GPT2LMHeadModel, GPT2 | {"activation_function": "gelu"}),
    "llama": (hub.LlamaForCausalLM, {"rope_parameters": LONGER}),
    "llama, exact gelu": (hub.LlamaForCausalLM, {"hidden_act": "gelu", "mlp_bias": True}),
    "qwen2": (hub.Qwen2ForCausalLM, LOCAL | {"use_sliding_window": True, "max_window_layers": 1}),
    "qwen3": (hub.Qwen3ForCausalLM, {"head_dim": 24, "rope_parameters": YARN}),
    "mistral": (hub.MistralForCausalLM, LOCAL | {"head_dim": 40}),
    "ministral": (hub.MinistralForCausalLM, MIXED | {"head_dim": 8}),
    "smollm3": (hub.SmolLM3ForCausalLM, {"no_rope_layers": [1, 0, 1]}),
    "olmo2": (hub.Olmo2ForCausalLM, {}),
    "olmo3": (hub.Olmo3ForCausalLM, MIXED),
    "granite": (hub.GraniteForCausalLM, SCALED),
    "phi3": (hub.Phi3ForCausalLM, LOCAL | {"rope_parameters": PARTIAL}),
    "gemma": (hub.GemmaForCausalLM, {"head_dim": 24, "num_key_value_heads": 1}),
    "gemma3": (hub.Gemma3ForCausalLM, MIXED | {"head_dim": 16, "query_pre_attn_scalar": 20}),
}


def decoder(kind: str, layers: int = 3, **changes: object) -> hub.PreTrainedModel:
    """A random model of a family in float32, whose norms and biases are random too."""
    made, own = DECODERS[kind]
    sizes = (own if made is hub.GPT2LMHeadModel else SIZES | own) | changes
    sizes["n_layer" if made is hub.GPT2LMHeadModel else "num_hidden_layers"] = layers
    for name in ("layer_types", "no_rope_layers"):
        if name in sizes:
            sizes[name] = (sizes[name] * layers)[:layers]
    torch.manual_seed(7)
    network = made(made.config_class(**sizes)).eval()
    with torch.no_grad():
        for weights in network.parameters():
            if weights.dim() == 1:
                weights.add_(0.2 * torch.randn_like(weights))
    return network


def rounded_rows(rows: torch.Tensor) -> torch.Tensor:
    """Rows of eight bits: per 32 numbers 127 steps to the largest, either way."""
    blocks = torch.nn.functional.pad(rows, (0, -rows.shape[-1] % 32)).unflatten(-1, (-1, 32))
    largest = blocks.abs().amax(-1, keepdim=True)
    steps = torch.where(largest > 0, 127 / largest, 0)
    back = (blocks * steps).round() * (largest / 127)
    return back.flatten(-2)[..., : rows.shape[-1]]


class Rounded(torch.nn.Module):
    """A linear layer with the weights and the rows of the int8 edition, in float32."""

    def __init__(self, linear):
        super().__init__()
        weight = linear.weight.detach()
        weight = weight.t() if isinstance(linear, Conv1D) else weight
        blocks = np.pad(weight.numpy(), ((0, 0), (0, -weight.shape[1] % 32)))
        numbers, steps, lows = block_steps(blocks.reshape(len(blocks), -1, 32))
        back = numbers * steps[..., None].astype(np.float32) + lows[..., None].astype(np.float32)
        self.rounded = torch.from_numpy(back.reshape(len(blocks), -1)[:, : weight.shape[1]])
        self.bias = linear.bias

    def forward(self, rows):
        return torch.nn.functional.linear(rounded_rows(rows), self.rounded, self.bias)


def rounded(network: hub.PreTrainedModel) -> hub.PreTrainedModel:
    """A copy whose linear layers, its head among them, are those of the int8 edition."""
    other = copy.deepcopy(network)
    for name, part in list(other.named_modules()):
        if isinstance(part, torch.nn.Linear | Conv1D):
            other.set_submodule(name, Rounded(part))
    return other
