"""The rounds of a cascade along a recorded text.

Tokens per round are exact, up to rounding at near-ties. Calls of drafters are nearly so: behind a
wrong guess the drafters are taken to say what they say behind the right one, which changes how many
calls the rest of that round takes, and nothing else.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from specdec_lib.drafts.cascade import converted
from specdec_lib.measure.replay.recording import (
    LONGEST_COPY,
    MAX_GRAM,
    CascadeSetting,
    Choices,
    Recording,
)

if TYPE_CHECKING:
    from pandas import DataFrame


class Played(NamedTuple):
    """What a setting would do on one text.

    emitted    tokens per round
    passes     per model that drafts, in order of the setting's drafters
    tried      guesses that the target came to: the accepted ones, and the first wrong one of each
               round that had one
    accepted   how many of them it accepted
    """

    emitted: tuple[int, ...]
    passes: dict[str, int]
    tried: int
    accepted: int


class Guess(NamedTuple):
    """A token handed up, what its drafter offers, and whether it is a copy that nobody reviewed."""

    token: int
    offered: float
    copied: bool


class Handed(NamedTuple):
    """What a level hands up, and the passes per drafter that it took."""

    guesses: tuple[Guess, ...]
    passes: tuple[int, ...]


def replay(recording: Recording, setting: CascadeSetting) -> Played:
    """The rounds that `decode` would play with the setting's cascade under `look_up`, without
    running a model.

    Raises ValueError if a drafter was not recorded, Max-Gram stands before a model, or the matrix
    is not one of so many drafters.
    """
    replaying, start, emitted = _Replaying.of(recording, setting), 0, []
    passes, tried, accepted = [0] * len(setting.drafters), 0, 0
    text = recording.tokens
    while start < len(text):
        handed = replaying.level(0, start)
        agreed = 0
        for guess, token in zip(handed.guesses, text[start:], strict=False):
            tried += 1
            if guess.token != token:
                break
            agreed += 1
        accepted += agreed
        emitted.append(min(agreed + 1, len(text) - start))
        start += agreed + 1
        passes = [before + more for before, more in zip(passes, handed.passes, strict=True)]
    counts = {
        name: count
        for name, count in zip(setting.drafters, passes, strict=True)
        if name != MAX_GRAM
    }
    return Played(tuple(emitted), counts, tried, accepted)


def replayed(recordings: Sequence[Recording], settings: Iterable[CascadeSetting]) -> "DataFrame":
    """A row per setting and text: the setting's fields, `prompt`, `tokens`, `rounds`,
    `target_passes` and the passes of each drafter.
    """
    import pandas as pd

    rows = []
    for setting in settings:
        labels = {
            "drafters": " + ".join(setting.drafters),
            "matrix": setting.matrix,
            "lenience": setting.lenience,
            "exempt": setting.exempt_max_gram,
        }
        for recording in recordings:
            played = replay(recording, setting)
            counts = {
                "tokens": sum(played.emitted),
                "rounds": len(played.emitted),
                "target_passes": len(played.emitted),
            }
            rows.append(
                labels
                | {"prompt": recording.prompt}
                | counts
                | {f"{name}_passes": count for name, count in played.passes.items()}
            )
    return pd.DataFrame(rows)


@dataclass(frozen=True, eq=False)
class _Replaying:
    """One setting on one text: what each level hands up at each place, remembered."""

    recording: Recording
    matrix: tuple[tuple[int, ...], ...]
    models: tuple[Choices | None, ...]
    lenience: float
    exempt: bool
    known: dict[tuple[int, int], Handed]

    @classmethod
    def of(cls, recording: Recording, setting: CascadeSetting) -> "_Replaying":
        """Checked against what was recorded."""
        matrix = converted(setting.matrix, "increments", "increments")
        unknown = [
            name for name in setting.drafters if name != MAX_GRAM and name not in recording.choices
        ]
        if len(matrix) != len(setting.drafters) or unknown or MAX_GRAM in setting.drafters[:-1]:
            known = ", ".join([*recording.choices, f"{MAX_GRAM} (the last)"])
            raise ValueError(
                f"a setting has a row per drafter of {known}; got {len(matrix)} rows and"
                f" {', '.join(setting.drafters)}"
            )
        if not 1 <= setting.lenience < math.inf:
            raise ValueError(
                f"lenience is a finite number of at least 1 (no lenience), got {setting.lenience}"
            )
        if setting.drafters[-1] == MAX_GRAM and max(row[-1] for row in matrix) > LONGEST_COPY:
            raise ValueError(
                f"{MAX_GRAM} was recorded for up to {LONGEST_COPY} tokens, a K matrix asks for"
                f" {max(row[-1] for row in matrix)}"
            )
        if not any(matrix[0]):
            raise ValueError(
                f"an empty cascade proposes nothing: the first row of the K matrix is {matrix[0]}"
            )
        models = tuple(
            None if name == MAX_GRAM else recording.choices[name] for name in setting.drafters
        )
        below = (
            setting.drafters,
            matrix[1:],
            setting.lenience,
            setting.exempt_max_gram,
        )  # all that a reviewed level depends on
        if below not in recording.memory:
            recording.memory.clear()
        return cls(
            recording,
            matrix,
            models,
            setting.lenience,
            setting.exempt_max_gram,
            recording.memory.setdefault(below, {}),
        )

    def level(self, row: int, start: int) -> Handed:
        """What the drafters of a row hand to its reviewer, beginning at a place of the text."""
        guesses: list[Guess] = []
        passes, wanted = [0] * len(self.models), 0
        for column, length in enumerate(self.matrix[row]) if row < len(self.matrix) else ():
            wanted += length
            while len(guesses) < wanted:
                handed = self.part(column, start + len(guesses), length)
                if not handed.guesses:
                    break
                guesses += handed.guesses
                passes = [before + more for before, more in zip(passes, handed.passes, strict=True)]
        return Handed(tuple(guesses), tuple(passes))

    def part(self, column: int, start: int, length: int) -> Handed:
        """What one drafter hands up: reviewed guesses, or the last one's own chain."""
        if column < len(self.models) - 1:
            if (column, start) not in self.known:
                self.known[column, start] = self.reviewed(column, start)
            return self.known[column, start]
        model, none = self.models[column], (0,) * column
        if model is None:
            copies = self.recording.copies[self._place(start)][:length]
            return Handed(tuple(Guess(token, 1.0, True) for token in copies), (*none, 0))
        return Handed(
            tuple(self._own(model, start + place) for place in range(length)), (*none, length)
        )

    def reviewed(self, column: int, start: int) -> Handed:
        """What a model makes of the level below it, in one pass."""
        model, handed = self.models[column], self.level(column + 1, start)
        passes = tuple(count + (number == column) for number, count in enumerate(handed.passes))
        found: list[Guess] = []
        for guess in handed.guesses:
            place = start + len(found)
            own = self._own(model, place)
            worth = float(model.worth[self._place(place), guess.token])
            lenience = 1.0 if guess.copied and self.exempt else self.lenience
            offered = guess.offered if self.recording.sampler.temperature == 0 else 1.0
            if guess.token != own.token and not offered <= lenience * worth:
                return Handed((*found, own), passes)
            found.append(Guess(guess.token, worth, False))
        return Handed((*found, self._own(model, start + len(found))), passes)

    def _own(self, model: Choices, place: int) -> Guess:
        token = model.tokens[self._place(place)]
        return Guess(token, float(model.worth[self._place(place), token]), False)

    def _place(self, place: int) -> int:
        """Behind what was recorded, all is as at its last place; nothing is accepted there any
        more.
        """
        return min(place, len(self.recording.copies) - 1)
