"""What no context or memory can hold, and what is no token or no text, is refused at once."""

import json
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specdec_lib.core.files import checked_card
from specdec_lib.core.tree import Shape
from specdec_lib.core.tree.shape import MOST_IN_TREE
from specdec_lib.drafts.max_gram import MaxGram
from specdec_lib.drafts.ngram import NgramDraft
from specdec_lib.drafts.staged import StagedChain
from specdec_lib.drafts.trees.growing import ChainDraft, TreeDraft
from specdec_lib.workload import Prompt, load_prompts

DEEP = "[" * 200_000
HALF = "half \ud800 of a character"


def makers(ladder):
    """Everything that takes a number of guesses, as functions of it."""
    return {
        "chain": Shape.chain,
        "chains": lambda size: Shape.chains(size, 2),
        "long chains": lambda size: Shape.chains(2, size),
        "full": lambda size: Shape.full(size, 2),
        "deep": lambda size: Shape.full(2, size),
        "ChainDraft": partial(ChainDraft, ladder.draft),
        "width": lambda size: TreeDraft(ladder.draft, widths=(size, 1)),
        "widths": lambda size: TreeDraft(ladder.draft, widths=(10,) * min(size, 20)),
        "budget": lambda size: TreeDraft(ladder.draft, budget=size),
        "depth": lambda size: TreeDraft(ladder.draft, budget=4, depth=size),
        "table's width": lambda size: NgramDraft(ladder.katz, widths=(size,)),
        "table's budget": lambda size: NgramDraft(ladder.katz, budget=size),
        "table's depth": lambda size: NgramDraft(ladder.katz, budget=4, depth=size),
        "Max-Gram": lambda size: MaxGram(length=size),
        "StagedChain": partial(StagedChain, ladder.draft, MaxGram()),
    }


@settings(max_examples=60, deadline=5000)
@given(size=st.integers(MOST_IN_TREE + 1, 10**30))
def test_more_guesses_than_a_tree_holds_are_refused_at_once(ladder, size):
    for name, make in makers(ladder).items():
        make(3)  # which is allowed
        with pytest.raises(ValueError, match=r" 4,096( guesses| or None)?, got ") as refused:
            make(size)
        assert "\n" not in str(refused.value), name


TOO_LONG = json.dumps({"text": [[1] * 10_000]})


@pytest.mark.parametrize("line", [DEEP, '{"text": "x", "name": "\\ud800"}', TOO_LONG])
def test_json_that_is_too_deep_or_no_text_is_refused_in_short(tmp_path, line):
    for name in ("mine.jsonl", "card.json"):
        (tmp_path / name).write_text(line)
    with pytest.raises(ValueError, match=r"jsonl.*(too deep|surrogates|valid string)") as refused:
        load_prompts(tmp_path / "mine.jsonl")
    assert len(str(refused.value)) < 400
    with pytest.raises(ValueError, match=r"card\.json is damaged"):
        checked_card(tmp_path, ())


def test_half_a_character_has_no_tokens(ladder):
    for text in (HALF, Prompt("one", HALF, "own", "held-out", "here")):
        with pytest.raises(ValueError, match="position 5: surrogates not allowed"):
            ladder.encode(text)
    assert ladder.encode("whole \U0001f642")
