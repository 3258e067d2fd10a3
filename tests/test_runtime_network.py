"""The lean network gives what the stock forward of Hugging Face gives, in both of its forms."""

import pytest
import torch
from test_lm import network
from transformers import GPT2Config, GPT2LMHeadModel

from specdec_lib.runtime.forward import ATTENTION
from specdec_lib.runtime.network import lean

KINDS = ("gpt2", "llama", "grouped-query llama")
TOLERANCE = {"gpt2": 1e-12, "llama": 1e-6, "grouped-query llama": 1e-6}  # the stock Llama computes its norms in float32
TOKENS = torch.tensor([3, 1, 4, 1, 5, 9, 2, 6])


def stock(model) -> torch.Tensor:
    with torch.no_grad():
        return model(TOKENS[None]).logits[0]


def additive(sees: torch.Tensor) -> torch.Tensor:
    return torch.zeros(sees.shape, dtype=torch.float64).masked_fill(~sees, -torch.inf)


@torch.no_grad()
def in_two_passes(model) -> torch.Tensor:
    found, places = lean(model), torch.arange(8)
    cache = found.buffer(12)
    first = found(TOKENS[:5], places[:5], cache, 0, additive(torch.ones(5, 5).tril().bool()), 5)
    sees = torch.ones(3, 8).tril(5).bool()
    return torch.cat([first, found(TOKENS[5:], places[5:], cache, 5, additive(sees), 3)])


@torch.no_grad()
def static(model, attention: str, slots: torch.Tensor) -> torch.Tensor:
    """One pass into any slots of a larger cache whose other slots are full of ones."""
    found = lean(model)
    cache = found.buffer(20).fill_(1.0)
    sees = torch.zeros(8, 20, dtype=torch.bool)
    for row in range(8):
        sees[row, slots[: row + 1]] = True
    return found.static(TOKENS, torch.arange(8), slots, cache, additive(sees), keep=8, attention=attention)


@pytest.mark.parametrize("kind", KINDS)
def test_a_growing_cache_gives_the_stock_logits(kind):
    model = network(kind)
    assert (in_two_passes(model) - stock(model)).abs().max() < TOLERANCE[kind]


@pytest.mark.parametrize("attention", ATTENTION)
@pytest.mark.parametrize("kind", KINDS)
def test_a_static_cache_gives_the_stock_logits_wherever_the_slots_lie(kind, attention):
    model = network(kind)
    for slots in (torch.arange(8) + 3, torch.tensor([19, 0, 7, 6, 12, 1, 18, 4])):
        assert (static(model, attention, slots) - stock(model)).abs().max() < TOLERANCE[kind]


def test_a_row_without_a_mask_sees_all():
    model = network("gpt2")
    found = lean(model)
    with torch.no_grad():
        cache = found.buffer(8)
        for place in range(8):
            last = found(TOKENS[place : place + 1], torch.tensor([place]), cache, place, None, 1)
    assert (last[0] - stock(model)[-1]).abs().max() < 1e-12


def test_the_embedded_target_comes_out_as_it_is(ladder):
    model = ladder.target.model
    tokens = torch.tensor(ladder.encode("def add(a, b):\n    return a"))
    found = lean(model)
    with torch.no_grad():
        sees = torch.ones(len(tokens), len(tokens)).tril().bool()
        mask = torch.zeros(sees.shape).masked_fill(~sees, -torch.inf)
        made = found(tokens, torch.arange(len(tokens)), found.buffer(len(tokens)), 0, mask, len(tokens))
        assert (made - model(tokens[None]).logits[0]).abs().max() < 1e-4


def test_what_it_cannot_compute_is_refused():
    with pytest.raises(ValueError, match="knows gpt2 and llama models, got 'qwen2'"):
        lean(network("qwen2"))
    sizes = {"n_embd": 8, "n_layer": 1, "n_head": 2, "vocab_size": 5, "bos_token_id": 0, "eos_token_id": 0}
    with pytest.raises(ValueError, match="the activation 'silu'"):
        lean(GPT2LMHeadModel(GPT2Config(**sizes, activation_function="silu")))
    with pytest.raises(ValueError, match="attention scaled by layer"):
        lean(GPT2LMHeadModel(GPT2Config(**sizes, scale_attn_by_inverse_layer_idx=True)))
    with pytest.raises(ValueError, match="attention is one of fused, products, got 'flash'"):
        static(network("gpt2"), "flash", torch.arange(8))
