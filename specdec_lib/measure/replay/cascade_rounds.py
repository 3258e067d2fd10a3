"""The rounds of a setting along a recorded text: under `look_up` it is the target's own, whatever
is proposed; a round accepts the proposals with which the text goes on, and emits its next token.

Here those of a cascade along a text for which its drafters' choices were recorded.
Tokens per round are exact, up to rounding at near-ties. Calls of drafters are nearly so: after a
wrong guess the drafters are taken to choose what they choose after the right one, which changes how
many calls the rest of that round takes, and nothing else.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, NamedTuple

from specdec_lib.drafts.cascade import converted
from specdec_lib.measure.replay.recording import (
    LONGEST_COPY,
    MAX_GRAM,
    TARGET,
    CascadeSetting,
    Choices,
    Recording,
)


class RoundAlong(NamedTuple):
    """One round of a setting along a text.

    start       the place of the text's token that the first proposal stands for
    accepted    how many proposals the text confirms
    emitted     tokens: one more than was accepted, but where the text ends
    """

    start: int
    accepted: int
    emitted: int
    proposal: Any


def rounds_along(length: int, propose: Callable[[int], tuple[int, Any]]) -> Iterator[RoundAlong]:
    """The rounds along a text; `propose` gives how many proposals are accepted, and which."""
    start = 0
    while start < length:
        accepted, proposal = propose(start)
        yield RoundAlong(start, accepted, min(accepted + 1, length - start), proposal)
        start += accepted + 1


class CascadeRounds(NamedTuple):
    """Counts of a setting's rounds on one text.

    emitted    tokens per round
    passes     per model that drafts, in order of the setting's drafters
    """

    emitted: tuple[int, ...]
    passes: dict[str, int]
    tried: int
    accepted: int

    @classmethod
    def together(cls, rounds: Sequence["CascadeRounds"]) -> "CascadeRounds":
        """The rounds of several texts as those of one."""
        emitted = tuple(count for one in rounds for count in one.emitted)
        passes = {name: sum(one.passes[name] for one in rounds) for name in rounds[0].passes}
        tried, accepted = (sum(one[place] for one in rounds) for place in (2, 3))
        return cls(emitted, passes, tried, accepted)

    @property
    def every_pass(self) -> dict[str, int]:
        """The passes of every model that ran, the target's first."""
        return {TARGET: len(self.emitted)} | self.passes


class Guess(NamedTuple):
    """A token that is handed up, and its probability by its drafter."""

    token: int
    offered: float
    unreviewed_copy: bool


class Handed(NamedTuple):
    """The guesses that a level hands up, and the passes per drafter that they took."""

    guesses: tuple[Guess, ...]
    passes: tuple[int, ...]


def replay_cascade(recording: Recording, setting: CascadeSetting) -> CascadeRounds:
    """The rounds that `decode` would play with the setting's cascade under `look_up`, without
    running a model.

    Raises ValueError if a drafter was not recorded, Max-Gram stands before a model, the matrix is
    not one of so many drafters or proposes nothing, or lenience is below 1.
    """
    levels, text = _Levels.of(recording, setting), recording.tokens

    def propose(start: int) -> tuple[int, Handed]:
        handed = levels.level(0, start)
        guessed = zip(handed.guesses, text[start:], strict=False)
        return sum(1 for _ in takewhile(lambda both: both[0].token == both[1], guessed)), handed

    rounds = list(rounds_along(len(text), propose))
    passes = [sum(column) for column in zip(*(one.proposal.passes for one in rounds), strict=True)]
    counts = zip(setting.drafters, passes or [0] * len(setting.drafters), strict=True)
    return CascadeRounds(
        tuple(one.emitted for one in rounds),
        {name: count for name, count in counts if name != MAX_GRAM},
        sum(min(one.emitted, len(one.proposal.guesses)) for one in rounds),
        sum(one.accepted for one in rounds),
    )


def _check(recording: Recording, setting: CascadeSetting, matrix: tuple) -> None:
    drafters = setting.drafters
    unknown = [name for name in drafters if name != MAX_GRAM and name not in recording.choices]
    if len(matrix) != len(drafters) or unknown or MAX_GRAM in drafters[:-1]:
        known = ", ".join([*recording.choices, f"{MAX_GRAM} (the last)"])
        got = f"{len(matrix)} rows and {', '.join(drafters)}"
        raise ValueError(f"a setting has a row per drafter of {known}; got {got}")
    if not 1 <= setting.lenience < math.inf:
        raise ValueError(f"lenience is a finite number of at least 1, got {setting.lenience}")
    if drafters[-1] == MAX_GRAM and (most := max(row[-1] for row in matrix)) > LONGEST_COPY:
        recorded = f"{MAX_GRAM} was recorded for up to {LONGEST_COPY} tokens"
        raise ValueError(f"{recorded}, a K matrix wants {most}")
    if not any(matrix[0]):
        raise ValueError(f"an empty cascade proposes nothing: the first row of K is {matrix[0]}")


@dataclass(frozen=True, eq=False)
class _Levels:
    """One setting on one text; of the `models`, one per drafter, Max-Gram is None."""

    recording: Recording
    setting: CascadeSetting
    matrix: tuple[tuple[int, ...], ...]
    models: tuple[Choices | None, ...]
    known: dict[tuple[int, int], Handed]

    @classmethod
    def of(cls, recording: Recording, setting: CascadeSetting) -> "_Levels":
        matrix = converted(setting.matrix, "increments", "increments")
        _check(recording, setting, matrix)
        models = tuple(recording.choices.get(name) for name in setting.drafters)
        # all that a reviewed level depends on
        below = (setting.drafters, matrix[1:], setting.lenience, setting.exempt_max_gram)
        if below not in recording.memory:
            recording.memory.clear()
        return cls(recording, setting, matrix, models, recording.memory.setdefault(below, {}))

    def level(self, row: int, start: int) -> Handed:
        """What the drafters of a row hand to its reviewer from a place of the text on."""
        guesses: list[Guess] = []
        passes, wanted = [0] * len(self.models), 0
        for column, length in enumerate(self.matrix[row]) if row < len(self.matrix) else ():
            wanted += length
            while len(guesses) < wanted:
                handed = self._part(column, start + len(guesses), length)
                if not handed.guesses:
                    break
                guesses += handed.guesses
                passes = [before + more for before, more in zip(passes, handed.passes, strict=True)]
        return Handed(tuple(guesses), tuple(passes))

    def _part(self, column: int, start: int, length: int) -> Handed:
        """What one drafter hands up: reviewed guesses, or the last one's own chain."""
        if column < len(self.models) - 1:
            if (column, start) not in self.known:
                self.known[column, start] = self._reviewed(column, start)
            return self.known[column, start]
        model, none = self.models[column], (0,) * column
        if model is None:
            copies = self.recording.copies[self._place(start)][:length]
            return Handed(tuple(Guess(token, 1.0, True) for token in copies), (*none, 0))
        own = tuple(self._own(model, start + place) for place in range(length))
        return Handed(own, (*none, length))

    def _reviewed(self, column: int, start: int) -> Handed:
        """What a model makes of the level below it, in one pass."""
        model, handed = self.models[column], self.level(column + 1, start)
        passes = tuple(count + (number == column) for number, count in enumerate(handed.passes))
        setting, found = self.setting, []
        for guess in handed.guesses:
            place = start + len(found)
            own = self._own(model, place)
            worth = model.worth[self._place(place)].get(guess.token, 0.0)
            exempt = guess.unreviewed_copy and setting.exempt_max_gram
            offered = guess.offered if self.recording.sampler.temperature == 0 else 1.0
            lenient = setting.lenience > 1 and offered <= setting.lenience * worth and not exempt
            if guess.token != own.token and not lenient:
                return Handed((*found, own), passes)
            found.append(Guess(guess.token, worth, False))
        return Handed((*found, self._own(model, start + len(found))), passes)

    def _own(self, model: Choices, place: int) -> Guess:
        token = model.tokens[self._place(place)]
        return Guess(token, model.worth[self._place(place)][token], False)

    def _place(self, place: int) -> int:
        """After what was recorded, all is as at its last place; nothing is accepted there."""
        return min(place, len(self.recording.copies) - 1)
