"""A prompt in the text is found, whatever its case and signs; packages that have it are counted."""

from specdec_lib.suite.distil.overlap import packages_with, sequences, shared_sequences
from specdec_lib.suite.distil.passages import Piece
from specdec_lib.suite.distil.shards import Conversation
from tests.test_distil import tokenizer

PROMPT = "Who was the first person to walk across the wide river?"


def conversation(text: str) -> Conversation:
    ids = tokenizer()(text).input_ids
    return Conversation(tuple(ids), ((len(ids) - 1, len(ids)),), True, True, "chat")


def test_a_prompt_in_the_text_is_found_and_seven_words_of_it_are_not():
    whole = conversation("I ask: WHO was the first person to walk, and why?")
    part = conversation("the first person to walk across the")
    assert not shared_sequences([whole, part], tokenizer(), [PROMPT])
    copied = conversation(f"Now: {PROMPT.upper()}")
    found = shared_sequences([copied, part], tokenizer(), [PROMPT])
    assert set(found) == set(sequences(PROMPT)) and set(found.values()) == {1}


def test_packages_that_have_a_sequence_are_counted_once_each():
    sequence = next(sequences(PROMPT))
    pieces = [Piece("prose", PROMPT, "", f"{name} 1", "MIT", "") for name in "aabc"]
    assert packages_with([sequence, "another one"], pieces) == {sequence: 3}
