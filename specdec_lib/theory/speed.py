"""From the seconds of passes to tokens per second: a measured table of pass times, what decoding
took of it, and what that comes to.

A measured curve over rows is not smooth, so a pass costs what the table says, with straight lines
between the rows that were measured.
"""

import bisect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import NamedTuple

from specdec_lib.core.tree import Shape
from specdec_lib.theory.chains import Verify, chain_speed_up
from specdec_lib.theory.rates import Rates
from specdec_lib.theory.trees import best_tree, expected_tokens

Pass = tuple[str, int, int]  # model, rows, context tokens


@dataclass(frozen=True)
class PassTable:
    """Seconds of one model's pass, measured over some numbers of rows at some lengths of context.

    rows, contexts    rising, at least one of each
    seconds           per context a value per number of rows, above 0

    Between measured places, and along the last line beyond them, it is linear, but never below half
    the least value measured.
    Raises ValueError if a grid does not rise or the values are not one per place and above 0.
    """

    rows: tuple[int, ...]
    contexts: tuple[int, ...]
    seconds: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        for name, grid in (("rows", self.rows), ("contexts", self.contexts)):
            if not grid or list(grid) != sorted(set(grid)):
                raise ValueError(
                    f"{name} rise from place to place, and there is at least one, got {grid}"
                )
        if len(self.seconds) != len(self.contexts) or any(
            len(line) != len(self.rows) for line in self.seconds
        ):
            raise ValueError(
                f"{len(self.contexts)} contexts and {len(self.rows)} rows need as many seconds, got"
                f" {[len(line) for line in self.seconds]}"
            )
        if not all(value > 0 for line in self.seconds for value in line):
            raise ValueError(f"a pass takes more than 0 seconds, got {self.seconds}")

    def at(self, rows: Real, context: Real = 0) -> float:
        """Seconds of a pass over so many rows after so many tokens of context.

        Raises ValueError if there is no row or the context is negative.
        """
        if not (rows >= 1 and context >= 0):
            raise ValueError(
                f"a pass has at least 1 row and a context of 0 tokens or more, got rows={rows},"
                f" context={context}"
            )
        found = _between(
            self.contexts,
            [_between(self.rows, line, float(rows)) for line in self.seconds],
            float(context),
        )
        return max(found, min(map(min, self.seconds)) / 2)  # a noisy slope must not lead to nothing

    def faster(self, times: Real) -> "PassTable":
        """The same model, so many times as fast.  Raises ValueError unless that is above 0."""
        if not times > 0:
            raise ValueError(f"a model is more than 0 times as fast, got {times}")
        return PassTable(
            self.rows,
            self.contexts,
            tuple(tuple(value / float(times) for value in line) for line in self.seconds),
        )


@dataclass(frozen=True)
class Overhead:
    """Seconds outside the models: of each round, of each guess and of each drafting pass in it."""

    round: float = 0.0
    guess: float = 0.0
    draft_pass: float = 0.0


@dataclass(frozen=True)
class Work:
    """What decoding took, summed over rounds.

    tokens, rounds, guesses    emitted tokens, rounds, and guesses that the target verified
    passes                     (model, rows, context tokens) to how many such passes there were; a
                               mean number of passes is as good
    target                     the name of the model whose passes verify

    Raises ValueError if there is no round, fewer tokens than rounds, or a count is negative.
    """

    tokens: float
    rounds: float
    guesses: float
    passes: Mapping[Pass, float]
    target: str = "target"

    def __post_init__(self) -> None:
        if not (
            self.tokens >= self.rounds > 0
            and self.guesses >= 0
            and min(self.passes.values(), default=0) >= 0
        ):
            raise ValueError(
                "decoding has rounds that emit a token or more each, and counts of 0 or more; got"
                f" {self}"
            )

    def __add__(self, other: "Work") -> "Work":
        """Both together.  Raises ValueError unless they have one target."""
        if self.target != other.target:
            raise ValueError(f"work of one target adds up, got {self.target} and {other.target}")
        passes = dict(self.passes)
        for place, count in other.passes.items():
            passes[place] = passes.get(place, 0.0) + count
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

    def model_seconds(self, tables: Mapping[str, PassTable]) -> float:
        """Seconds in models.  Raises ValueError if one that ran has no table."""
        if unknown := sorted({model for model, _, _ in self.passes} - set(tables)):
            raise ValueError(
                f"{', '.join(unknown)} ran and has no table of seconds; there are"
                f" {', '.join(tables) or 'none'}"
            )
        return math.fsum(
            count * tables[model].at(rows, context)
            for (model, rows, context), count in self.passes.items()
        )

    def seconds(self, tables: Mapping[str, PassTable], overhead: Overhead = Overhead()) -> float:
        """Seconds in all.  Raises ValueError if a model that ran has no table."""
        outside = (
            overhead.round * self.rounds
            + overhead.guess * self.guesses
            + overhead.draft_pass * self.draft_passes
        )
        return self.model_seconds(tables) + outside

    def tokens_per_second(
        self, tables: Mapping[str, PassTable], overhead: Overhead = Overhead()
    ) -> float:
        """Emitted tokens ÷ `seconds`."""
        return self.tokens / self.seconds(tables, overhead)


def tree_work(
    shape: Shape,
    rates: Rates,
    *,
    context: Integral = 256,
    target: str = "target",
    draft: str = "draft",
) -> Work:
    """One expected round of a fixed tree: a draft pass per level over the nodes that have children,
    and a target pass over all nodes.

    rates      acceptance by depth and rank
    context    tokens before the round

    A level's rows are those of the shape; that the draft reads two rows after a whole path was
    accepted is left out.  Raises ValueError as `expected_tokens` does.
    """
    inner = set(shape.parents[1:])
    read = [sum(shape.depths[node] == level for node in inner) for level in range(shape.depth)]
    passes: dict[Pass, float] = {(target, len(shape), int(context)): 1.0}
    for rows in read:
        place = (draft, rows, int(context))
        passes[place] = passes.get(place, 0.0) + 1
    return Work(expected_tokens(shape, rates), 1.0, float(shape.guesses), passes, target)


def plain_work(*, context: Integral = 256, target: str = "target") -> Work:
    """One round of plain decoding."""
    return Work(1.0, 1.0, 0.0, {(target, 1, int(context)): 1.0}, target)


class Gain(NamedTuple):
    """What a tree of at most so many guesses, so deep and so wide, gains over plain decoding."""

    budget: int
    depth: int
    width: int
    speed_up: float


def tree_gains(
    rates: Rates,
    tables: Mapping[str, PassTable],
    *,
    budgets: Sequence[Integral],
    depths: Sequence[Integral],
    widths: Sequence[Integral],
    overhead: Overhead = Overhead(),
    plain: Overhead = Overhead(),
    context: Integral = 256,
) -> list[Gain]:
    """The speed-up of the best tree of every budget, depth and width, a draft pass per level, by
    measured pass times.

    rates       must not rise with the rank; a width of n takes the first n of each vector
    tables      of "target" and "draft"
    overhead    of a round with a tree, `plain` of one of plain decoding

    A tree may be smaller than what it is allowed, where every further guess has rate 0.
    Raises ValueError if a table is missing, nothing is to be tried, and as `best_tree` does.
    """
    if not (budgets and depths and widths):
        raise ValueError(
            f"give at least one budget, depth and width to try, got {list(budgets)}, {list(depths)}"
            f" and {list(widths)}"
        )
    alone = plain_work(context=context).tokens_per_second(tables, plain)
    vectors, found = [list(vector) for vector in rates], []
    for width in map(int, widths):
        narrow = [vector[:width] for vector in vectors]
        for depth in map(int, depths):
            largest = best_tree(narrow, max(budgets), depth)
            for budget in map(int, budgets):
                shape = Shape(
                    largest.parents[: budget + 1]
                )  # the best tree of fewer guesses is its beginning
                speed = tree_work(shape, narrow, context=context).tokens_per_second(
                    tables, overhead
                )
                found.append(Gain(budget, depth, width, speed / alone))
    return found


def best_chain_speed_up(
    acceptance_rate: Real, draft_cost: Real, verify: Verify | None = None, *, longest: Integral = 12
) -> float:
    """The most that a chain of 1 to `longest` guesses gains, which may be a loss; the rest as for
    `chain_speed_up`.

    Raises ValueError as that does, or if `longest` is below 1.
    """
    if longest < 1:
        raise ValueError(f"a chain has at least 1 guess, got longest={longest}")
    return max(
        chain_speed_up(acceptance_rate, length, draft_cost, verify)
        for length in range(1, int(longest) + 1)
    )


def _between(places: Sequence[int], values: Sequence[float], at: float) -> float:
    """Linear between the two places around `at`; beyond the ends along the nearest line."""
    if len(places) == 1:
        return values[0]
    upper = min(max(bisect.bisect_left(places, at), 1), len(places) - 1)
    low, high = places[upper - 1], places[upper]
    return values[upper - 1] + (values[upper] - values[upper - 1]) * (at - low) / (high - low)
