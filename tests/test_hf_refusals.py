"""Whatever `generate` can be asked for and speculation cannot honour is refused by name, with its
value and what is allowed, before any work.
"""

from types import FunctionType

import pytest
import torch
from t5s import network as t5_network
from t5s import sources
from transformers import (
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
from specdec_lib.suite.hf.options import restore_dropped

VOCABULARY, POSITIONS = 29, 40


@pytest.fixture(scope="module")
def model() -> GPT2LMHeadModel:
    torch.manual_seed(0)
    sizes = {
        "n_embd": 16,
        "n_layer": 1,
        "n_head": 2,
        "n_positions": POSITIONS,
        "bos_token_id": 0,
        "eos_token_id": None,
    }
    return GPT2LMHeadModel(GPT2Config(vocab_size=VOCABULARY, **sizes)).eval()


def ask(model, given=((1, 2, 3),), draft=None, **options) -> torch.Tensor:
    given = torch.tensor(given)
    plain = {
        "attention_mask": torch.ones_like(given),
        "max_new_tokens": 8,
        "pad_token_id": 0,
        "custom_generate": Speculative(draft or NoDraft()),
    }
    return model.generate(given, **(plain | options))


def used_cache() -> DynamicCache:
    cache = DynamicCache()
    cache.update(torch.zeros(1, 2, 1, 8), torch.zeros(1, 2, 1, 8), 0)
    return cache


@pytest.mark.parametrize(
    "options, message",
    [
        ({"num_beams": 3}, "num_beams=3; allowed is 1"),
        ({"do_sample": True, "num_return_sequences": 2}, "num_return_sequences=2; allowed is 1"),
        ({"guidance_scale": 1.5}, "guidance_scale=1.5; allowed is None or 1"),
        ({"use_cache": False}, "use_cache=False; allowed is True"),
        (
            {"cache_implementation": "static"},
            "cache_implementation=static; allowed is None or 'dynamic'",
        ),
        (
            {"output_attentions": True, "return_dict_in_generate": True},
            "output_attentions=True; allowed is False",
        ),
        (
            {"output_hidden_states": True, "return_dict_in_generate": True},
            "output_hidden_states=True; allowed is False",
        ),
        ({"prompt_lookup_num_tokens": 3}, "prompt_lookup_num_tokens=3; allowed is None"),
        ({"penalty_alpha": 0.6, "top_k": 4}, "penalty_alpha=0.6; allowed is None"),
        ({"dola_layers": "low"}, "dola_layers=low; allowed is None"),
        ({"past_key_values": DynamicCache()}, "past_key_values=a DynamicCache; allowed is None"),
        (
            {"token_type_ids": torch.zeros(1, 3, dtype=torch.long)},
            r"token_type_ids=a tensor of shape \[1, 3\] and torch.int64; allowed is None",
        ),
        ({"position_ids": torch.tensor([[4, 5, 6]])}, "position_ids=a tensor"),
        (
            {"attention_mask": torch.tensor([[1, 0, 1]])},
            r"attention_mask=\[\[1, 0, 1\]\]; allowed is 1 for every token",
        ),
        ({"attention_mask": torch.tensor([[1, 1, 0]])}, "attention_mask="),
        ({"given": ((1, 2, 3), (4, 5, 6))}, "the batch=2 prompts; allowed is 1 prompt per call"),
        (
            {"max_new_tokens": 60},
            r"max_length=63 \(60 new tokens\); allowed is at most 38 new tokens",
        ),
        ({"synced_gpus": True}, "synced_gpus=True; allowed is None"),
    ],
)
def test_what_cannot_be_honoured_is_refused(model, options, message):
    with pytest.raises(ValueError, match=message):
        ask(model, **options)


def test_an_assistant_is_refused_with_a_draft(model):
    with pytest.raises(ValueError, match=r"assistant_model|assisted"):
        ask(model, assistant_model=model)


def test_embeddings_are_refused(model):
    embeddings = model.transformer.wte(torch.tensor([[1, 2, 3]]))
    with pytest.raises(
        ValueError, match=r"inputs_embeds=a tensor .* allowed is None: only token ids"
    ):
        model.generate(
            inputs_embeds=embeddings,
            max_new_tokens=4,
            pad_token_id=0,
            custom_generate=Speculative(NoDraft()),
        )


def test_a_model_that_drops_out_is_refused(model):
    model.train()
    try:
        with pytest.raises(
            ValueError, match=r"model.training=True; allowed is False: call model.eval\(\)"
        ):
            ask(model)
    finally:
        model.eval()


def test_a_draft_with_another_vocabulary_is_refused_before_any_work(model):
    torch.manual_seed(0)
    other = GPT2LMHeadModel(
        GPT2Config(vocab_size=31, n_embd=16, n_layer=1, n_head=2, n_positions=POSITIONS)
    ).eval()
    passes = []
    hook = model.register_forward_hook(lambda *_: passes.append(1))
    with pytest.raises(
        ValueError,
        match="a draft must share the target's vocabulary: draft has 31 tokens, target 29",
    ):
        ask(model, draft=ChainDraft(CachedModel(other, "draft"), 3))
    hook.remove()
    assert not passes


def test_a_model_that_a_tree_cannot_be_read_with_is_refused_by_its_kind():
    from transformers import BloomConfig, BloomForCausalLM

    bloom = BloomForCausalLM(
        BloomConfig(vocab_size=VOCABULARY, hidden_size=16, n_layer=1, n_head=2)
    ).eval()
    with pytest.raises(ValueError, match="ALiBi"):
        ask(bloom)


def test_an_encoder_decoder_refuses_holes_and_encodings_of_ones_own():
    model, source = t5_network("gated tied", dtype=torch.float32), torch.tensor([sources(1)[0]])
    options = {"max_new_tokens": 5, "pad_token_id": 0, "custom_generate": Speculative(NoDraft())}
    holes = torch.ones_like(source)
    holes[0, source.shape[1] // 2] = 0
    with pytest.raises(ValueError, match=r"attention_mask=.* and 0 before or after the text only"):
        model.generate(source, attention_mask=holes, **options)
    encoded = model.encoder(input_ids=source)
    with pytest.raises(
        ValueError, match="encoder_outputs=of your own; allowed is None: the encoder is run here"
    ):
        model.generate(source, encoder_outputs=encoded, **options)


def test_stop_strings_without_a_tokenizer_are_generates_own_error(model):
    with pytest.raises(ValueError, match="tokenizer"):
        ask(model, stop_strings=["a"])


def test_a_misspelt_option_is_generates_own_error(model):
    with pytest.raises(ValueError, match="max_new_token"):
        ask(model, max_new_token=4)


def test_a_longest_text_of_ones_own_is_honoured(model):
    criteria = StoppingCriteriaList([MaxLengthCriteria(max_length=9)])
    assert (
        ask(model, stopping_criteria=criteria).shape
        == model.generate(
            torch.tensor([[1, 2, 3]]),
            attention_mask=torch.ones(1, 3, dtype=torch.long),
            max_new_tokens=8,
            pad_token_id=0,
            stopping_criteria=criteria,
        ).shape
    )


def test_the_text_may_fill_the_context(model):
    wanted = model.generate(
        torch.tensor([[1, 2, 3]]),
        attention_mask=torch.ones(1, 3, dtype=torch.long),
        max_new_tokens=37,
        pad_token_id=0,
    )
    assert ask(model, max_new_tokens=37).tolist() == wanted.tolist()


def test_a_target_that_is_given_reads_in_pieces_of_its_own(model):
    with pytest.raises(ValueError, match="prefill_chunk_size=2; allowed is None"):
        ask(
            model,
            prefill_chunk_size=2,
            custom_generate=Speculative(NoDraft(), target=CachedModel(model, "target")),
        )


@pytest.mark.parametrize("hidden", ["the function", "its variables"])
def test_a_transformers_that_hides_what_is_restored_is_refused(model, monkeypatch, hidden):
    """Negative control: or the streamer, which is not given here, would be dropped in silence."""
    right = GenerationMixin._extract_generation_mode_kwargs
    if hidden == "the function":
        changed = right.__code__.replace(co_name="_collect")
    else:
        changed = right.__code__.replace(
            co_varnames=tuple(f"{name}_" for name in right.__code__.co_varnames)
        )
    monkeypatch.setattr(
        GenerationMixin,
        "_extract_generation_mode_kwargs",
        lambda *given, **named: FunctionType(changed, right.__globals__)(*given),
    )
    with pytest.raises(
        ValueError, match=r"transformers \d.* would be lost; allowed is to be called"
    ):
        ask(model)
    monkeypatch.undo()
    assert ask(model).shape == (1, 11)


def test_outside_generate_nothing_is_restored():
    restore_dropped()  # no frame of generate's: nothing happens
    import inspect

    assert "inputs_tensor" in inspect.signature(Speculative(NoDraft())).parameters
    assert "draft" in inspect.signature(Speculative).parameters
