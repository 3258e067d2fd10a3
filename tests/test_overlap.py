"""A prompt in the text is found, whatever its case and signs; packages that have it are counted."""

import re
from collections import defaultdict

from specdec_lib.suite.distil.overlap import packages_with, sequences, shared_sequences
from specdec_lib.suite.distil.passages import Piece
from specdec_lib.suite.distil.places import TEXT
from specdec_lib.suite.distil.shards import Conversation, list_shards, read_shard
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


def test_the_card_of_the_text_lists_the_requests_that_stand_twice():
    requests = defaultdict(list)
    whole = defaultdict(list)
    for path in list_shards(TEXT):
        for number, one in enumerate(read_shard(path)):
            requests[one.ids[: one.start]].append((path.stem, number))
            whole[one.ids].append((path.stem, number))
    repeated = [places for places in requests.values() if len(places) > 1]
    older = sorted(place for places in repeated for place in places if place[0] <= "005")
    card = (TEXT / "README.md").read_text(encoding="utf-8")
    listed = card.partition("in 000–013: ")[2].partition(". In all")[0]
    assert older == [
        (shard, int(number))
        for shard, numbers in re.findall(r"(\d{3}): ([\d, ]+)", listed)
        for number in numbers.split(", ")
    ]
    copies = [places for places in whole.values() if len(places) > 1]
    said = f"{len(repeated)} requests stand more\nthan once, and {len(copies)} whole conversations"
    assert said in card and [[("001", 2481), ("006", 2477)]] == [
        places for places in copies if places[0][0] <= "005"
    ]
