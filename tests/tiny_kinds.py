"""Tiny models with random weights of every kind of decoder that the installed Transformers knows,
for `kinds.py`. gemma3n needs the package timm, and of gemma4_assistant Transformers 5.23 builds no
model whatever its configuration: layers that all share keys and values have none to share.
"""

import copy

import torch
from transformers import AutoConfig, PreTrainedConfig, PreTrainedModel
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING

VOCABULARY, POSITIONS = 97, 64
MOST = 3_000_000  # parameters of a tiny model
TINY: dict[str, object] = {}  # sizes by the names that configurations have for them
TINY |= dict.fromkeys(("hidden_size", "n_embd", "d_model", "dim", "emb_dim", "embedding_size"), 32)
TINY |= dict.fromkeys(("word_embed_proj_dim", "d_embed", "embedding_dim", "attention_dim"), 32)
TINY |= dict.fromkeys(("intermediate_size", "ffn_dim", "d_ff", "n_inner", "shared_dim"), 48)
TINY |= dict.fromkeys(("decoder_ffn_dim", "encoder_ffn_dim", "dense_intermediate_size"), 48)
TINY |= dict.fromkeys(("shared_expert_intermediate_size", "intermediate_size_mlp", "dff"), 48)
TINY |= dict.fromkeys(("num_hidden_layers", "n_layer", "num_layers", "n_layers"), 2)
TINY |= dict.fromkeys(("encoder_layers", "decoder_layers", "num_decoder_layers"), 2)
TINY |= dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_heads"), 4)
TINY |= dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 4)
TINY |= dict.fromkeys(("num_key_value_heads", "n_head_kv", "num_kv_heads", "attention_groups"), 2)
TINY |= dict.fromkeys(("head_dim", "d_head", "v_head_dim", "d_kv", "attention_head_size"), 8)
TINY |= dict.fromkeys(("kv_channels", "kv_lora_rank", "q_lora_rank", "rotary_dim"), 8)
TINY |= dict.fromkeys(("qk_rope_head_dim", "qk_nope_head_dim"), 4)
TINY |= dict.fromkeys(("max_position_embeddings", "n_positions", "seq_length"), POSITIONS)
TINY |= dict.fromkeys(("max_seq_len", "n_ctx", "max_sequence_length"), POSITIONS)
TINY |= dict.fromkeys(
    ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"), 4
)
TINY |= dict.fromkeys(("num_experts_per_tok", "moe_k", "moe_topk", "num_experts_per_token"), 2)
TINY |= dict.fromkeys(("n_group", "topk_group", "n_shared_experts", "first_k_dense_replace"), 1)
TINY |= dict.fromkeys(("moe_intermediate_size", "expert_ffn_hidden_size", "lru_width"), 32)
TINY |= dict.fromkeys(("state_size", "mamba_d_state", "ssm_state_size", "mamba_d_head"), 8)
TINY |= dict.fromkeys(("linear_key_head_dim", "linear_value_head_dim", "mamba_head_dim"), 8)
TINY |= dict.fromkeys(("linear_num_key_heads", "linear_num_value_heads"), 4)
TINY |= dict.fromkeys(("initializer_range", "init_std"), 0.2)
TINY |= dict.fromkeys(("vocab_size", "vocab_size_per_layer_input", "n_vocab"), VOCABULARY)
TINY |= {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 3}
LATENT = ("axk1", "deepseek_v2", "deepseek_v3", "dots3_note_text", "glm4_moe_lite", "longcat_flash")
LATENT += ("youtu", "axk2", "deepseek_v32", "glm_moe_dsa")
EXTRA: dict[str, dict[str, object]] = {
    kind: {"num_key_value_heads": 4, "head_dim": 4} for kind in LATENT
}
ROPE = {"rope_type": "default", "rope_theta": 10_000.0}
CHANNELS = ("ext_pw_out_channel", "depthwise_separable_out_channel", "nemo_conv_channels")
EXTRA |= {
    "bamba": {"mamba_n_heads": 8, "mamba_d_head": 8},
    "granitemoehybrid": {"mamba_n_heads": 8, "mamba_d_head": 8},
    "mamba2": {"num_heads": 8, "head_dim": 8},
    "gpt_neo": {"attention_types": [[["global", "local"], 1]]},
    "lfm2": {"layer_types": ["conv", "full_attention"]},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"]},
    "cohere_compass_text": {
        "layer_types": ["full_attention", "full_attention"],
        "rope_parameters": {"full_attention": ROPE},
    },
    "gemma3n_text": {"num_kv_shared_layers": 0},
    "xlm-roberta-xl": {"is_decoder": True},
    "xmod": {"is_decoder": True, "default_language": "en_XX"},
    "reformer": {"is_decoder": True, "axial_pos_embds_dim": [16, 16], "axial_pos_shape": [8, 8]},
    "roc_bert": {
        "is_decoder": True,
        "pronunciation_vocab_size": VOCABULARY,
        "shape_vocab_size": VOCABULARY,
    },
    "zamba": {"num_hidden_layers": 4, "layers_block_type": ["linear_attention", "hybrid"] * 2},
    "zamba2": {"layers_block_type": ["linear_attention", "hybrid"]},
    "zaya": {"num_experts_per_tok": 1},
    "kimi_linear": {"linear_num_heads": 4, "linear_head_dim": 8},
    "dbrx": {
        "attn_config": {"kv_n_heads": 2, "rope_theta": 10_000.0, "clip_qkv": 8.0},
        "ffn_config": {"ffn_hidden_size": 48},
    },
    "blt": {
        "encoder_hash_byte_group_vocab": VOCABULARY,
        "encoder_config": {"hidden_size_global": 64},
        "decoder_config": {"hidden_size_global": 64},
        "global_config": {"hidden_size": 64, "head_dim": 16},
    },
    "mllama_text_model": {"cross_attention_layers": [1]},
    "musicgen_decoder": {"num_codebooks": 1},
    "musicgen_melody_decoder": {"num_codebooks": 1},
    "phi4_multimodal_audio": dict.fromkeys(CHANNELS, 32),
    "gemma4_unified_vision": {"mm_embed_dim": 32, "output_proj_dims": 32},
    "gemma4_unified_assistant": {
        "backbone_hidden_size": 32,
        "text_config": {
            "model_type": "gemma4_unified_text",
            "layer_types": ["full_attention", "full_attention"],
            "num_kv_shared_layers": 1,
        },
    },
    "dots3_note": {
        "vision_config": {"per_layer_config": {}, "adapter_in_dim": 32, "adapter_out_dim": 32},
        "audio_config": {"adapter_input_size": 32, "adapter_out_dim": 32},
    },
}
"""What the configuration of a kind, or of a part of kinds, needs beyond `TINY`; its own parts are
dictionaries.
"""
NOT_ALONE = ("gemma4_unified_assistant",)
"""Kinds that run no tokens alone: their sizes are not tried before they are loaded."""


def kinds() -> dict[str, type[PreTrainedModel]]:
    """The class of every kind of decoder, by the kind's name."""
    found = {}
    for name, config in CONFIG_MAPPING.items():
        if config in MODEL_FOR_CAUSAL_LM_MAPPING:
            model = MODEL_FOR_CAUSAL_LM_MAPPING[config]
            found[name] = model[0] if isinstance(model, tuple) else model
    return found


def tiny_config(kind: type[PreTrainedConfig], extra: dict[str, object]) -> PreTrainedConfig:
    """A configuration of a kind whose sizes are tiny, those of its parts included."""
    default = kind().to_dict()
    known = {*default, *getattr(kind, "attribute_map", {})}
    sizes = {name: value for name, value in TINY.items() if name in known}
    renamed = getattr(kind, "attribute_map", {})
    sizes = {name: value for name, value in sizes.items() if renamed.get(name) not in sizes}
    for name, part in (getattr(kind, "sub_configs", None) or {}).items():
        own = extra.get(name, {})
        if part is AutoConfig:
            called = ((default.get(name) or {}) | own).get("model_type")
            part = CONFIG_MAPPING[called] if called in CONFIG_MAPPING else None
        if part is not None:
            own = EXTRA.get(part.model_type, {}) | own
            extra = extra | {name: tiny_config(part, own).to_dict()}
    return kind(**sizes | extra)


def decoder_config(made: type[PreTrainedModel], config: PreTrainedConfig) -> PreTrainedConfig:
    """The configuration itself, or a part of it if the class of a decoder takes such a part."""
    parts = [getattr(config, name) for name in getattr(config, "sub_configs", None) or {}]
    if isinstance(config, made.config_class):
        return config
    return next((part for part in parts if isinstance(part, made.config_class)), config)


def build(kind: str) -> tuple[PreTrainedModel, PreTrainedConfig]:
    """A tiny model of a kind with random weights, and the configuration of the whole kind, of which
    the model may be a part.
    """
    made = kinds()[kind]
    whole = tiny_config(CONFIG_MAPPING[kind], EXTRA.get(kind, {}))
    config = decoder_config(made, whole)
    with torch.device("meta"):
        size = made(copy.deepcopy(config)).num_parameters()
    if size > MOST:
        raise ValueError(f"it has {size:,} parameters")
    torch.manual_seed(0)
    network = made(config).eval()
    with torch.no_grad():
        if kind not in NOT_ALONE:
            network(torch.tensor([[5, 6, 7, 8]]), use_cache=False)  # its sizes go together
        for name, weights in network.named_parameters():
            if not weights.isfinite().all():
                raise ValueError(f"its tensor {name} is not filled")
    return network, whole
