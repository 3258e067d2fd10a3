"""Model folders: files fit their configuration, tokenizers each other, or one line refuses them."""

import json
import math
import shutil

import pytest
import torch
from own_models import changed, gpt2, llama, swap, tokenizer, without_tokenizer
from safetensors.torch import load_file, save_file
from transformers import Qwen2Config, T5Config, T5ForConditionalGeneration

from specdec_lib.models.loading import load_model, load_seq2seq
from specdec_lib.models.tokenizers import check_tokenizers, load_tokenizer
from specdec_lib.workload import load_ladder

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("models")
    config = T5Config(
        vocab_size=64, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2,
        decoder_start_token_id=0,
    )  # fmt: skip
    T5ForConditionalGeneration(config).save_pretrained(root / "t5")
    llama(root / "llama")
    gpt2(root / "gpt2")
    return {path.name: path for path in root.iterdir()}


def configured(**changes):
    def harm(folder):
        path = folder / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return harm


def stored(edit):
    def harm(folder):
        tensors = load_file(folder / WEIGHTS)
        edit(tensors)
        save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})

    return harm


def without_norm(tensors):
    del tensors["model.norm.weight"]


def spoiled(tensors):
    """One number of the last tensor, by name, is not one."""
    tensors[max(tensors)].view(-1)[-1] = math.nan


def pickled(folder):
    torch.save(load_file(folder / WEIGHTS), folder / "pytorch_model.bin")
    (folder / WEIGHTS).unlink()


THETA = "has rope_theta=0.0, allowed are finite above 0"
STILL = {"rope_theta": 0.0, "rope_type": "default"}
HARMS = {  # kind of model, what is done to its folder, the complaint
    "llama-less": ("llama", configured(num_hidden_layers=-1), "has -1 layers"),
    "llama-99": ("llama", configured(num_hidden_layers=99), r"882 missing: 'model\.layers\.1\."),
    "llama-many": ("llama", configured(num_hidden_layers=10**9), "has 1,000,000,000 layers"),
    "gpt2-0": ("gpt2", configured(n_layer=0), "has 0 layers"),
    "gpt2-untied": ("gpt2", configured(tie_word_embeddings=False), "1 missing: 'lm_head.weight'"),
    "t5-2": ("t5", configured(num_decoder_layers=2), r"\d+ missing: 'decoder\.block\.1"),
    "tied": ("llama", configured(tie_word_embeddings=True), "'lm_head.weight'.* files hold two"),
    "norm": ("llama", stored(without_norm), "1 missing: 'model.norm.weight'"),
    "more": ("llama", stored(lambda all: all.update(more=torch.ones(2))), "1 unexpected: 'more'"),
    "wide": ("llama", configured(intermediate_size=10**12), r"3 of another shape: .*\[32, 64\] in"),
    "heads": ("llama", configured(num_attention_heads=0), "ZeroDivisionError"),
    "nan": ("llama", stored(spoiled), "its tensor 'model.norm.weight' holds NaN or infinite"),
    "nan-t5": ("t5", stored(spoiled), "its tensor .* holds NaN or infinite"),
    "theta": ("llama", configured(rope_parameters=STILL), THETA),
    "eps": ("llama", configured(rms_norm_eps=math.inf), "has rms_norm_eps=inf, allowed are"),
    "unknown": ("llama", configured(model_type="unheard-of"), "`unheard-of`"),
    "another": ("llama", configured(model_type="t5"), r"model \(t5\), which `load_seq2seq` reads"),
    "empty": ("llama", lambda folder: (folder / WEIGHTS).unlink(), f"no file named {WEIGHTS}"),
    "cut": ("llama", lambda folder: (folder / WEIGHTS).write_bytes(b"{"), "SafetensorError"),
    "pickled": ("llama", pickled, f"no file named {WEIGHTS}"),
    "positions": ("llama", configured(max_position_embeddings=0), "0 positions, allowed are 1 "),
}


@pytest.mark.parametrize("kind, harm, said", HARMS.values(), ids=HARMS)
def test_files_that_do_not_fit_the_configuration_are_refused(folders, tmp_path, kind, harm, said):
    read = load_seq2seq if kind == "t5" else load_model
    read(folders[kind], "target", device="cpu")  # which is whole
    harm(shutil.copytree(folders[kind], tmp_path / "harmed"))
    with pytest.raises(ValueError, match=f"harmed cannot be read .*{said}") as refused:
        read(tmp_path / "harmed", "target", device="cpu")
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize("file", ["weights.bin", "../llama/model.safetensors", "/etc/passwd", 3])
def test_an_index_that_names_another_file_is_refused_unopened(folders, tmp_path, file, monkeypatch):
    """The control: an index that names the very file beside it is read."""
    folder = shutil.copytree(folders["llama"], tmp_path / "harmed")
    tensors = load_file(folder / WEIGHTS)
    (folder / WEIGHTS).rename(folder / "one.safetensors")
    torch.save(tensors, folder / "weights.bin")

    def names(file):
        index = {"metadata": {}, "weight_map": dict.fromkeys(tensors, file)}
        (folder / INDEX).write_text(json.dumps(index))

    names("one.safetensors")
    found = load_model(folder, "target", device="cpu").model.state_dict()
    assert all(torch.equal(found[name], tensor) for name, tensor in tensors.items())
    names(file)
    monkeypatch.setattr(torch, "load", lambda *_, **__: pytest.fail("a pickle was opened"))
    with pytest.raises(ValueError, match=rf"its index {INDEX} names .*; allowed are \.safetensors"):
        load_model(folder, "target", device="cpu")


TEXT = "def f(x):\n    return"


@pytest.fixture
def copy(tmp_path):
    tokenizer().save_pretrained(tmp_path / "copy")
    return tmp_path / "copy"


def test_tokenizers_that_differ_are_told_apart(copy):
    def shorter(said):
        swap(said)  # back
        said["model"]["merges"] = said["model"]["merges"][:100]

    longer = tokenizer()
    longer.add_tokens(["<|more|>"])
    ended = tokenizer(eos_token=tokenizer().convert_ids_to_tokens(5))
    for other, complaint in (
        (changed(copy, swap), r"number 1000 is '.+' to the target and '.+' to the middle"),
        (changed(copy, shorter), "both know the same tokens, and encode 'def f"),
        (longer, r"of 4,097 tokens, number 4096 is None to the target and '<\|more\|>' to"),
        (ended, "eos_token_id is 0 to the target, 5 to the middle"),
    ):
        with pytest.raises(ValueError, match=complaint):
            check_tokenizers(tokenizer(), other, "middle")


def test_a_folders_tokenizer_is_read_as_it_stands_whatever_the_kind_of_the_model(copy):
    Qwen2Config().save_pretrained(copy)  # of which the family splits text in another way
    text = "def f(x):\n  ∑"
    assert load_tokenizer(copy).encode(text) == tokenizer().encode(text)
    assert check_tokenizers(tokenizer(), load_tokenizer(copy)) is None


def test_an_id_that_only_one_tokenizer_names_contradicts_nothing():
    first = tokenizer().convert_ids_to_tokens(5)
    assert check_tokenizers(tokenizer(), tokenizer(bos_token=first, unk_token=first)) is None


def holed(said):
    """With two numbers that stand for nothing, and two tokens far above."""
    model = said["model"]
    held = {token for token, number in model["vocab"].items() if number in (3000, 3500)}
    model["merges"] = [one for one in model["merges"] if not {*one, "".join(one)} & held]
    vocab = {token: number for token, number in model["vocab"].items() if token not in held}
    model["vocab"] = vocab | {"<5000>": 5000, "<5001>": 5001}


def test_tokens_above_a_hole_are_compared_too(copy):
    with pytest.raises(
        ValueError, match=r"number 3000 is '.+' to the target and None to the draft"
    ):
        check_tokenizers(tokenizer(), changed(copy, holed))
    one = load_tokenizer(copy)
    assert len(one) == 4096 and max(one.get_vocab().values()) == 5001
    assert check_tokenizers(one, load_tokenizer(copy)) is None
    other = changed(
        copy, lambda said: said["model"]["vocab"].update({"<5000>": 5001, "<5001>": 5000})
    )
    with pytest.raises(ValueError, match=r"number 5000 is '<5000>' .* and '<5001>' to"):
        check_tokenizers(one, other)


def test_a_tokenizer_that_lies_elsewhere_counts_for_models_that_have_none(copy, tmp_path):
    models = [without_tokenizer(llama(tmp_path / name)) for name in ("target", "draft")]
    ladder = load_ladder(*models, tokenizer=copy, device="cpu")
    assert ladder.encode(TEXT) == tuple(tokenizer().encode(TEXT)) and ladder.katz is None
