"""Seconds per pass, prices, curves and rooflines, with a clock that the models turn themselves."""

import math
import time

import pandas as pd
import pytest
from fakes import Clock, Linear

from specdec_lib.measure.latency import passes
from specdec_lib.measure.latency.passes import (
    curves,
    fit_lines,
    measure_machine,
    pass_tables,
    prices,
    time_passes,
    with_roofline,
)
from specdec_lib.measure.machine import machine_name
from specdec_lib.models.fast.model import FastModel
from specdec_lib.theory import Machine

ROWS, CONTEXTS = (1, 2, 5), (4, 10)


LINE = {"fixed": 1.0, "row": 0.5, "context": 0.25}


def found(*models: Linear, **changes) -> pd.DataFrame:
    settings = {"repeats": 4, "progress": False} | changes
    return curves(time_passes(models, ROWS, CONTEXTS, **settings))


def test_a_price_is_the_median_pass_over_the_targets_and_models_take_turns(clock):
    turns, seconds = [], {"a": (4.0, 8.0, 100.0, 6.0, 2.0), "b": (3.0, 1.0, 2.0, 90.0, 2.0)}
    models = [Linear(name, clock, factors=its, turns=turns) for name, its in seconds.items()]
    table = prices(time_passes(models, contexts=(9,), repeats=5, progress=False))
    assert list(table.model) == ["a", "b"]
    columns = ["seconds", "low_seconds", "high_seconds", "price", "repeats"]
    assert table[columns].values.ravel() == pytest.approx([6, 4, 8, 1, 5, 2, 2, 3, 1 / 3, 5])
    assert "".join(turns[::3]) == "baab" * 3  # three passes of each model in a repeat


def test_a_model_that_computes_more_than_its_rows_is_refused():
    model = Linear("a", Clock())
    score = model.score
    model.score = lambda *given: (model.forget(), score(*given))[1]
    with pytest.raises(ValueError, match="one pass over 1 rows was to be timed, a ran 1 over 10"):
        time_passes([model], contexts=(9,), progress=False)


@pytest.mark.parametrize(
    "wrong, said", [({"rows": ()}, r"rows \[\]"), ({"contexts": (0,)}, ""), ({"repeats": 0}, "=0")]
)
def test_what_cannot_be_timed_is_named(wrong, said):
    with pytest.raises(ValueError, match=f"repeats from 1, got .*{said}"):
        time_passes([Linear("a", Clock())], **wrong)


def test_a_curve_has_a_place_per_rows_and_context_and_its_medians(clock):
    models = Linear("b", clock, **LINE), Linear("a", clock, **LINE | {"fixed": 3.0})
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
    with pytest.raises(ValueError, match="a needs one value of network_seconds per place, got 12"):
        pass_tables(table)
    with pytest.raises(
        ValueError, match="a needs one value of network_seconds per place, got 5 for 6"
    ):
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
