"""Max-Gram on small cases that a person can check, its table and its bad input; on many texts:
test_max_gram_texts.py.
"""

import copy
import pickle
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from specdec_lib.core.chance import Chance
from specdec_lib.core.context import Context
from specdec_lib.drafts.max_gram import ORIGINS, MaxGram
from specdec_lib.drafts.suffixes import Automaton
from specdec_lib.models.katz.model import Katz

PROMPT, GENERATION, FILLED = ORIGINS

BIGRAMS = np.array([1, 2, -1])
TWICE, THRICE = [PROMPT] * 2, [PROMPT] * 3
JOINT = (0, 7, 2), (3, 6, 5, 2, 3, 9, 7, 2, 3)
CASES = {  # prompt, generated, maximal length, bigram table; tokens, sources
    "the longest match wins": ((5, 1, 2, 8, 1, 3, 2, 9, 3, 2), (), 10, None, (9, 3, 2), THRICE),
    "the earliest of equal matches": ((0, 2, 5, 1, 2, 6, 3, 2), (), 2, None, (5, 1), TWICE),
    "the prompt before the generation": ((4, 9, 1), (4, 8, 4, 8, 4), 10, None, (9, 1), TWICE),
    "else the generation": ((1, 1, 1), (4, 8, 4), 10, None, (8, 4), [GENERATION] * 2),
    "the ending may reach into the prompt": ((1, 2, 5, 3, 2, 6, 3), (2,), 10, None, (6, 3), TWICE),
    "a match does not straddle the joint": (*JOINT, 4, None, (9, 7, 2, 3), [GENERATION] * 4),
    "copies stop at the region's end": ((1, 4, 5), (4,), 10, None, (5,), [PROMPT]),
    "a match at the region's end is none": ((1, 4), (5, 4), 10, None, (), []),
    "the prompt does not match itself": ((3, 4, 5), (), 10, None, (), []),
    "nor does the generation": ((3,), (4, 5), 10, None, (), []),
    "a loop copies what little follows": ((9,), (4, 4, 4, 4), 10, None, (4,), [GENERATION]),
    "bigrams until there is none": ((0,), (), 10, BIGRAMS, (1, 2), [FILLED] * 2),
    "bigrams after copies": ((1, 0, 1), (), 10, BIGRAMS, (0, 1, 2), [PROMPT, PROMPT, FILLED]),
    "a token never continued": ((2,), (), 10, BIGRAMS, (), []),
    "never longer": ((1, 2, 3, 4, 5, 6, 1), (), 3, None, (2, 3, 4), THRICE),
    "never longer with bigrams": ((0,), (), 3, np.array([0]), (0, 0, 0), [FILLED] * 3),
}


@pytest.mark.parametrize(
    ("prompt", "generated", "length", "bigrams", "tokens", "sources"), CASES.values(), ids=CASES
)
def test_max_gram(prompt, generated, length, bigrams, tokens, sources):
    tree = MaxGram(bigrams, length).propose(Context.of(prompt).extended(generated), Chance(0))
    assert (tree.tokens[1:], list(tree.sources[1:])) == (tokens, sources)
    assert tree.parents == tuple(range(-1, len(tokens)))
    assert tree.scores == pytest.approx([0.75**depth for depth in range(len(tree))])


@pytest.mark.parametrize(
    ("context", "tokens", "origin"),
    [
        (Context((0, 7, 0, 7), 1, source=(5, 7, 8, 9)), (8, 9), PROMPT),
        # no suffix is longer than the text
        (Context.of([7], source=(7, 8, 7, 7, 9)), (8, 7, 7, 9), PROMPT),
        (Context((0, 7, 3, 7), 1, source=(5, 6)), (3, 7), GENERATION),
    ],
)
def test_max_gram_searches_the_encoders_tokens_in_place_of_the_prompt(context, tokens, origin):
    tree = MaxGram().propose(context, Chance(0))
    assert (tree.tokens[1:], tree.sources[1:]) == (tokens, (origin,) * len(tokens))


# window, least; tokens, sources of two guesses after 9 3 7 2 3 8 4 · 1 2 3 5 1 2 3 6 1 2 3
WINDOWS = {
    "no limit": (None, 1, (8, 4), PROMPT),
    "a window of 2 sees no difference": (2, 1, (8, 4), PROMPT),
    "a window of 1 takes the earliest 3": (1, 1, (7, 2), PROMPT),
    "three are asked for, and the prompt has two": (None, 3, (5, 1), GENERATION),
    "of exactly three the earliest": (3, 3, (5, 1), GENERATION),
    "four are nowhere": (None, 4, (), ""),
}


@pytest.mark.parametrize(("window", "least", "tokens", "origin"), WINDOWS.values(), ids=WINDOWS)
def test_a_window_and_a_least_length(window, least, tokens, origin):
    context = Context.of([9, 3, 7, 2, 3, 8, 4]).extended([1, 2, 3, 5, 1, 2, 3, 6, 1, 2, 3])
    tree = MaxGram(None, 2, window=window, least=least).propose(context, Chance(0))
    assert (tree.tokens[1:], tree.sources[1:]) == (tokens, (origin,) * len(tokens))


@pytest.mark.parametrize("bigrams,length", [(None, 0), ([0.5], 1), ([1], 1), ([-2], 1), ([[0]], 1)])
def test_max_gram_refuses(bigrams, length):
    with pytest.raises(ValueError, match="got"):
        MaxGram(None if bigrams is None else np.array(bigrams), length)


@pytest.mark.parametrize(("window", "least"), [(0, 1), (-1, 1), (None, 0), (5, 0), (2, 3)])
def test_max_gram_refuses_a_window_or_a_least_length(window, least):
    with pytest.raises(ValueError, match=f"got least={least} and window={window}"):
        MaxGram(window=window, least=least)


@pytest.mark.parametrize("given", [[7], [3], [1, 7, 7]])
def test_max_gram_refuses_a_table_of_another_vocabulary(given):
    with pytest.raises(ValueError, match=f"3 entries, one per .* none for token {given[-1]}"):
        MaxGram(BIGRAMS).propose(Context.of(given), Chance(0))


@pytest.mark.parametrize("seed", range(5))
def test_the_bigrams_of_a_katz_model_are_what_plain_counting_gives(seed):
    streams = [np.random.default_rng(seed + 10 * part).integers(0, 12, 60) for part in range(3)]
    counts = np.zeros((13, 13), int)
    for stream in streams:
        np.add.at(counts, (stream[:-1], stream[1:]), 1)
    table = Katz.fit(streams, 13, 2).bigrams()
    assert (counts[np.arange(12), table[:12]] == counts[:12].max(1)).all()
    MaxGram(table)


@pytest.mark.parametrize("seed", range(30))
def test_dropping_a_token_undoes_its_coming(seed):
    random = Random(seed)
    text = [random.randrange(1 + seed % 5) for _ in range(60)]
    automata = [Automaton(text[:size]) for size in range(len(text) + 1)]
    walked, size = Automaton(), 0
    for _ in range(200):
        if size and (size == len(text) or random.random() < 0.4):
            fewer = random.randint(1, min(size, 5))
            walked.drop(text[size - fewer : size])
            size -= fewer
        else:
            more = random.randint(1, 5)
            walked.extend(text[size : size + more])
            size = min(size + more, len(text))
        assert all(
            getattr(walked, name) == getattr(automata[size], name) for name in Automaton.__slots__
        )
        assert len(walked.steps) <= max(1, 2 * size)


def test_copies_made_by_replace_share_the_index_and_other_copies_start_empty():
    draft, context = MaxGram(np.array([1, 0]), 3), Context.of([0, 1, 0])
    tree = draft.propose(context, Chance(0))
    assert replace(draft, length=7).index is draft.index is not MaxGram().index
    for fresh in (copy.deepcopy(draft), pickle.loads(pickle.dumps(draft))):
        assert fresh.index is not draft.index and fresh.propose(context, Chance(0)) == tree
