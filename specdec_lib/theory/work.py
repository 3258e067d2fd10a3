"""Seconds and tokens per second of decoding, from a table of pass times and counts of passes."""

import bisect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from specdec_lib.core.kinds import Within, checked

Pass = tuple[str, int, int]
"""Model, rows, context tokens."""


@checked
@dataclass(frozen=True)
class PassTable:
    """Measured seconds of one model's pass, per context a value per number of rows, both rising."""

    rows: tuple[int, ...]
    contexts: tuple[int, ...]
    seconds: tuple[tuple[Annotated[float, Within(2.0**-50, 2.0**50)], ...], ...]

    def __post_init__(self) -> None:
        sizes = [len(line) for line in self.seconds]
        rising = all([*grid] == sorted(set(grid)) for grid in (self.rows, self.contexts))
        if not (rising and sizes and sizes == [len(self.rows) or None] * len(self.contexts)):
            raise ValueError(
                "rows and contexts rise, with seconds for every pair,"
                f" got {list(self.rows)}, {list(self.contexts)} and {sizes} seconds"
            )

    def at(self, rows: float, context: float = 0) -> float:
        """Seconds of a pass, linear between measured places and along the last line beyond them;
        ValueError for less than 1 row or a context below 0.
        """
        if not (rows >= 1 and context >= 0):
            raise ValueError(
                "a pass has at least 1 row, a context 0 tokens or more,"
                f" got rows={rows}, context={context}"
            )
        by_context = [_interpolate(self.rows, line, float(rows)) for line in self.seconds]
        found = _interpolate(self.contexts, by_context, float(context))
        return max(found, min(map(min, self.seconds)) / 2)  # a noisy slope must not give 0

    def faster(self, times: float) -> "PassTable":
        """The same table with every value divided by `times`, above 0, else ValueError."""
        if not times > 0:
            raise ValueError(f"a model is more than 0 times as fast, got {times}")
        scaled = tuple(tuple(value / float(times) for value in line) for line in self.seconds)
        return PassTable(self.rows, self.contexts, scaled)


Tables = Mapping[str, PassTable]  # by model


@checked
@dataclass(frozen=True)
class Overhead:
    """Seconds outside the models: per round, per guess and per draft pass."""

    round: float = 0.0
    guess: float = 0.0
    draft_pass: float = 0.0


NO_OVERHEAD = Overhead()


@checked
@dataclass(frozen=True)
class Work:
    """Counts of what decoding did, summed over rounds: the guesses that the target verified, passes
    (a number may be a mean), and the model whose passes verify.
    """

    tokens: float
    rounds: float
    guesses: float
    passes: Mapping[Pass, float]
    target: str = "target"

    def __post_init__(self) -> None:
        counts = (self.guesses, *self.passes.values())
        if not (self.tokens >= self.rounds > 0 and min(counts) >= 0):
            raise ValueError(f"rounds emit a token or more, with counts of 0 or more; got {self}")

    def __add__(self, other: "Work") -> "Work":
        """The sum of both; raises ValueError unless the same model verifies in both."""
        if self.target != other.target:
            raise ValueError(
                "work of one target is added to work of the same target,"
                f" got {self.target!r} and {other.target!r}"
            )
        passes = {
            place: self.passes.get(place, 0.0) + other.passes.get(place, 0.0)
            for place in {**self.passes, **other.passes}
        }
        return Work(
            self.tokens + other.tokens,
            self.rounds + other.rounds,
            self.guesses + other.guesses,
            passes,
            self.target,
        )

    @property
    def tokens_per_round(self) -> float:
        """Emitted ÷ rounds."""
        return self.tokens / self.rounds

    @property
    def draft_passes(self) -> float:
        """Passes of all models but the target."""
        return sum(count for (model, _, _), count in self.passes.items() if model != self.target)

    def model_seconds(self, tables: Tables) -> float:
        """Seconds in models.  Raises ValueError if one that ran has no table."""
        if unknown := sorted({model for model, _, _ in self.passes} - set(tables)):
            known = ", ".join(tables) or "none"
            raise ValueError(f"{unknown} ran and have no table of seconds; there are {known}")
        return math.fsum(
            count * tables[model].at(rows, context)
            for (model, rows, context), count in self.passes.items()
        )

    def seconds(self, tables: Tables, overhead: Overhead = NO_OVERHEAD) -> float:
        """Seconds in all."""
        guesses = overhead.guess * self.guesses
        passes = overhead.draft_pass * self.draft_passes
        return self.model_seconds(tables) + (overhead.round * self.rounds + guesses + passes)

    def tokens_per_second(self, tables: Tables, overhead: Overhead = NO_OVERHEAD) -> float:
        """Emitted tokens ÷ `seconds`."""
        return self.tokens / self.seconds(tables, overhead)


@checked
def plain_work(*, context: int = 256, target: str = "target") -> Work:
    """The work of one round of plain decoding."""
    return Work(1.0, 1.0, 0.0, {(target, 1, int(context)): 1.0}, target)


def _interpolate(places: Sequence[int], values: Sequence[float], at: float) -> float:
    if len(places) == 1:
        return values[0]
    upper = min(max(bisect.bisect_left(places, at), 1), len(places) - 1)
    low = places[upper - 1]
    high = places[upper]
    return values[upper - 1] + (values[upper] - values[upper - 1]) * (at - low) / (high - low)
