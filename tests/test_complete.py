"""A model's files and its configuration fit, or the model is refused in one line."""

import json
import math
import shutil
from functools import partial

import pytest
import torch
from own_models import gpt2, llama
from safetensors.torch import load_file, save_file
from transformers import T5Config, T5ForConditionalGeneration

from specdec_lib.measure.compare.command import main as compare
from specdec_lib.measure.ties.command import main as ties
from specdec_lib.models.loading import load_model, load_seq2seq
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
    for name, make in {"llama": llama, "gpt2": gpt2, "tied": partial(llama, tied=True)}.items():
        make(root / name)
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


def without(part):
    def edit(tensors):
        for name in [name for name in tensors if part in name]:
            del tensors[name]

    return stored(edit)


def spoiled(tensors):
    """One number of the last tensor, by name, is not one."""
    tensors[max(tensors)].view(-1)[-1] = math.nan


def turned(theta):
    return configured(rope_parameters={"rope_theta": theta, "rope_type": "default"})


HARMS = {  # kind of model, what is done to its folder, the complaint
    "llama-0": ("llama", configured(num_hidden_layers=0), "has 0 layers, allowed are 1 to 1,000"),
    "llama-less": ("llama", configured(num_hidden_layers=-1), "has -1 layers"),
    "llama-99": ("llama", configured(num_hidden_layers=99), r"882 missing: 'model\.layers\.1\."),
    "llama-many": ("llama", configured(num_hidden_layers=10**9), "has 1,000,000,000 layers"),
    "llama-text": ("llama", configured(num_hidden_layers="1"), "expected int, got str"),
    "gpt2-0": ("gpt2", configured(n_layer=0), "has 0 layers"),
    "gpt2-2": ("gpt2", configured(n_layer=2), r"12 missing: 'transformer\.h\.1"),
    "gpt2-untied": ("gpt2", configured(tie_word_embeddings=False), "1 missing: 'lm_head.weight'"),
    "t5-0": ("t5", configured(num_decoder_layers=0), "has 0 layers"),
    "t5-2": ("t5", configured(num_decoder_layers=2), r"\d+ missing: 'decoder\.block\.1"),
    "tied": (
        "llama",
        configured(tie_word_embeddings=True),
        "'lm_head.weight'.* its files hold two",
    ),
    "untied": ("tied", configured(tie_word_embeddings=False), "1 missing: 'lm_head.weight'"),
    "norm": ("llama", without("model.norm"), "1 missing: 'model.norm.weight'"),
    "wpe": ("gpt2", without("wpe"), "1 missing: 'transformer.wpe.weight'"),
    "more": ("llama", stored(lambda all: all.update(more=torch.ones(2))), "1 unexpected: 'more'"),
    "wide": ("llama", configured(intermediate_size=10**12), r"3 of another shape: .*\[32, 64\] in"),
    "heads": ("llama", configured(num_attention_heads=0), "ZeroDivisionError"),
    "heads-less": ("gpt2", configured(n_head=-4), "has -4 attention heads, allowed are 1 to 10,"),
    "nan": ("llama", stored(spoiled), "its tensor 'model.norm.weight' holds NaN or infinite"),
    "nan-t5": ("t5", stored(spoiled), "its tensor .* holds NaN or infinite"),
    "theta-nan": ("llama", turned(math.nan), "has rope_theta=nan, allowed are finite above 0"),
    "theta-0": ("llama", turned(0.0), "has rope_theta=0.0, allowed are finite above 0"),
    "eps": ("llama", configured(rms_norm_eps=math.inf), "has rms_norm_eps=inf, allowed are"),
    "eps-less": ("gpt2", configured(layer_norm_epsilon=-1.0), "has layer_norm_epsilon=-1.0"),
    "positions": ("llama", configured(max_position_embeddings=0), "0 positions, allowed are 1 "),
}


@pytest.mark.parametrize("kind, harm, complaint", HARMS.values(), ids=HARMS)
def test_files_that_do_not_fit_the_configuration_are_refused(
    folders, tmp_path, kind, harm, complaint
):
    read = load_seq2seq if kind == "t5" else load_model
    read(folders[kind], "target", device="cpu")  # which is whole
    harm(shutil.copytree(folders[kind], tmp_path / "harmed"))
    with pytest.raises(ValueError, match=f"^folder .*harmed cannot be read .*{complaint}") as said:
        read(tmp_path / "harmed", "target", device="cpu")
    assert len(str(said.value).splitlines()) == 1


@pytest.mark.parametrize("place", ["target", "draft"])
def test_every_door_refuses_a_model_with_another_number_of_layers(folders, tmp_path, place):
    harmed = shutil.copytree(folders["gpt2"], tmp_path / "harmed")
    configured(n_layer=0)(harmed)
    given = {"target": folders["llama"], "draft": folders["gpt2"]} | {place: harmed}
    line = [f"--{name}={folder}" for name, folder in given.items()]
    line += ["--device=cpu", "--limit=1", "--max-new-tokens=2"]
    doors = (lambda: load_ladder(**given, device="cpu"), lambda: compare(line), lambda: ties(line))
    for door in doors:
        with pytest.raises(ValueError, match=r"harmed cannot be read .* has 0 layers"):
            door()


def in_shards(folder, file):
    """The weights go into one shard, which an index names as `file`."""
    (folder / WEIGHTS).rename(folder / "one.safetensors")
    names = load_file(folder / "one.safetensors")
    index = {"metadata": {}, "weight_map": dict.fromkeys(names, file)}
    (folder / INDEX).write_text(json.dumps(index))


@pytest.mark.parametrize(
    "file", ["weights.bin", "../llama/model.safetensors", "..\\x.safetensors", "/etc/passwd", 3]
)
def test_an_index_that_names_another_file_is_refused_before_it_is_opened(
    folders, tmp_path, file, monkeypatch
):
    whole, harmed = (shutil.copytree(folders["llama"], tmp_path / name) for name in ("a", "b"))
    in_shards(whole, "one.safetensors")
    found = load_model(whole, "target", device="cpu")
    alone = load_model(folders["llama"], "target", device="cpu")
    pairs = zip(found.model.parameters(), alone.model.parameters(), strict=True)
    assert all(torch.equal(one, other) for one, other in pairs)
    in_shards(harmed, file)
    torch.save(load_file(harmed / "one.safetensors"), harmed / "weights.bin")
    monkeypatch.setattr(torch, "load", lambda *_, **__: pytest.fail("a pickle was opened"))
    with pytest.raises(ValueError, match=rf"its index {INDEX} names .*; allowed are \.safetensors"):
        load_model(harmed, "target", device="cpu")
