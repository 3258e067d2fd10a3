"""Prompts and the ladder: what is loaded, and what is refused."""

import json
import shutil

import pytest

from specdec_lib.ladder.prompting import trained_questions
from specdec_lib.workload import DATA, SPLITS, load_ladder, load_model, load_prompts, seeds

SMALL = ("card.json", "tokenizer.json", "katz.npz", "draft")


@pytest.mark.parametrize("domain,count", [("code", 120), ("math", 80), ("prose", 80)])
def test_the_prompt_sets_are_whole_and_split_by_file(domain, count):
    sets = {split: load_prompts(domain, split) for split in SPLITS}
    assert all(len(prompts) == count and len({prompt.name for prompt in prompts}) == count for prompts in sets.values())
    if domain != "math":
        assert {prompt.origin for prompt in sets["development"]}.isdisjoint(prompt.origin for prompt in sets["held-out"])
    assert len({prompt.text for prompts in sets.values() for prompt in prompts}) > 1.9 * count


def test_no_prompt_comes_from_a_file_that_was_trained_on(ladder):
    data = ladder.card["data"]
    for domain in ("code", "prose"):
        assert {prompt.origin for prompt in load_prompts(domain, "held-out")} <= set(data["held_out_files"])
        assert {prompt.origin for prompt in load_prompts(domain, "development")} <= set(data["development_files"])


def test_no_word_problem_was_trained_on():
    trained = trained_questions()
    assert trained.isdisjoint(prompt.text for split in SPLITS for prompt in load_prompts("math", split))
    assert len(trained) > 3 * 14_000  # the mix of the standard library, NumPy, pandas and networkx holds 14,192


def test_every_prompt_leaves_room_to_generate(ladder):
    for domain in ("code", "math", "prose"):
        for split in SPLITS:
            assert max(len(ladder.encode(prompt)) for prompt in load_prompts(domain, split)) + 128 < ladder.target.max_positions


def test_the_ladders_models_share_a_vocabulary_and_shrink(ladder):
    models = [ladder.target, ladder.middle, ladder.draft]
    assert {model.vocabulary for model in (*models, ladder.katz)} == {len(ladder.tokenizer)}
    sizes = [sum(weight.numel() for weight in model.model.parameters()) for model in models]
    assert sizes == sorted(sizes, reverse=True) and sizes[0] > 10e6
    assert ladder.card["models"]["target"]["held_out_bits_per_byte"] < 1.3
    assert len(ladder.card["samples"]) == 3 and "greedy" in ladder.card["repetition"]


def test_text_comes_back_as_it_was(ladder):
    text = "def f(x):\n    return x  # ∑ ok\n"
    assert ladder.tokenizer.decode(ladder.encode(text)) == text
    assert "".join(map(ladder.text, ladder.encode(prompt := "def f(x):\n    return  1"))) == prompt


def test_seeds_follow_from_the_prompts_name():
    prompts = load_prompts("code")
    assert len(set(seeds(prompts, 0))) == len(prompts) and seeds(prompts[3:5], 0) == seeds(prompts, 0)[3:5]
    assert seeds(prompts, 1) != seeds(prompts, 0)


@pytest.mark.parametrize("wrong", [("poems",), ("code", "training"), ("code", "held-out", 0)])
def test_an_unknown_prompt_set_is_refused(wrong):
    with pytest.raises(ValueError, match=r"prompt sets are code, math, prose|at least 1"):
        load_prompts(*wrong)


def test_a_missing_or_damaged_prompt_file_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"code\.jsonl is missing; restore it"):
        load_prompts("code", folder=tmp_path)
    (tmp_path / "code.jsonl").write_text('{"name": "x"')
    with pytest.raises(ValueError, match=r"code\.jsonl is damaged"):
        load_prompts("code", folder=tmp_path)


@pytest.fixture
def copy(tmp_path):
    """The ladder without its big models, and a card that lists what is there."""
    for name in SMALL:
        (shutil.copytree if (DATA / "ladder" / name).is_dir() else shutil.copy)(DATA / "ladder" / name, tmp_path / name)
    card = json.loads((tmp_path / "card.json").read_text())
    card["files"] = {name: digest for name, digest in card["files"].items() if (tmp_path / name).exists()}
    (tmp_path / "card.json").write_text(json.dumps(card))
    return tmp_path


@pytest.mark.parametrize("name", ["card.json", "tokenizer.json", "katz.npz", "draft/model.safetensors"])
def test_a_missing_ladder_file_is_refused(copy, name):
    (copy / name).unlink()
    with pytest.raises(ValueError, match="is missing; restore it with `git checkout data`"):
        load_ladder(folder=copy)


@pytest.mark.parametrize("name", ["card.json", "tokenizer.json", "katz.npz", "draft/model.safetensors"])
def test_a_damaged_ladder_file_is_refused(copy, name):
    whole = (copy / name).read_bytes()
    (copy / name).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="is damaged"):
        load_ladder(folder=copy)


def test_a_model_folder_that_is_none_is_refused(tmp_path):
    with pytest.raises(ValueError, match="cannot be read as a model"):
        load_model(tmp_path, "target")
    with pytest.raises(ValueError, match="float32, float64, bfloat16"):
        load_model(DATA / "ladder" / "draft", "draft", dtype="int8")


def test_a_damaged_model_is_refused(copy):
    weights = copy / "draft" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(ValueError, match="cannot be read as a model"):
        load_model(copy / "draft", "draft", device="cpu")
