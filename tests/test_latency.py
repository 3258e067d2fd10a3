"""Seconds per pass, prices, curves and rooflines, with a clock that the models turn themselves."""

import math
import time
from dataclasses import dataclass, field

import pandas as pd
import pytest
import torch
from fakes import Clock

from specdec_lib.core.protocols import Usage
from specdec_lib.measure.latency import passes
from specdec_lib.measure.latency.passes import (
    curves,
    fit_lines,
    machine_name,
    measure_machine,
    pass_tables,
    prices,
    time_passes,
    with_roofline,
)
from specdec_lib.models.fast.model import FastModel
from specdec_lib.theory import Machine

ROWS, CONTEXTS = (1, 2, 5), (4, 10)


@dataclass
class Linear:
    """A model that remembers paths, and takes fixed + per row + per cached token, times the next of
    its factors for each timed pass; a fifth of it around the pass.
    """

    name: str
    clock: Clock
    fixed: float = 1.0
    row: float = 0.5
    context: float = 0.25
    factors: tuple[float, ...] = (1.0,)
    runtime: str = "made up"
    vocabulary: int = 50
    max_positions: int = 60
    forgets: bool = False
    usage: Usage = field(default_factory=Usage)
    known: set = field(default_factory=set)
    asked: list = field(default_factory=list)
    turns: list[str] = field(default_factory=list)

    def forget(self):
        self.known.clear()

    def score(self, context, tree):
        paths = {context.tokens[: place + 1] for place in range(len(context))}
        paths |= {context.tokens + tree.path_tokens(node) for node in range(len(tree))}
        new = len(paths if self.forgets else paths - self.known)
        self.known |= paths
        self.asked.append((len(context) - 1, new))
        self.turns.append(self.name)
        # a repeat reads the context, makes a pass that is not timed, and one that is
        factor = self.factors[(len(self.asked) // 3 - 2) % len(self.factors)]
        seconds = self.fixed + self.row * len(tree) + self.context * (len(context) - 1)
        self.usage += Usage(1, new, 0.8 * factor * seconds)
        self.clock.now += factor * seconds
        return torch.zeros(len(tree), self.vocabulary)


def constant(clock: Clock, *factors: tuple[float, ...]) -> list[Linear]:
    """Models a, b, … whose timed passes take these seconds in turn; their turns are noted."""
    models, turns = zip("abc", factors, strict=False), []
    flat = {"row": 0.0, "context": 0.0, "turns": turns}
    return [Linear(name, clock, factors=its, **flat) for name, its in models]


def priced(models, *, tokens=9, **settings):
    table = time_passes(models, contexts=(tokens,), progress=False, **settings)
    return prices(table).set_index("model")


def found(*models: Linear, **changes) -> pd.DataFrame:
    settings = {"repeats": 4, "progress": False} | changes
    return curves(time_passes(models, ROWS, CONTEXTS, **settings))


def test_a_price_is_the_median_pass_over_the_targets(clock):
    table = priced(
        constant(clock, (4.0, 8.0, 100.0, 6.0, 2.0), (3.0, 1.0, 2.0, 90.0, 2.0)), repeats=5
    )
    assert list(table.index) == ["a", "b"]
    columns = ["seconds", "low_seconds", "high_seconds", "price", "repeats"]
    assert table[columns].values.ravel() == pytest.approx([6, 4, 8, 1, 5, 2, 2, 3, 1 / 3, 5])


def test_models_take_turns_and_each_goes_first(clock):
    models = constant(clock, (1.0,), (1.0,), (1.0,))
    priced(models, repeats=3)
    turns = "".join(models[0].turns)  # three passes of each model in a repeat
    repeats = [turns[start : start + 9 : 3] for start in range(0, len(turns), 9)]
    assert repeats == ["cab", "abc", "bca", "cab"]


def test_a_model_that_computes_more_than_its_rows_is_refused():
    with pytest.raises(ValueError, match="one pass over 1 rows was to be timed, a ran 1 over 10"):
        priced([Linear("a", Clock(), forgets=True)], repeats=3)


@pytest.mark.parametrize(
    "wrong, said", [({"rows": ()}, r"rows \[\]"), ({"contexts": (0,)}, ""), ({"repeats": 0}, "=0")]
)
def test_what_cannot_be_timed_is_named(wrong, said):
    with pytest.raises(ValueError, match=f"repeats from 1, got .*{said}"):
        time_passes([Linear("a", Clock())], **wrong)


def test_a_curve_has_a_place_per_rows_and_context_and_its_medians(clock):
    models = Linear("b", clock), Linear("a", clock, fixed=3.0)
    table = found(*models)
    places = [(m, r, c) for m in "ba" for r in ROWS for c in CONTEXTS]
    assert list(zip(table.model, table.rows, table.context_tokens, strict=True)) == places
    assert (table.repeats == 4).all() and (table.runtime == "made up").all()
    b = table[table.model == "b"]
    drift = b.seconds - (1.0 + 0.5 * b.rows + 0.25 * b.context_tokens)
    # a pass per number of rows lengthens the context, and one that is not timed
    assert drift.min() >= 0.25 and drift.max() <= 0.25 * (1 + len(ROWS))
    assert list(b.network_seconds / b.seconds) == pytest.approx([0.8] * len(b))
    starts = [at for at, (length, new) in enumerate(models[0].asked) if new == length + 1]
    assert {models[0].asked[at + 2][1] for at in starts} == set(ROWS)  # each goes first


def test_two_runtimes_of_one_model_are_kept_apart(clock):
    table = found(Linear("a", clock, runtime="slow", fixed=9.0), Linear("a", clock, runtime="fast"))
    slow, fast = (pass_tables(table, runtime)["a"] for runtime in ("slow", "fast"))
    assert slow.at(1, 4) - fast.at(1, 4) == pytest.approx(0.8 * 8)
    with pytest.raises(ValueError, match="duplicate"):
        pass_tables(table)
    with pytest.raises(ValueError, match="got nan"):
        pass_tables(table[1:], "slow")
    with pytest.raises(ValueError, match=r"runtime 'other'; there are \['fast', 'slow'\]"):
        pass_tables(table, "other")


def test_a_line_is_found_with_its_error():
    rows = [("a", "", r, c, 1 + 0.5 * r + 0.25 * c) for r in ROWS for c in CONTEXTS]
    columns = ["model", "runtime", "rows", "context_tokens", "seconds"]
    exact = pd.DataFrame(rows, columns=columns)
    line = fit_lines(exact).iloc[0]
    assert list(line)[2:5] == pytest.approx([1, 0.5, 0.25])
    assert line.largest_error == pytest.approx(0, abs=1e-9)
    cliff = exact.assign(seconds=lambda t: t.seconds * (1 + (t.rows == 2)))
    assert fit_lines(cliff).iloc[0].largest_error > 0.2
    flat = fit_lines(exact[exact.context_tokens == 4]).iloc[0]
    assert flat.context_seconds == 0 and flat.largest_error == pytest.approx(0, abs=1e-9)


def test_a_roofline_of_packed_weights_counts_their_bytes(ladder):
    plain, packed = ladder.draft, FastModel(ladder.draft.model, "draft", edition="int8")
    seconds = {}
    for model in (plain, packed):
        rows = {"model": model.name, "runtime": model.runtime, "rows": [1], "context_tokens": 0}
        table = with_roofline(pd.DataFrame(rows), [model], Machine("m", 4.0, math.inf))
        seconds[model] = table.roofline_seconds[0]
    assert seconds[packed] == pytest.approx(seconds[plain] * 9 / 32, rel=0.1)


def test_peaks_are_bytes_and_operations_over_the_least_seconds(monkeypatch):
    for name, size in (("COPIED", 1000), ("MULTIPLIED", 10), ("REPEATS", 3)):
        monkeypatch.setattr(passes, name, size)
    readings = iter([0, 4, 0, 2, 0, 3, 0, 9, 0, 5, 0, 6])
    monkeypatch.setattr(time, "perf_counter", lambda: next(readings))
    machine = measure_machine()
    monkeypatch.undo()
    assert (machine.bytes_per_second, machine.flops_per_second) == (8000 / 2, 2000 / 5)
    assert machine.name == machine_name()
