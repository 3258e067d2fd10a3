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


def test_tokenizers_that_swap_tokens_or_only_split_differently_are_told_apart(copy):
    def shorter(said):
        swap(said)  # back
        said["model"]["merges"] = said["model"]["merges"][:100]

    for edit, complaint in (
        (swap, r"token 1000 is '.+' to the target and '.+' to the draft; 2 of 4,096"),
        (shorter, "both know the same tokens, but the target encodes 'def f"),
    ):
        with pytest.raises(ValueError, match=complaint):
            check_tokenizers(tokenizer(), changed(copy, edit))


def test_a_longer_tokenizer_and_another_end_of_text_are_told_apart():
    longer = tokenizer()
    longer.add_tokens(["<|more|>"])
    with pytest.raises(ValueError, match=r"4,096 .* the draft 4,097; '<\|more\|>', token 4096, "):
        check_tokenizers(tokenizer(), longer)
    ended = tokenizer(eos_token=tokenizer().convert_ids_to_tokens(5))
    with pytest.raises(ValueError, match="eos_token_id is 0 to the target and 5 to the middle"):
        check_tokenizers(tokenizer(), ended, "middle")


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


def swapped(said):
    said["model"]["vocab"] |= {"<5000>": 5001, "<5001>": 5000}


def test_tokens_above_a_hole_are_compared_too(copy):
    one = changed(copy, holed)
    assert len(one) == 4096 and max(one.get_vocab().values()) == 5001
    assert check_tokenizers(one, load_tokenizer(copy)) is None
    other = changed(copy, swapped)
    with pytest.raises(ValueError, match=r"5000 is '<5000>' .* and '<5001>' to .*; 2 of 4,096"):
        check_tokenizers(one, other)


def test_a_hole_that_only_one_tokenizer_has_is_told(copy):
    with pytest.raises(ValueError, match=r"4,096; '.+', token 3000, .* only the target knows"):
        check_tokenizers(tokenizer(), changed(copy, holed))


def test_a_tokenizer_that_lies_elsewhere_counts_for_models_that_have_none(copy, tmp_path):
    models = [without_tokenizer(llama(tmp_path / name)) for name in ("target", "draft")]
    ladder = load_ladder(*models, tokenizer=copy, device="cpu")
    assert ladder.encode(TEXT) == tuple(tokenizer().encode(TEXT)) and ladder.katz is None
