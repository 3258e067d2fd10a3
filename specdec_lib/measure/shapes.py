"""Models in the shapes of those that people use, with random weights: written once into the cache,
for what passes of their size take.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import torch
from safetensors.torch import save
from torch import Tensor
from tqdm.auto import tqdm
from transformers import (
    AutoModelForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    Qwen3Config,
    SmolLM3Config,
)

from specdec_lib.core.files import cache_folder, write_whole

SHARD = 10**9  # bytes of a file, at least
SPREAD = 0.02  # of the weights
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500_000.0,
    "factor": 32.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
# sizes as in the configurations on the hub; vocabularies of 128,000 to 262,000 tokens, heads tied
CONFIGS = {
    "Qwen3-0.6B": Qwen3Config(
        vocab_size=151_936,
        hidden_size=1024,
        intermediate_size=3072,
        num_hidden_layers=28,
        num_attention_heads=16,
        num_key_value_heads=8,
        head_dim=128,
        max_position_embeddings=40_960,
        rope_parameters={"rope_type": "default", "rope_theta": 1_000_000.0},
        tie_word_embeddings=True,
    ),
    "Llama-3.2-1B": LlamaConfig(
        vocab_size=128_256,
        hidden_size=2048,
        intermediate_size=8192,
        num_hidden_layers=16,
        num_attention_heads=32,
        num_key_value_heads=8,
        head_dim=64,
        max_position_embeddings=131_072,
        rope_parameters=LLAMA3,
        tie_word_embeddings=True,
    ),
    "Gemma-3-1B": Gemma3TextConfig(
        vocab_size=262_144,
        hidden_size=1152,
        intermediate_size=6912,
        num_hidden_layers=26,
        num_attention_heads=4,
        num_key_value_heads=1,
        head_dim=256,
        max_position_embeddings=32_768,
        sliding_window=512,
        tie_word_embeddings=True,
    ),
    "SmolLM3-3B": SmolLM3Config(
        vocab_size=128_256,
        hidden_size=2048,
        intermediate_size=11_008,
        num_hidden_layers=36,
        num_attention_heads=16,
        num_key_value_heads=4,
        max_position_embeddings=65_536,
        rope_parameters={"rope_type": "default", "rope_theta": 5_000_000.0},
        tie_word_embeddings=True,
    ),
}
INDEX = "model.safetensors.index.json"  # written last: a folder that has it is complete


def shaped_model(name: str) -> Path:
    """The folder of a model in a shape of `CONFIGS`, its weights random and in bfloat16; written if
    it is not there.
    """
    folder = cache_folder() / "shapes" / name
    if (folder / INDEX).is_file():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    config = CONFIGS[name]
    with torch.device("meta"):
        network = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    config.architectures = [type(network).__name__]
    config.dtype = torch.bfloat16
    config.save_pretrained(folder)
    tied = network.all_tied_weights_keys
    shapes = {one: part.shape for one, part in network.state_dict().items() if one not in tied}
    files = {}
    for number, shard in enumerate(_shards(shapes, name), 1):
        file = f"model-{number:05}.safetensors"
        write_whole(folder / file, save(shard, metadata={"format": "pt"}))
        files |= dict.fromkeys(shard, file)
    index = {"metadata": {}, "weight_map": files}
    write_whole(folder / INDEX, json.dumps(index).encode())
    return folder


def _shards(shapes: dict[str, torch.Size], name: str) -> Iterator[dict[str, Tensor]]:
    """Random tensors of these shapes, some at a time; norms of ones."""
    random = torch.Generator().manual_seed(1)
    shard: dict[str, Tensor] = {}
    for one, shape in tqdm(shapes.items(), desc=f"weights in the shape of {name}"):
        made = torch.ones(shape, dtype=torch.bfloat16)
        if len(shape) > 1:
            made.normal_(0, SPREAD, generator=random)
        shard[one] = made
        if sum(part.nbytes for part in shard.values()) >= SHARD:
            yield shard
            shard = {}
    if shard:
        yield shard
