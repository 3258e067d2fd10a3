"""Seconds per pass, with a clock that the models turn themselves."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
import torch
from fakes import Table, table_model

from specdec_lib.core.protocols import Usage
from specdec_lib.measure.latency import WARM_UPS, pass_seconds, prices, summarised


@dataclass
class Clock:
    """Stands still unless a model runs."""

    now: float = 100.0
    calls: list[tuple[str, int]] = field(default_factory=list)

    def __call__(self) -> float:
        return self.now


@dataclass
class Ticking(Table):
    """A model that remembers every path, counts the new ones, and takes the next of its seconds for
    each pass after a slow start.
    """

    name: str
    clock: Clock
    seconds: list[float]
    vocabulary: int = 7
    max_positions: int = 1000
    forgets: bool = False
    usage: Usage = field(default_factory=Usage)
    known: set[tuple[int, ...]] = field(default_factory=set)

    def forget(self):
        self.known.clear()

    def score(self, context, tree):
        paths = {context.tokens[: place + 1] for place in range(len(context))}
        paths |= {context.tokens + tree.path_tokens(node) for node in range(len(tree))}
        new = len(paths if self.forgets else paths - self.known)
        self.known |= paths
        self.usage += Usage(1, new, 0.0)
        self.clock.calls.append((self.name, new))
        timed = self.usage.passes - 2 - WARM_UPS  # after the context and the warm-ups
        self.clock.now += self.seconds[timed % len(self.seconds)] if timed >= 0 else 1000.0
        return torch.zeros(len(tree), self.vocabulary)


def ticking(*seconds: list[float], **fields) -> list[Ticking]:
    """Models named a, b, … on one clock."""
    clock = Clock()
    return [Ticking(name, clock, its, **fields) for name, its in zip("abc", seconds, strict=False)]


def timed(models, clock=None, **settings):
    return prices(models, clock=clock or models[0].clock, progress=False, **settings)


def by_turns(*seconds: float) -> Callable[[], float]:
    """A clock by which passes take so many seconds in turn, whoever makes them."""
    readings = itertools.accumulate(
        one for second in itertools.cycle(seconds) for one in (0.0, second)
    )
    return lambda: next(readings)


def test_a_price_is_the_median_pass_over_the_targets():
    table = timed(
        ticking([4.0, 8.0, 100.0, 6.0, 2.0], [3.0, 1.0, 2.0, 90.0, 2.0]),
        context_tokens=9,
        repeats=5,
    ).set_index("model")
    assert list(table.index) == ["a", "b"] and list(table.repeats) == [5, 5]
    assert list(table.seconds) == pytest.approx([6, 2]) and list(table.price) == pytest.approx(
        [1, 2 / 6]
    )
    assert list(table.low_seconds) == pytest.approx([4, 2]) and list(
        table.high_seconds
    ) == pytest.approx([8, 3])
    ratios = sorted([3 / 4, 1 / 8, 2 / 100, 90 / 6, 2 / 2])  # of the same repeat
    assert (table.low_price["b"], table.high_price["b"]) == pytest.approx((ratios[1], ratios[3]))
    assert table.paired_price["b"] == pytest.approx(ratios[2]) and ratios[2] > 2 * table.price["b"]
    assert (table.low_price["a"], table.high_price["a"]) == (1, 1)


def test_neither_reading_the_context_nor_warming_up_is_timed():
    table = timed(ticking([1.0], [2.0]), repeats=4)
    assert list(table.low_seconds) == list(table.high_seconds) == [1, 2]
    slower = ticking([1000.0, 2.0, 2.0])  # the same start, timed
    assert list(timed(slower, repeats=3).high_seconds) == [501]


def test_models_take_turns_and_each_goes_first():
    models = ticking([1.0], [1.0], [1.0])
    timed(models, repeats=3)
    turns = [name for name, _ in models[0].clock.calls]
    assert turns[:3] == ["a", "b", "c"]  # read the context
    rounds = ["".join(turns[start : start + 3]) for start in range(3, len(turns), 3)]
    assert len(rounds) == WARM_UPS + 3 and all(sorted(one) == ["a", "b", "c"] for one in rounds)
    assert {one[0] for one in rounds[WARM_UPS:]} == {"a", "b", "c"}


@pytest.mark.parametrize("vocabulary", [2, 7])
def test_a_pass_computes_the_rows_asked_for(vocabulary):
    models = ticking([1.0], [0.5], vocabulary=vocabulary)
    table = pass_seconds(
        models, (1, 4, 16), context_tokens=20, repeats=6, clock=models[0].clock, progress=False
    )
    assert (
        list(table.columns) == ["model", "rows", "context_tokens", "repeat", "seconds"]
        and len(table) == 2 * 3 * 6
    )
    assert [rows for _, rows in models[0].clock.calls[:2]] == [20, 20]
    computed = [rows for _, rows in models[0].clock.calls[2 + 2 * 3 * WARM_UPS :]]
    assert computed == list(table.rows) and set(computed) == {1, 4, 16}
    assert sorted(table[table.model == "b"].context_tokens) == list(
        range(20 + 3 * WARM_UPS, 20 + 3 * (WARM_UPS + 6))
    )
    many = summarised(table, target="a")
    assert list(zip(many.model, many.rows, strict=True)) == [
        ("a", 1),
        ("a", 4),
        ("a", 16),
        ("b", 1),
        ("b", 4),
        ("b", 16),
    ]
    assert set(many.price) == {1.0, 0.5}


def test_a_model_that_computes_more_than_asked_is_refused():
    with pytest.raises(
        ValueError, match="one pass over 1 rows was to be timed, a ran 1 over 257 in all"
    ):
        timed(ticking([1.0], forgets=True), repeats=3)


def test_the_ladders_models_compute_the_rows_asked_for(ladder):
    models = [ladder.middle, ladder.draft]
    pass_seconds(
        models, context_tokens=30, repeats=2, progress=False
    )  # leaves the same text in their memory
    before = [model.usage for model in models]
    table = pass_seconds(models, (1, 5), context_tokens=30, repeats=12, progress=False)
    spent = [model.usage - old for model, old in zip(models, before, strict=True)]
    assert [(one.passes, one.rows) for one in spent] == [
        (1 + 2 * (12 + WARM_UPS), 30 + (1 + 5) * (12 + WARM_UPS))
    ] * 2
    assert (table.seconds > 0).all() and len(table) == 48


def test_a_model_that_counts_nothing_is_timed_too():
    table = timed(
        [table_model(5, seed=0, name=name) for name in "ab"],
        clock=by_turns(2.0, 1.0),
        repeats=4,
        context_tokens=3,
    )
    assert list(table.seconds) == [1.5, 1.5] and table_model(5, seed=0).usage is None


@pytest.mark.parametrize(
    "call, complaint",
    [
        (lambda models: pass_seconds([]), r"got models \[\]"),
        (lambda models: pass_seconds([models[0], models[0]]), r"got models \['a', 'a'\]"),
        (lambda models: pass_seconds(models, (1, 0)), r"rows \[1, 0\]"),
        (lambda models: pass_seconds(models, ()), r"rows \[\]"),
        (lambda models: prices(models, repeats=0), "repeats=0"),
        (lambda models: prices(models, context_tokens=0), "context_tokens=0"),
        (
            lambda models: prices(models, context_tokens=980, repeats=18),
            "a has 1000 positions and 7 tokens; these passes need 1001 positions",
        ),
        (
            lambda models: prices(ticking([1.0], vocabulary=1)),
            "a has 1000 positions and 1 tokens; these passes need 310 positions and 2 tokens",
        ),
        (
            lambda models: prices(models, repeats=2, clock=lambda: 1.0, progress=False),
            "took no time by this clock",
        ),
        (
            lambda models: summarised(
                pass_seconds(models, (2,), repeats=1, progress=False), target="a"
            ),
            "a pass of 'a' over one row",
        ),
    ],
)
def test_what_cannot_be_timed_is_named(call, complaint):
    with pytest.raises(ValueError, match=complaint):
        call(ticking([1.0], [2.0]))


def test_the_last_position_can_be_used():
    assert len(timed(ticking([1.0]), context_tokens=980, repeats=17)) == 1
