"""Folders of tiny random models in hub format, as a user's own ones would lie there."""

import json
from collections.abc import Callable
from pathlib import Path

import torch
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedConfig,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
)

from specdec_lib.core.files import DATA
from specdec_lib.models.hub import load_tokenizer

END = "<|endoftext|>"


def tokenizer(**special: str) -> PreTrainedTokenizerFast:
    """The one that the tiny models share, of 4,096 tokens."""
    place = str(DATA / "pair" / "tokenizer.json")
    return PreTrainedTokenizerFast(tokenizer_file=place, **({"eos_token": END} | special))


def llama(folder: Path, *, seed=0, width=32, rows=4096, positions=256, tied=False) -> Path:
    """A Llama of one layer with random weights, and the tokenizer."""
    config = LlamaConfig(
        vocab_size=rows, hidden_size=width, intermediate_size=2 * width, num_hidden_layers=1,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=positions,
        tie_word_embeddings=tied, bos_token_id=None, eos_token_id=0, pad_token_id=None,
        initializer_range=0.5,
    )  # fmt: skip
    return stored(LlamaForCausalLM, config, folder, seed)


def without_tokenizer(folder: Path) -> Path:
    """The same folder, whose tokenizer is removed."""
    for path in folder.glob("tokenizer*.json"):
        path.unlink()
    return folder


def gpt2(folder: Path, *, seed: int = 0, positions: int = 256) -> Path:
    """A GPT-2 of one layer with random weights, and the tokenizer."""
    sizes = {"n_embd": 32, "n_layer": 1, "n_head": 2, "vocab_size": 4096}
    config = GPT2Config(**sizes, n_positions=positions, bos_token_id=0, eos_token_id=0)
    return stored(GPT2LMHeadModel, config, folder, seed)


def t5(folder: Path, *, seed: int = 0, rows: int = 4096, **more: object) -> Path:
    """A T5 of one layer on each side with random weights, and the tokenizer."""
    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2}
    options = sizes | {"decoder_start_token_id": 1, "eos_token_id": 0} | more
    config = T5Config(vocab_size=rows, **options)
    return stored(T5ForConditionalGeneration, config, folder, seed)


def stored(kind: type, config: PreTrainedConfig, folder: Path, seed: int) -> Path:
    """A model with random weights, and the tokenizer."""
    torch.manual_seed(seed)
    kind(config).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


def changed(folder: Path, edit: Callable[[dict], None]) -> PreTrainedTokenizerFast:
    """The tokenizer of a folder, whose file is edited."""
    path = folder / "tokenizer.json"
    said = json.loads(path.read_text(encoding="utf-8"))
    edit(said)
    path.write_text(json.dumps(said), encoding="utf-8")
    return load_tokenizer(folder)


def swap(said: dict) -> None:
    """Two tokens of a tokenizer's file change places."""
    vocab = said["model"]["vocab"]
    token_of = {number: token for token, number in vocab.items()}
    one, other = token_of[1000], token_of[2000]
    vocab[one], vocab[other] = 2000, 1000
