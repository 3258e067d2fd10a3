"""Tokenizers of one's own models: told apart by any token and by how they split."""

import pytest
from own_models import changed, llama, swap, tokenizer, without_tokenizer
from transformers import Qwen2Config

from specdec_lib.models.tokenizers import check_tokenizers, load_tokenizer
from specdec_lib.workload import load_ladder

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
