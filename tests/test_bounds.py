"""What no context or memory can hold, and what is no token or no text, is refused at once."""

import json
import zipfile
from functools import partial

import numpy as np
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
from specdec_lib.models.katz import Katz
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


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("size", [2.5, float("inf"), float("nan"), "3"])
def test_a_shape_is_made_of_whole_numbers(size):
    with pytest.raises(ValueError, match=r"length of chain must be .* from 0 to 4,096, got "):
        Shape.chain(size)


@pytest.mark.parametrize("line", [DEEP, f'{{"text": {DEEP}}}', '{"text": "x", "name": "\\ud800"}'])
def test_json_that_is_too_deep_or_no_text_is_refused(tmp_path, line):
    for name in ("mine.jsonl", "mine.json", "card.json"):
        (tmp_path / name).write_text(line)
    for name in ("mine.jsonl", "mine.json"):
        with pytest.raises(ValueError, match=rf"{name}.*(nested too deep|surrogates)") as refused:
            load_prompts(tmp_path / name)
        assert len(str(refused.value)) < 400
    with pytest.raises(ValueError, match=r"card\.json is damaged"):
        checked_card(tmp_path, ())


def test_a_wrong_value_is_quoted_in_short(tmp_path):
    (tmp_path / "mine.jsonl").write_text(json.dumps({"text": [[1] * 10_000]}))
    with pytest.raises(ValueError, match="valid string") as refused:
        load_prompts(tmp_path / "mine.jsonl")
    assert len(str(refused.value)) < 400


def test_half_a_character_has_no_tokens(ladder):
    for text in (HALF, Prompt("one", HALF, "own", "held-out", "here")):
        with pytest.raises(ValueError, match=r"lone surrogate '\\ud800' at 5"):
            ladder.encode(text)
    assert ladder.encode("whole \U0001f642")


@pytest.mark.parametrize("vocabulary,order", [(10**9, 2), (10**12, 3), (10, 10**9)])
def test_a_table_that_no_memory_holds_is_not_counted(vocabulary, order):
    assert Katz.fit([np.array([1, 2, 3])], 10, 64).order == 64
    with pytest.raises(ValueError, match=r"at most 16,777,216 tokens and an order of 64, got "):
        Katz.fit([np.array([1, 2, 3])], vocabulary, order)


@pytest.mark.parametrize("tokens,complaint", [(2**25, "33,554,432 tokens"), (2**28, "unpacks to")])
def test_a_small_file_of_a_huge_table_is_refused_before_it_is_unpacked(tmp_path, tokens, complaint):
    Katz.fit([np.array([1, 2, 3])], 10).save(tmp_path / "small.npz")
    assert Katz.load(tmp_path / "small.npz").vocabulary == 10
    path = tmp_path / "huge.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, array in {"order": np.array(1), "taken": np.zeros((0, 7))}.items():
            with packed.open(f"{name}.npy", "w") as file:
                np.lib.format.write_array(file, array)
        with packed.open("counts_0.npy", "w", force_zip64=True) as file:
            shape = {"descr": "|u1", "fortran_order": False, "shape": (1, tokens)}
            np.lib.format.write_array_header_1_0(file, shape)
            for _ in range(tokens >> 20):
                file.write(bytes(1 << 20))
    assert path.stat().st_size < 10**6
    with pytest.raises(ValueError, match=complaint):
        Katz.load(path)


def test_more_continuations_than_there_are_tokens_are_all_of_them(ladder):
    tokens, _ = ladder.katz.top((1, 2), 10**9)
    assert tokens == ladder.katz.top((1, 2), ladder.katz.vocabulary)[0]
