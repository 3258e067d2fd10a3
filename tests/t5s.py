"""Tiny random encoder-decoder models, and sources for them."""

import copy
import random

import torch
from transformers import MT5Config, T5Config, T5ForConditionalGeneration
from transformers import MT5ForConditionalGeneration as MT5

from specdec_lib.core.context import Context

VOCABULARY, START, STOP = 23, 0, 1
SIZES = {"vocab_size": VOCABULARY, "d_kv": 8, "d_ff": 40, "num_layers": 3}
SIZES |= {"decoder_start_token_id": START, "eos_token_id": STOP}
SIZES |= {"relative_attention_num_buckets": 8, "relative_attention_max_distance": 20}


def network(
    kind: str, *, width: int = 32, layers: int = 2, seed: int = 0, dtype=torch.float64
) -> T5ForConditionalGeneration:
    """A tiny random T5: "gated tied" as the embedded pair, "relu tied" as T5 1.0, "gated untied" as
    FLAN-T5, "relu untied"; or "mt5".
    """
    torch.manual_seed(seed)
    sizes = SIZES | {"d_model": width, "num_heads": width // 8, "num_decoder_layers": layers}
    if kind == "mt5":
        return MT5(MT5Config(**sizes)).to(dtype).eval()
    feed_forward, tied = "gated-gelu" if "gated" in kind else "relu", "untied" not in kind
    config = T5Config(**sizes, feed_forward_proj=feed_forward, tie_word_embeddings=tied)
    model = T5ForConditionalGeneration(config)
    if not tied:
        model.lm_head = torch.nn.Linear(width, VOCABULARY, bias=False)
    with torch.no_grad():
        model.shared.weight.mul_(0.1)  # else a tied head repeats the last token
        for stack in (model.encoder, model.decoder):  # at first the bias hardly matters
            stack.block[0].layer[0].SelfAttention.relative_attention_bias.weight.mul_(20)
    return model.to(dtype).eval()


KINDS = ("gated tied", "relu tied", "gated untied", "relu untied")


def shaken(model: T5ForConditionalGeneration, by: float = 0.1) -> T5ForConditionalGeneration:
    """A copy that often agrees with the model, not always."""
    torch.manual_seed(1)
    other = copy.deepcopy(model)
    with torch.no_grad():
        for weight in other.parameters():
            weight.add_(by * weight.std() * torch.randn_like(weight))
    return other


def sources(count: int, seed: int = 0) -> list[tuple[int, ...]]:
    draw = random.Random(seed).randrange
    return [tuple(draw(2, VOCABULARY) for _ in range(draw(1, 30))) for _ in range(count)]


def started(source: tuple[int, ...]) -> Context:
    return Context.of([START], source)


@torch.no_grad()
def generated(model: T5ForConditionalGeneration, source: tuple[int, ...], length: int) -> tuple:
    """What `generate` writes greedily."""
    given = torch.tensor([source])
    options = {"attention_mask": torch.ones_like(given), "do_sample": False}
    return tuple(model.generate(given, max_new_tokens=length, **options)[0, 1:].tolist())
