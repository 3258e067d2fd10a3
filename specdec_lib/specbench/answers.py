"""The lines of a result file: what one method answered to each question, and how long that took."""

from dataclasses import dataclass
from pathlib import Path

from specdec_lib.workload import entries, field, lines
from specdec_lib.workload.jsonl import Line, checked_object

FAILED = "ERROR"  # the published script's answer where generation raised; its tokens and seconds are those of the turn before


@dataclass(frozen=True)
class Choice:
    """One answer, turn by turn.

    new_tokens        per turn
    seconds           per turn, the reading of the prompt included
    accept_lengths    per round, all turns in one; none where the file has none: see `convention`
    """

    index: int
    turns: tuple[str, ...]
    new_tokens: tuple[int, ...]
    seconds: tuple[float, ...]
    accept_lengths: tuple[int, ...] = ()


@dataclass(frozen=True)
class Answer:
    """All answers to one question: one, unless more choices were asked for."""

    question: int | str
    category: str
    model: str
    choices: tuple[Choice, ...]

    @property
    def tokens(self) -> int:
        """New tokens of all choices and turns."""
        return sum(sum(choice.new_tokens) for choice in self.choices)

    @property
    def seconds(self) -> float:
        """Of all choices and turns."""
        return sum(sum(choice.seconds) for choice in self.choices)

    @property
    def accept_lengths(self) -> tuple[int, ...]:
        """Of all choices."""
        return tuple(length for choice in self.choices for length in choice.accept_lengths)

    @property
    def failed(self) -> bool:
        """Whether a turn holds no answer."""
        return any(text == FAILED for choice in self.choices for text in choice.turns)


def read(path: str | Path) -> list[Answer]:
    """The answers of a file, in its order.

    Raises ValueError, naming the line, if one is not JSON, lacks a field, or holds a wrong type, lists of different lengths, a time or count that
    cannot be, or a question that was there before: the published script keeps the last of those, so a run begun twice would be scored in part.
    """
    found: dict[int | str, tuple[str, Answer]] = {}
    for where, line in lines(Path(path)):
        question = field(where, line, "question_id", (int, str))
        if question in found:
            raise ValueError(f"{where}: question {question} was there before ({found[question][0].rpartition(', ')[2]}); take one of both lines away")
        choices = entries(where, line, "choices", dict)
        made = tuple(_choice(f"{where}, choice {number}", number, checked_object(where, one)) for number, one in enumerate(choices))
        found[question] = where, Answer(question, field(where, line, "category"), field(where, line, "model_id"), made)
    return [answer for _, answer in found.values()]


def _choice(where: str, number: int, line: Line) -> Choice:
    turns = entries(where, line, "turns", str, filled=False)
    tokens = entries(where, line, "new_tokens", int)
    seconds = entries(where, line, "wall_time", float)
    accepted = entries(where, line, "accept_lengths", int, least=0) if "accept_lengths" in line else []
    if not len(turns) == len(tokens) == len(seconds):
        raise ValueError(f"{where}: each turn has its new_tokens and wall_time, got {len(turns)} turns, {len(tokens)} and {len(seconds)}")
    if min(seconds) <= 0 or min(tokens) < 0 or min(accepted, default=0) < 0:
        raise ValueError(f"{where}: times are above 0 and counts at least 0, got {min(seconds)} s, {min(tokens)} and {min(accepted, default=0)}")
    index = field(where, line, "index", int) if "index" in line else number
    return Choice(index, tuple(turns), tuple(tokens), tuple(map(float, seconds)), tuple(accepted))
