"""The rounds of a setting along a recorded text: under `look_up` it is the target's own, whatever
is proposed; a round accepts the proposals with which the text goes on, and emits its next token.

Tokens per round of a cascade are exact, up to rounding at near-ties. Calls of drafters are nearly
so: after a wrong guess they are taken to choose what they choose after the right one.
"""

import functools
import math
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from specdec_lib.drafts.cascade import converted
from specdec_lib.measure.cascade.record import (
    LONGEST_COPY,
    MAX_GRAM,
    TARGET,
    CascadeSetting,
    Recording,
)


class RoundAlong(NamedTuple):
    """One round along a text: after the accepted proposals one more token, but where it ends."""

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
    """Counts of a setting's rounds: tokens per round, passes per model, the target's first."""

    emitted: tuple[int, ...]
    passes: dict[str, int]
    tried: int
    accepted: int


class Guess(NamedTuple):
    """A token that is handed up, and what lenience compares: at temperature 0 its probability by
    its drafter, with noise 1; ∞ for an exempt copy.
    """

    token: int
    offered: float


Handed = tuple[list[Guess], Counter[str]]  # what a level hands up, and passes by drafter


@functools.lru_cache(maxsize=2**14)
def replay_cascade(recording: Recording, setting: CascadeSetting) -> CascadeRounds:
    """The rounds that `decode` would play with the setting's cascade under `look_up`, without
    running a model.  Raises ValueError if a drafter was not recorded, or this is no cascade.
    """
    _check(recording, setting)
    levels = _Levels(recording, setting, {})
    text = recording.tokens
    passes = Counter()

    def propose(start: int) -> tuple[int, int]:
        guesses, spent = levels.level(0, start)
        passes.update(spent)
        right = [guess.token == token for guess, token in zip(guesses, text[start:], strict=False)]
        return [*right, False].index(False), len(guesses)

    rounds = list(rounds_along(len(text), propose))
    drafted = {name: passes[name] for name in setting.drafters if name != MAX_GRAM}
    return CascadeRounds(
        tuple(one.emitted for one in rounds),
        {TARGET: len(rounds)} | drafted,
        sum(min(one.emitted, one.proposal) for one in rounds),
        sum(one.accepted for one in rounds),
    )


def _check(recording: Recording, setting: CascadeSetting) -> None:
    drafters = setting.drafters
    matrix = converted(setting.matrix, "increments", "increments")
    unknown = {*drafters} - {*recording.choices, MAX_GRAM}
    if len(matrix) != len(drafters) or unknown or MAX_GRAM in drafters[:-1]:
        raise ValueError(
            f"a setting has a row per drafter of {', '.join(recording.choices)}, {MAX_GRAM} (last);"
            f" got {len(matrix)} rows and {', '.join(drafters)}"
        )
    if drafters[-1] == MAX_GRAM and max(row[-1] for row in matrix) > LONGEST_COPY:
        raise ValueError(f"{MAX_GRAM} is recorded for {LONGEST_COPY} tokens at most; K is {matrix}")
    if not any(matrix[0]):
        raise ValueError(f"an empty cascade proposes nothing: the first row of K is {matrix[0]}")


class _Levels(NamedTuple):
    """One setting on one text; `known` are the reviews so far, by column and place."""

    recording: Recording
    setting: CascadeSetting
    known: dict[tuple[int, int], Handed]

    def level(self, row: int, start: int) -> Handed:
        """What the drafters of a row hand to its reviewer from a place of the text on."""
        guesses: list[Guess] = []
        passes = Counter()
        wanted = 0
        for column, length in enumerate(self.setting.matrix[row]):
            wanted += length
            while len(guesses) < wanted:
                handed, spent = self._part(column, start + len(guesses), length)
                if not handed:
                    break
                guesses += handed
                passes.update(spent)
        return guesses, passes

    def _part(self, column: int, start: int, length: int) -> Handed:
        """What one drafter hands up: reviewed guesses, or the last one's own chain."""
        name = self.setting.drafters[column]
        if column < len(self.setting.matrix) - 1:
            if (column, start) not in self.known:
                self.known[column, start] = self._reviewed(column, start)
            return self.known[column, start]
        if name == MAX_GRAM:
            offered = math.inf if self.setting.exempt_max_gram else 1.0
            copies = self.recording.copies[self._place(start)][:length]
            return [Guess(token, offered) for token in copies], Counter()
        return [self._own(name, start + place) for place in range(length)], Counter({name: length})

    def _reviewed(self, column: int, start: int) -> Handed:
        """What a model makes of the level below it, in one pass."""
        found = []
        name = self.setting.drafters[column]
        lenience = self.setting.lenience
        guesses, passes = self.level(column + 1, start)
        passes[name] += 1
        greedy = self.recording.sampler.temperature == 0
        for place, guess in enumerate(guesses, start):
            own = self._own(name, place)
            worth = self.recording.choices[name].worth[self._place(place)].get(guess.token, 0.0)
            lenient = lenience > 1 and guess.offered <= lenience * worth
            if guess.token != own.token and not lenient:
                return [*found, own], passes
            found.append(Guess(guess.token, worth if greedy else 1.0))
        return [*found, self._own(name, start + len(guesses))], passes

    def _own(self, name: str, place: int) -> Guess:
        model = self.recording.choices[name]
        place = self._place(place)
        return Guess(model.tokens[place], model.worth[place][model.tokens[place]])

    def _place(self, place: int) -> int:
        """After what was recorded, all is as at its last place; nothing is accepted there."""
        return min(place, len(self.recording.copies) - 1)
