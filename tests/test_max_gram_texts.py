"""Max-Gram copies what it should, whatever was asked before: against a plain search on 10,000
random texts.
"""

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from specdec_lib.core.chance import Chance
from specdec_lib.core.context import Context
from specdec_lib.drafts import suffixes
from specdec_lib.drafts.max_gram import ORIGINS, MaxGram
from specdec_lib.drafts.suffixes import Automaton, SuffixIndex

PROMPT, GENERATION, FILLED = ORIGINS
TEXTS, CHUNKS = 10_000, 20
SETTINGS = (
    *({}, {"window": 1}, {"window": 3}, {"window": 5, "least": 2}),
    *({"least": 3}, {"window": 4, "least": 4}),
)
Guesses = tuple[tuple[int, ...], tuple[str, ...]]  # tokens, and where each came from


def searched(
    context: Context, window: int | None = None, least: int = 1, *, latest=False, straddling=False
) -> tuple[str, tuple]:
    """Where the longest suffix stood first and what follows it there, by looking at every place;
    two ways of doing it wrong.
    """
    text, limit = context.tokens, window or len(context)
    given = context.prompt if context.source is None else context.source
    before = given + context.generated if straddling else given
    for origin, region in ((PROMPT, before), (GENERATION, context.generated)):
        longest, start = least - 1, None
        for end in range(1, len(region)):
            same = 0
            while same < min(end, len(text), limit) and region[end - 1 - same] == text[-1 - same]:
                same += 1
            if same > longest or (latest and same == longest and start is not None):
                longest, start = same, end
        if start is not None:
            return origin, region[start:]
    return "", ()


def expected(context: Context, draft: MaxGram, **wrong: bool) -> Guesses:
    """The guesses of a draft and their origins."""
    origin, copied = searched(context, draft.window, draft.least, **wrong)
    tokens = list(copied[: draft.length])
    origins = [origin] * len(tokens)
    while draft.bigrams is not None and len(tokens) < draft.length:
        token = int(draft.bigrams[(*context.tokens, *tokens)[-1]])
        if token < 0:
            break
        tokens.append(token)
        origins.append(FILLED)
    return tuple(tokens), tuple(origins)


def guessed(draft: MaxGram, context: Context) -> Guesses:
    tree = draft.propose(context, Chance(0))
    return tree.tokens[1:], tree.sources[1:]


def drawn(random: Random, tokens: int, vocabulary: int) -> list[int]:
    """A text of at most so many tokens that repeats itself now and then."""
    text: list[int] = []
    while len(text) < tokens:
        if text and random.random() < 0.1:
            start = random.randrange(len(text))
            text += text[start : start + random.randint(1, 12)]
        else:
            text.append(random.randrange(vocabulary))
    return text[:tokens]


def asked(random: Random, vocabulary: int) -> Iterator[Context]:
    """One text of 1 to 40 given and 0 to 40 generated tokens, as callers may ask about it: growing,
    going back, branching, elsewhere.
    """

    def some(least: int, most: int) -> list[int]:
        return drawn(random, random.randint(least, most), vocabulary)

    source = tuple(some(0, 40)) if random.random() < 0.25 else None
    context, other = Context.of(some(1, 40), source), Context.of(some(1, 40))
    text, generated = some(len(context), len(context) + 40), 0
    yield context
    while generated < len(text) - len(context):
        generated += random.randint(1, 30)
        now = context.extended(text[len(context) :][:generated])
        yield now
        back = now.generated[: random.randint(0, len(now.generated))]
        match random.randrange(5):
            case 0:
                yield context.extended(back)
            case 1:
                yield now.extended(some(1, 6))
            case 2:
                yield context.extended((*back, *some(3, 3)))
            case 3:
                other = other.extended(some(0, 5))
                yield other


def chunk(number: int) -> Iterator[tuple[MaxGram, Context]]:
    """Questions about 1 of 20 parts of the texts, to drafts that all share one index."""
    random, index = Random(number), SuffixIndex()
    for _ in range(TEXTS // CHUNKS):
        vocabulary = random.randint(1, 5)
        table = np.array([random.randrange(-1, vocabulary) for _ in range(vocabulary)])
        bigrams, length = random.choice([None, table]), random.randint(1, 12)
        draft = MaxGram(bigrams, length, index=index, **random.choice(SETTINGS))
        other = replace(draft, length=random.randint(1, 12), window=None, least=1)
        for context in asked(random, vocabulary):
            yield random.choice((draft, other)), context


PARTS = [(number, suffixes.LOOSE) for number in range(CHUNKS)]
PARTS += [(number, 2) for number in range(0, CHUNKS, 4)]


@pytest.mark.parametrize(("number", "loose"), PARTS)
def test_the_index_finds_what_a_plain_search_finds(number, loose, monkeypatch, unchecked):
    monkeypatch.setattr(suffixes, "LOOSE", loose)
    for draft, context in chunk(number):
        assert guessed(draft, context) == expected(context, draft), (draft, context)


@pytest.mark.parametrize("wrong", ["latest", "straddling"])
def test_the_texts_tell_a_wrong_search_from_a_right_one(wrong):
    answers = [
        guessed(draft, context) == expected(context, draft, **{wrong: True})
        for draft, context in chunk(0)
    ]
    assert sum(answers) < 0.9 * len(answers)


def test_the_texts_catch_an_index_that_does_not_go_back(monkeypatch):
    monkeypatch.setattr(Automaton, "drop", lambda self, tokens: None)
    assert any(guessed(draft, context) != expected(context, draft) for draft, context in chunk(0))


def test_the_texts_have_matches_of_all_origins_and_none():
    found = (guessed(draft, context)[1][:1] for draft, context in chunk(1))
    assert {*found} == {(), *((origin,) for origin in ORIGINS)}


REPEATS = {
    "one token": [0] * 700,
    "two in turn": [0, 1] * 350,
    "a phrase": [3, 1, 4, 1, 5, 9, 2, 6] * 88,
    "one token, then others": [0] * 500 + [1, 0, 0, 2] * 50,
    "all different": list(range(700)),
}


@pytest.mark.parametrize("text", REPEATS.values(), ids=REPEATS)
def test_texts_that_repeat_themselves_are_no_exception(text):
    draft = MaxGram(None, 5)
    for size in (350, 351, 360, 358, 500, 640, 430, 580, 700, 690, 699):
        for setting in SETTINGS[:4]:
            context = Context(tuple(text[:size]), 300)
            assert guessed(replace(draft, **setting), context) == expected(
                context, replace(draft, **setting)
            )


def test_more_contexts_in_turn_than_are_remembered_are_answered_alike():
    random, draft = Random(3), MaxGram()
    contexts = [Context.of(drawn(random, 30, 3)) for _ in range(suffixes.REMEMBERED + 3)]
    for _ in range(60):
        at = random.randrange(len(contexts))
        contexts[at] = contexts[at].extended(drawn(random, 2, 3))
        assert guessed(draft, contexts[at]) == expected(contexts[at], draft)


def test_what_was_given_is_part_of_the_question():
    draft, tokens = MaxGram(None, 3), (1, 2, 1, 3, 1, 2, 1)
    for given in (7, 2, 5, 1, 4):
        for source in (None, (5, 1, 4), (), (2, 1, 6, 7)):
            context = Context(tokens, given, source)
            assert guessed(draft, context) == expected(context, draft)


def test_forgetting_never_changes_a_tree():
    draft = MaxGram(np.array([1, 2, -1]))
    for context in asked(Random(5), 3):
        before = guessed(draft, context)
        draft.index.forget()
        assert guessed(draft, context) == guessed(MaxGram(draft.bigrams), context) == before


def test_equal_tokens_need_not_be_the_same_objects():
    draft, text = MaxGram(), [1000 + token for token in drawn(Random(4), 300, 4)]
    for size in range(100, 300, 7):
        context = Context(tuple(int(str(token)) for token in text[:size]), 80)
        assert guessed(draft, context) == expected(context, draft)


def test_an_interrupt_leaves_nothing_half_read(monkeypatch):
    draft, context = MaxGram(), Context(tuple(drawn(Random(6), 60, 3)), 20)
    guessed(draft, Context(context.tokens[:30], 20))
    whole = Automaton.extend

    def interrupted(self: Automaton, tokens: tuple[int, ...]) -> None:
        whole(self, tokens[:7])
        raise KeyboardInterrupt

    monkeypatch.setattr(Automaton, "extend", interrupted)
    with pytest.raises(KeyboardInterrupt):
        guessed(draft, context)
    monkeypatch.undo()
    assert guessed(draft, context) == expected(context, draft)
