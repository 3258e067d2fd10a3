"""Model folders: files fit their configuration, tokenizers each other, or one line refuses them."""

import json
import math
import shutil

import pytest
import torch
from own_models import changed, gpt2, llama, swap, tokenizer, without_tokenizer
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer, Qwen2Config, T5Config, T5ForConditionalGeneration

from specdec_lib.models.hub import check_tokenizers, load_tokenizer
from specdec_lib.models.loading import load_model, load_seq2seq
from specdec_lib.workload import load_ladder

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
T5 = {"d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("models")
    config = T5Config(vocab_size=64, decoder_start_token_id=0, **T5)
    T5ForConditionalGeneration(config).save_pretrained(root / "t5")
    llama(root / "llama")
    gpt2(root / "gpt2")
    return {path.name: path for path in root.iterdir()}


def configured(**changes):
    def harm(folder):
        path = folder / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return harm


def rotary(theta):
    def harm(folder):
        config = json.loads((folder / "config.json").read_text())
        assert config["rope_parameters"]["rope_theta"] > 0  # where Transformers keeps it
        configured(rope_parameters=config["rope_parameters"] | {"rope_theta": theta})(folder)

    return harm


def old_rotary(folder):
    """A configuration as earlier versions wrote it."""
    config = json.loads((folder / "config.json").read_text())
    del config["rope_parameters"]
    (folder / "config.json").write_text(json.dumps(config | {"rope_theta": 0}))


def stored(edit):
    def harm(folder):
        tensors = load_file(folder / WEIGHTS)
        edit(tensors)
        save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})

    return harm


def spoiled(tensors):
    """One number of the last tensor, by name, is not one."""
    tensors[max(tensors)].view(-1)[-1] = math.nan


def pickled(folder):
    torch.save(load_file(folder / WEIGHTS), folder / "pytorch_model.bin")
    (folder / WEIGHTS).unlink()


HARMS = {  # kind of model, what is done to its folder, the complaint
    "llama-99": ("llama", configured(num_hidden_layers=99), r"882 missing: 'model\.layers\.1\."),
    "llama-less": ("llama", configured(num_hidden_layers=0), "layers is 0, allowed are 1 to 1,000"),
    "gpt2-untied": ("gpt2", configured(tie_word_embeddings=False), "1 missing: 'lm_head.weight'"),
    "t5-2": ("t5", configured(num_decoder_layers=2), r"\d+ missing: 'decoder\.block\.1"),
    "tied": ("llama", configured(tie_word_embeddings=True), "configuration ties .* files hold two"),
    "norm": ("llama", stored(lambda all: all.pop("model.norm.weight")), "missing: 'model.norm.wei"),
    "more": ("llama", stored(lambda all: all.update(more=torch.ones(2))), "1 unexpected: 'more'"),
    "wide": ("llama", configured(intermediate_size=70), r"has the shape \[32, 64\] in the fil"),
    "heads": ("llama", configured(num_attention_heads=0), "attention_heads is 0, allowed are"),
    "key-value": ("llama", configured(num_key_value_heads=0), "key_value_heads is 0, allowed are"),
    "decoder": (
        "t5",
        configured(num_decoder_layers=0),
        "num_decoder_layers is 0, allowed are",
    ),
    "theta 0": ("llama", rotary(0.0), "rope_theta is 0.0, allowed are finite numbers above 0"),
    "theta -1": ("llama", rotary(-1e4), "rope_theta is -10000.0, allowed are finite"),
    "theta NaN": ("llama", rotary(math.nan), "rope_theta is nan, allowed are finite"),
    "old theta": ("llama", old_rotary, "rope_theta is 0, allowed are finite numbers above 0"),
    "epsilon": ("llama", configured(rms_norm_eps=-1e-6), "rms_norm_eps is -1e-06, allowed are"),
    "t5 epsilon": ("t5", configured(layer_norm_epsilon=2.0), "layer_norm_epsilon is 2.0, allowed"),
    "positions": ("gpt2", configured(n_positions=0), "max_position_embeddings is 0, allowed are 1"),
    "nan": ("llama", stored(spoiled), "its tensor 'model.norm.weight' holds NaN or infinite"),
    "unknown": ("llama", configured(model_type="unheard-of"), "`unheard-of`"),
    "another": ("llama", configured(model_type="t5"), r"model \(t5\), which `load_seq2seq` reads"),
    "cut": ("llama", lambda folder: (folder / WEIGHTS).write_bytes(b"{"), "SafetensorError"),
    "pickled": ("llama", pickled, f"no file named {WEIGHTS}"),
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


@pytest.fixture
def copy(tmp_path):
    tokenizer().save_pretrained(tmp_path / "copy")
    return tmp_path / "copy"


def holed(said):
    """With two numbers that stand for nothing, and two tokens far above."""
    model = said["model"]
    held = {token for token, number in model["vocab"].items() if number in (3000, 3500)}
    model["merges"] = [one for one in model["merges"] if not {*one, "".join(one)} & held]
    vocab = {token: number for token, number in model["vocab"].items() if token not in held}
    model["vocab"] = vocab | {"<5000>": 5000, "<5001>": 5001}


def test_tokenizers_that_differ_are_told_apart(copy):
    def shorter(said):
        swap(said)  # back
        said["model"]["merges"] = said["model"]["merges"][:100]

    def exchanged(said):
        said["model"]["vocab"].update({"<5000>": 5001, "<5001>": 5000})

    longer, first = tokenizer(), tokenizer().convert_ids_to_tokens(5)
    longer.add_tokens(["<|more|>"])
    swapped, short, gaps = (changed(copy, edit) for edit in (swap, shorter, holed))
    for one, other, complaint in (
        (tokenizer(), swapped, "the token '.+' is number (1000|2000) to the target and .000 to"),
        (tokenizer(), short, "the middle must .* know the same tokens, and encode 'def f"),
        (tokenizer(), longer, r"'<\|more\|>' is number None to the target and 4096 to the middle"),
        (tokenizer(), tokenizer(eos_token=first), "eos_token_id is 0 to the target, 5 to the mid"),
        (tokenizer(), gaps, "is number 3000 to the target and None to the middle"),
        (gaps, changed(copy, exchanged), "'<500.>' is number 500. to the target and 500. to"),
    ):
        with pytest.raises(ValueError, match=complaint):
            check_tokenizers(one, other, "middle")
        check_tokenizers(one, one, "draft")
    assert len(gaps) == 4096 and max(gaps.get_vocab().values()) == 5001
    # a name that only one of them has contradicts nothing
    check_tokenizers(tokenizer(), tokenizer(bos_token=first, unk_token=first), "draft")


def test_a_folders_tokenizer_is_read_as_it_stands_whatever_the_kind_of_the_model(copy):
    """The control: transformers goes by the kind, and splits this text in another way."""
    Qwen2Config().save_pretrained(copy)
    text = "in 2026: 12,345 words"
    assert load_tokenizer(copy).encode(text) == tokenizer().encode(text)
    assert AutoTokenizer.from_pretrained(copy).encode(text) != tokenizer().encode(text)
    check_tokenizers(tokenizer(), load_tokenizer(copy), "draft")


def test_a_tokenizer_that_lies_elsewhere_counts_for_models_that_have_none(copy, tmp_path):
    models = [without_tokenizer(llama(tmp_path / name)) for name in ("target", "draft")]
    ladder = load_ladder(*models, tokenizer=copy, device="cpu")
    text = "def f(x):\n    return"
    assert ladder.encode(text) == tuple(tokenizer().encode(text)) and ladder.katz is None
