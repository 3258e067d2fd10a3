"""Whether two files hold the same texts, and where they first part."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from specdec_lib.specbench.answers import Answer

SHOWN = 24  # characters on each side


@dataclass(frozen=True)
class Difference:
    """One turn whose texts differ.

    choice, turn    from 0
    place           characters that both begin with
    own, baseline   what follows there, a few characters
    longer          one text is the beginning of the other: both methods said the same and one stopped sooner, as at a limit of tokens
    """

    question: int | str
    choice: int
    turn: int
    place: int
    own: str
    baseline: str
    longer: bool


def differences(own: Sequence[Answer], baseline: Sequence[Answer]) -> list[Difference]:
    """The turns whose texts differ, of questions that both have, in the order of `own`; none where all are the same, failed ones among them.

    Raises ValueError if there is no such question.
    """
    theirs = {answer.question: answer for answer in baseline}
    both = [(answer, theirs[answer.question]) for answer in own if answer.question in theirs]
    if not both:
        raise ValueError(f"no question is in both files: {len(own)} and {len(baseline)} answers")
    return [found for one, other in both for found in _of(one, other)]


def _of(own: Answer, baseline: Answer) -> Iterator[Difference]:
    """Of one question; a choice or turn that the other lacks is an empty text there."""
    for number, (one, other) in enumerate(zip_longest((c.turns for c in own.choices), (c.turns for c in baseline.choices), fillvalue=())):
        for turn, texts in enumerate(zip_longest(one, other, fillvalue="")):
            if texts[0] != texts[1]:
                place = _shared(*texts)
                rest = [text[place : place + SHOWN] for text in texts]
                yield Difference(own.question, number, turn, place, *rest, longer="" in rest and all(texts))


def _shared(one: str, other: str) -> int:
    return next((place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
