"""Folders of tiny random models in hub format, as a user's own ones would lie there."""

from pathlib import Path

import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from specdec_lib.workload import DATA

END = "<|endoftext|>"


def tokenizer(**special: str) -> PreTrainedTokenizerFast:
    """The embedded ladder's, of 4,096 tokens."""
    return PreTrainedTokenizerFast(tokenizer_file=str(DATA / "ladder" / "tokenizer.json"), **({"eos_token": END} | special))


def llama(folder: Path, *, seed: int = 0, width: int = 32, rows: int = 4096, positions: int = 256, tied: bool = False) -> Path:
    """A Llama of one layer with random weights, and the tokenizer."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=rows, hidden_size=width, intermediate_size=2 * width, num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=positions, tie_word_embeddings=tied, bos_token_id=None, eos_token_id=0, pad_token_id=None, initializer_range=0.5,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder


def gpt2(folder: Path, *, seed: int = 0, rows: int = 4096, positions: int = 256) -> Path:
    """A GPT-2 of one layer with random weights, and the tokenizer."""
    torch.manual_seed(seed)
    config = GPT2Config(vocab_size=rows, n_embd=32, n_layer=1, n_head=2, n_positions=positions, bos_token_id=0, eos_token_id=0)
    GPT2LMHeadModel(config).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder
