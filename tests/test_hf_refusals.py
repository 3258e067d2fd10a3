"""What `generate` can be asked for and speculation cannot honour is refused before any work."""

import pytest
import torch
from hfs import VOCABULARY, asked, both, network
from transformers import (
    BloomConfig,
    BloomForCausalLM,
    DynamicCache,
    GenerationConfig,
    GPT2Config,
    GPT2LMHeadModel,
    MaxLengthCriteria,
    StoppingCriteriaList,
)

from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.trees.growing import ChainDraft
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.suite.hf import Speculative
from specdec_lib.suite.hf.options import check_options

PROMPT = torch.tensor([[1, 2, 3]])


def ask(model=None, given=PROMPT, draft=None, **options) -> torch.Tensor:
    plain = {"attention_mask": torch.ones_like(given), "max_new_tokens": 8, "pad_token_id": 0}
    door = Speculative(draft or NoDraft())
    return door.generate(model or network("gpt2"), given, **(plain | options))


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
        (
            {"assistant_model": network("gpt2")},
            "assistant_model=a GPT2LMHeadModel; allowed",
        ),
        (
            {"custom_generate": print},
            "custom_generate=a builtin.*; allowed is None: it",
        ),
        ({"stop_strings": ["a"]}, r"stop_strings=\['a'\] need the model's tokenizer, got .*=None"),
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
    own = model.encoder(input_ids=source)
    assert ask(model, source, encoder_outputs=own).tolist() == ask(model, source).tolist()
    other = model.encoder(input_ids=source.flip(-1))
    with pytest.raises(ValueError, match="encoder_outputs=of other tokens; allowed is None"):
        ask(model, source, encoder_outputs=other)
    with pytest.raises(ValueError, match="encoder_outputs=without inputs; allowed is those of"):
        model.generate(encoder_outputs=own, **plain)


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


class Parts:
    """A streamer that notes what it is given."""

    def __init__(self) -> None:
        self.found = []

    def put(self, tokens: torch.Tensor) -> None:
        self.found.append(tokens.flatten().tolist())

    def end(self) -> None:
        self.found.append("end")


def test_a_streamer_of_the_door_or_of_its_generate_hears_all_and_two_are_refused():
    model, plain = network("gpt2"), {"max_new_tokens": 4, "pad_token_id": 0, "do_sample": False}
    heard = [Parts() for _ in range(3)]
    text = model.generate(PROMPT, streamer=heard[0], **plain)[0].tolist()
    Speculative(NoDraft()).generate(model, PROMPT, streamer=heard[1], **plain)
    door = Speculative(NoDraft(), streamer=heard[2])
    model.generate(PROMPT, custom_generate=door, **plain)
    parts = [[1, 2, 3], *([token] for token in text[3:]), "end"]
    assert [one.found for one in heard] == [parts] * 3
    with pytest.raises(ValueError, match="one streamer is allowed, got one of `generate` and one"):
        door.generate(model, PROMPT, streamer=Parts(), **plain)
    with pytest.raises(ValueError, match="streamer of Speculative must be a Streamer or"):
        Speculative(NoDraft(), streamer=7)


def test_transformers_hands_a_custom_generate_neither_streamer_nor_tokenizer():
    """If one that is installed does, the door can take them from `model.generate` too: until then
    `Speculative.generate` has to. A streamer that is handed over is refused, not dropped.
    """
    found = {}

    def decoding(model, input_ids, *, streamer=None, tokenizer=None, synced_gpus=None, **given):
        found.update(streamer=streamer, tokenizer=tokenizer, gpus=synced_gpus, **given)
        return input_ids

    more = {"streamer": Parts(), "tokenizer": "any", "assistant_model": network("gpt2")}
    plain = {"pad_token_id": 0, "max_new_tokens": 4}
    network("gpt2").generate(PROMPT, custom_generate=decoding, **plain, **more)
    assert {found.get(name) for name in (*more, "gpus")} == {None}
    with pytest.raises(ValueError, match=r"streamer=a Parts; allowed is None: Speculative\(draft"):
        check_options(network("gpt2"), GenerationConfig(), {"streamer": Parts()})
