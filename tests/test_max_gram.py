"""Max-Gram on small cases, its table and bad input, and against a plain search."""

from collections.abc import Iterator
from random import Random

import numpy as np
import pytest
from fakes import assert_refused

from specdec_lib.core.chance import Chance
from specdec_lib.core.context import Context
from specdec_lib.drafts.max_gram import ORIGINS, MaxGram

PROMPT, GENERATION, FILLED = ORIGINS


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    "call, said",
    [*((lambda one=one: MaxGram(np.array(one)), "got") for one in ([0.5], [1], [-2], [[0]]))],
)
def test_what_is_no_table_is_refused(call, said):
    assert_refused(call, said)


TEXTS, CHUNKS = 10_000, 10
LEAST = (1, 1, 2, 3)
Guesses = tuple[tuple[int, ...], tuple[str, ...]]  # tokens, and where each came from


def searched(
    context: Context, least: int = 1, *, latest=False, straddling=False
) -> tuple[str, tuple]:
    """Where the longest suffix stood first, by looking everywhere; two ways of doing it wrong."""
    text = context.tokens
    given = context.prompt if context.source is None else context.source
    before = given + context.generated if straddling else given
    for origin, region in ((PROMPT, before), (GENERATION, context.generated)):
        longest, start = least - 1, None
        for end in range(1, len(region)):
            same = 0
            while same < min(end, len(text)) and region[end - 1 - same] == text[-1 - same]:
                same += 1
            if same > longest or (latest and same == longest and start is not None):
                longest, start = same, end
        if start is not None:
            return origin, region[start:]
    return "", ()


def expected(context: Context, draft: MaxGram, **wrong: bool) -> Guesses:
    """The guesses of a draft and their origins."""
    origin, copied = searched(context, draft.least, **wrong)
    tokens = list(copied[: draft.length])
    origins = (origin,) * len(tokens)
    while draft.bigrams is not None and len(tokens) < draft.length:
        token = int(draft.bigrams[(*context.tokens, *tokens)[-1]])
        if token < 0:
            break
        tokens.append(token)
    return tuple(tokens), origins + (FILLED,) * (len(tokens) - len(origins))


def guessed(draft: MaxGram, context: Context) -> Guesses:
    tree = draft.propose(context, Chance(0))
    assert tree.parents == tuple(range(-1, tree.guesses))
    assert tree.scores == tuple(0.75**depth for depth in range(len(tree)))
    return tree.tokens[1:], tree.sources[1:]


def chunk(number: int) -> Iterator[tuple[MaxGram, Context]]:
    """Drafts and contexts of 1 to 40 given and 0 to 40 generated tokens, some with a source."""
    random = Random(number)
    for _ in range(TEXTS // CHUNKS):
        vocabulary = random.randint(1, 5)
        table = np.array([random.randrange(-1, vocabulary) for _ in range(vocabulary)])
        bigrams, length = random.choice([None, table]), random.randint(1, 12)
        text, source = (
            tuple(random.choices(range(vocabulary), k=random.randint(*sizes)))
            for sizes in ((1, 80), (0, 40))
        )
        given = min(random.randint(1, 40), len(text))
        context = Context(text, given, source if random.random() < 0.25 else None)
        yield MaxGram(bigrams, length, least=random.choice(LEAST)), context


@pytest.mark.parametrize("number", range(CHUNKS))
def test_it_copies_what_a_plain_search_finds(number, unchecked):
    for draft, context in chunk(number):
        assert guessed(draft, context) == expected(context, draft), (draft, context)


@pytest.mark.parametrize("wrong", ["latest", "straddling"])
def test_the_texts_tell_a_wrong_search_and_have_matches_of_all_kinds(wrong, unchecked):
    found = [(guessed(*one), expected(*reversed(one), **{wrong: True})) for one in chunk(0)]
    assert sum(one == other for one, other in found) < 0.9 * len(found)
    kinds = {origins[:1] for (_, origins), _ in found}
    assert kinds == {(), *((origin,) for origin in ORIGINS)}


def test_long_texts_and_surrogates_are_no_exception():
    """The last are all different, as in the largest vocabularies."""
    for text in ([0] * 699, [3, 1, 4, 1, 5, 9, 2, 6] * 88, range(0xD700, 0xD700 + 700)):
        draft, context = MaxGram(None, 5), Context(tuple(text), 300)
        assert guessed(draft, context) == expected(context, draft)
