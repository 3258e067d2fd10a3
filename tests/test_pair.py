"""The encoder-decoder pair: what is loaded and refused, and the target's own output."""

import shutil

import pytest
from t5s import generated

from specdec_lib.core.chance import Chance
from specdec_lib.core.decode import decode
from specdec_lib.core.files import DATA
from specdec_lib.drafts.trees.growing import ChainDraft
from specdec_lib.workload import SPLITS, Pair, load_pair, load_prompts

SOURCE_TOKENS = 192  # the pair was trained on sources of at most so many


@pytest.fixture(scope="module")
def loaded() -> Pair:
    """The embedded pair in float32 on the CPU."""
    return load_pair(device="cpu")


def test_the_prompts_are_whole_and_of_files_that_were_not_trained_on(loaded):
    for split in SPLITS:
        prompts = load_prompts("docstring", split)
        assert len(prompts) == 80 == len({prompt.name for prompt in prompts})
        files = loaded.card["data"][f"{split.replace('-', '_')}_files"]
        assert {prompt.origin for prompt in prompts} <= set(files)
        assert max(len(loaded.encode(prompt).source) for prompt in prompts) < SOURCE_TOKENS
        assert {prompt.domain for prompt in prompts} == {"docstring"}


def test_a_prompt_is_the_source_and_the_decoder_begins_alone(loaded):
    prompt = load_prompts("docstring")[0]
    context = loaded.encode(prompt)
    assert loaded.tokenizer.decode(context.source) == prompt.text
    assert (context.tokens, context.prompt_tokens) == ((0,), 1)
    assert len(loaded.encode("x = 1\n" * 200).source) > SOURCE_TOKENS  # nothing is cut in silence
    copied = loaded.max_gram.propose(context.extended(context.source[:2]), Chance(0)).tokens
    assert copied[1:4] == context.source[2:5]


def test_greedy_output_is_that_of_generate_on_held_out_prompts(loaded):
    draft, limits = ChainDraft(loaded.draft, length=4), {"stop_tokens": loaded.stop_tokens}
    for prompt in load_prompts("docstring", "held-out", 10):
        context = loaded.encode(prompt)
        made = decode(loaded.target, draft, context, Chance(0), max_new_tokens=48, **limits)
        assert made.tokens == generated(loaded.target.model, context.source, 48)


NAMES = ("card.json", "tokenizer.json", "target/model.safetensors", "draft/config.json")


def test_a_missing_damaged_or_unlisted_file_is_refused(tmp_path):
    stored = shutil.copytree(DATA / "pair", tmp_path / "pair")
    for name in NAMES:
        whole = (stored / name).read_bytes()
        (stored / name).write_bytes(whole[: len(whole) // 2])
        with pytest.raises(ValueError, match=f"{name} is damaged"):
            load_pair(folder=stored)
        (stored / name).unlink()
        with pytest.raises(ValueError, match=f"{name} is missing"):
            load_pair(folder=stored)
        (stored / name).write_bytes(whole)
    card = (stored / "card.json").read_text()
    (stored / "card.json").write_text(card.replace('"draft/model.safetensors"', '"draft/other"'))
    with pytest.raises(ValueError, match=r"does not list draft/model\.safetensors"):
        load_pair(folder=stored)
