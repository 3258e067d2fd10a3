"""A dozen of the kinds of decoder that `python tests/kinds.py` tries all."""

import pytest
from kinds import LATER, REFUSED, RIGHT, UNBUILT, WRONG, main, outcome, quiet

RIGHT_ONES = ("gpt2", "gpt_neox", "gptj", "llama", "qwen3", "gemma2", "phi", "olmo2", "mixtral")
RIGHT_ONES += ("deepseek_v3", "dbrx", "emu3", "mllama")  # the last two are parts of other models
REFUSED_ONES = {
    "bert": "is bidirectional",
    "roberta": "is bidirectional",
    "xlm-roberta-xl": "has other logits behind a cache",
    "jamba": "has no cache of keys and values by position",
    "mamba": "takes no position_ids",
    "openai-gpt": "takes no past_key_values",
    "bloom": "takes positions from the mask",
    "bart": "takes no position_ids",
    "qwen3_5": "linear_attention",
    "musicgen": "it is an encoder-decoder model",
    "gemma4_unified_assistant": "takes no logits_to_keep",
}


@pytest.mark.parametrize("kind", RIGHT_ONES)
def test_a_kind_of_decoder_is_right(kind, tmp_path, unchecked):
    quiet()
    assert outcome(kind, tmp_path) == (RIGHT, "")


@pytest.mark.parametrize("runtime", ["fast", "int8"])
@pytest.mark.parametrize("kind", ["gemma3", "gemma2"])
def test_a_kind_is_right_or_refused_on_other_runtimes(kind, runtime, tmp_path, unchecked):
    quiet()
    found, why = outcome(kind, tmp_path, runtime)
    assert found == (RIGHT if kind == "gemma3" else REFUSED)
    assert why == "" or ("got 'gemma2'" in why and "the reference runtime runs any" in why)


@pytest.mark.parametrize("kind", REFUSED_ONES)
def test_a_kind_of_decoder_is_refused_when_it_is_loaded(kind, tmp_path, unchecked):
    quiet()
    found, why = outcome(kind, tmp_path)
    assert found == REFUSED and REFUSED_ONES[kind] in why


@pytest.mark.parametrize("found", [RIGHT, REFUSED, UNBUILT, WRONG, LATER])
def test_the_sweep_over_kinds_fails_where_one_is_wrong_or_raises_later(found, tmp_path, capsys):
    kept = tmp_path / "kept.jsonl"
    kept.write_text(f'["gpt2", "fast", ["{found}", "so"]]\n')
    asked = ["gpt2", "--runtime", "fast", "--keep", str(kept)]
    assert main(asked) == int(found in (WRONG, LATER))
    assert f"1 {found}" in capsys.readouterr().out
