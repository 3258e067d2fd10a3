"""The default target where `specdec setup` has prepared it: its tokens are those of llama.cpp.

`target_tokens.json` holds what llama.cpp (node-llama-cpp 3.22.1) makes of each text with the same
GGUF file.
"""

import json
from pathlib import Path

import pytest
from tokenizers import Tokenizer
from tokenizers.pre_tokenizers import ByteLevel

from specdec_lib.core.files import cache_folder

TARGET = cache_folder() / "smollm2"
GOLDEN = json.loads((Path(__file__).parent / "target_tokens.json").read_text(encoding="utf-8"))

pytestmark = pytest.mark.skipif(
    not (TARGET / "source.json").is_file(), reason="the target is not prepared: specdec setup"
)


def read_tokenizer() -> Tokenizer:
    return Tokenizer.from_file(str(TARGET / "tokenizer.json"))


def test_tokens_are_those_of_llama_cpp() -> None:
    tokenizer = read_tokenizer()
    assert [tokenizer.encode(one["text"]).ids for one in GOLDEN] == [one["ids"] for one in GOLDEN]


def test_byte_level_pieces_alone_make_other_tokens_of_spaces_before_digits() -> None:
    tokenizer = read_tokenizer()
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    differ = [one["text"] for one in GOLDEN if tokenizer.encode(one["text"]).ids != one["ids"]]
    assert "    10" in differ and "x =\n    10 + 345" in differ
