"""What `generate` can be asked for and speculation cannot honour is refused before any work."""

from types import FunctionType

import pytest
import torch
from hfs import VOCABULARY, asked, both, network
from transformers import (
    BloomConfig,
    BloomForCausalLM,
    DynamicCache,
    GenerationMixin,
    GPT2Config,
    GPT2LMHeadModel,
    MaxLengthCriteria,
    StoppingCriteriaList,
)

from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.trees.growing import ChainDraft
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.suite.hf import Speculative

PROMPT = torch.tensor([[1, 2, 3]])


def ask(model=None, given=PROMPT, draft=None, **options) -> torch.Tensor:
    plain = {"attention_mask": torch.ones_like(given), "max_new_tokens": 8, "pad_token_id": 0}
    plain["custom_generate"] = Speculative(draft or NoDraft())
    return (model or network("gpt2")).generate(given, **(plain | options))


@pytest.mark.parametrize(
    "options, message",
    [
        ({"num_beams": 3}, "num_beams=3; allowed is 1"),
        ({"do_sample": True, "num_return_sequences": 2}, "num_return_sequences=2; allowed is 1"),
        ({"guidance_scale": 1.5}, "guidance_scale=1.5; allowed is None or 1"),
        ({"use_cache": False}, "use_cache=False; allowed is True"),
        ({"penalty_alpha": 0.6, "top_k": 4}, "penalty_alpha=0.6; allowed is None"),
        ({"past_key_values": DynamicCache()}, "past_key_values=a DynamicCache; allowed is None"),
        ({"token_type_ids": PROMPT}, r"=a tensor of shape \[1, 3\] and torch.int64; allowed"),
        ({"position_ids": PROMPT}, "position_ids=a tensor"),
        ({"attention_mask": PROMPT}, r"=\[\[1, 2, 3\]\]; allowed is 1 for every"),
        ({"given": torch.tensor([[1, 2, 3], [4, 5, 6]])}, "the batch=2 prompts; allowed is 1"),
        ({"max_new_tokens": 90}, r"max_length=93 \(90 new tokens\); allowed is at most 78 new"),
        ({"synced_gpus": True}, "synced_gpus=True; allowed is None"),
        ({"assistant_model": network("gpt2")}, "assistant_model|assisted"),
        ({"stop_strings": ["a"]}, "tokenizer"),  # generate's own error
    ],
)
def test_what_cannot_be_honoured_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        ask(**options)


def test_embeddings_and_encodings_of_ones_own_are_refused():
    model, plain = network("gpt2"), {"max_new_tokens": 4, "custom_generate": Speculative(NoDraft())}
    with pytest.raises(ValueError, match=r"inputs_embeds=a tensor .* allowed is None: only token"):
        model.generate(inputs_embeds=model.transformer.wte(PROMPT), **plain)
    model, source = network("t5"), asked("t5")
    with pytest.raises(ValueError, match="encoder_outputs=of your own; allowed is None"):
        ask(model, source, encoder_outputs=model.encoder(input_ids=source))


def test_models_that_do_not_fit_are_refused_before_any_work():
    other = GPT2LMHeadModel(GPT2Config(vocab_size=31, n_embd=16, n_layer=1, n_head=2))
    passes = []
    hook = network("gpt2").register_forward_hook(lambda *_: passes.append(1))
    with pytest.raises(ValueError, match="vocabulary: draft has 31 tokens, target 29"):
        ask(draft=ChainDraft(CachedModel(other, "draft"), 3))
    hook.remove()
    assert not passes
    other.train()
    with pytest.raises(ValueError, match=r"model.training=True; allowed is False"):
        ask(other)
    config = BloomConfig(vocab_size=VOCABULARY, hidden_size=16, n_layer=1, n_head=2)
    with pytest.raises(ValueError, match="ALiBi"):
        ask(BloomForCausalLM(config).eval())


def test_the_text_may_fill_the_context_or_end_at_a_length_of_ones_own():
    criteria = StoppingCriteriaList([MaxLengthCriteria(max_length=9)])
    for options in ({"max_new_tokens": 77}, {"stopping_criteria": criteria}):
        wanted, made = both(network("gpt2"), PROMPT, NoDraft(), **options)
        assert made == wanted


@pytest.mark.parametrize("hidden", ["the function", "its variables"])
def test_a_transformers_that_hides_what_is_restored_is_refused(monkeypatch, hidden):
    """Negative control: or the streamer, which is not given here, would be dropped in silence."""
    right = GenerationMixin._extract_generation_mode_kwargs
    names = tuple(f"{name}_" for name in right.__code__.co_varnames)
    change = {"co_name": "_collect"} if hidden == "the function" else {"co_varnames": names}
    changed = FunctionType(right.__code__.replace(**change), right.__globals__)
    monkeypatch.setattr(GenerationMixin, right.__name__, lambda *given: changed(*given))
    with pytest.raises(ValueError, match=r"transformers \d.* would be lost; allowed is to be"):
        ask()
    monkeypatch.undo()
    assert ask().shape == (1, 11)
