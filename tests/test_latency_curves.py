"""Curves over rows and context by a clock that the models turn, lines through them, rooflines
beside them, and what theory makes of them.
"""

from dataclasses import dataclass, field
from types import SimpleNamespace

import pandas as pd
import pytest
import torch
from fakes import Table

from specdec_lib.core.protocols import Usage
from specdec_lib.measure.latency import (
    copy_bandwidth,
    curves,
    fitted,
    machine_name,
    measured_machine,
    peak_flops,
    tables,
    with_roofline,
)
from specdec_lib.theory import Machine, PassTable

ROWS, CONTEXTS = (1, 2, 5), (4, 10)


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Linear(Table):
    """A model that remembers paths, and takes fixed + per row + per cached token; a fifth of it
    around the pass.
    """

    name: str
    clock: Clock
    fixed: float = 1.0
    row: float = 0.5
    context: float = 0.25
    runtime: str = "made up"
    vocabulary: int = 50
    max_positions: int = 60
    usage: Usage = field(default_factory=Usage)
    known: set = field(default_factory=set)
    asked: list = field(default_factory=list)

    def forget(self):
        self.known.clear()

    def score(self, context, tree):
        paths = {context.tokens[: place + 1] for place in range(len(context))}
        paths |= {context.tokens + tree.path_tokens(node) for node in range(len(tree))}
        new = len(paths - self.known)
        self.known |= paths
        self.asked.append((len(context) - 1, new))
        seconds = self.fixed + self.row * len(tree) + self.context * (len(context) - 1)
        self.usage += Usage(1, new, 0.8 * seconds)
        self.clock.now += seconds
        return torch.zeros(len(tree), self.vocabulary)


def found(*models: Linear, **changes) -> pd.DataFrame:
    return curves(
        models,
        ROWS,
        CONTEXTS,
        **{"repeats": 4, "clock": models[0].clock, "progress": False} | changes,
    )


def test_a_curve_has_a_place_per_rows_and_context_and_its_medians():
    clock = Clock()
    table = found(Linear("a", clock), Linear("b", clock, fixed=3.0))
    assert list(zip(table.model, table.rows, table.context_tokens, strict=True)) == [
        (m, r, c) for m in "ab" for r in ROWS for c in CONTEXTS
    ]
    assert (table.repeats == 4).all() and (table.runtime == "made up").all()
    a = table[table.model == "a"]
    drift = a.seconds - (1.0 + 0.5 * a.rows + 0.25 * a.context_tokens)
    assert drift.min() >= 0.25 and drift.max() <= 0.25 * (1 + len(ROWS)), (
        "a pass per number of rows lengthens the context, and one that is not timed"
    )
    assert list(a.network_seconds / a.seconds) == pytest.approx([0.8] * len(a))
    assert (table.low_seconds <= table.seconds).all() and (
        table.seconds <= table.high_seconds
    ).all()


def test_each_repeat_begins_at_the_context_again_and_every_place_goes_first():
    model = Linear("a", Clock())
    found(model, repeats=5)
    untimed = [length for length, new in model.asked if new == length + 1]
    assert sorted(set(untimed)) == [length - 1 for length in CONTEXTS] and len(untimed) == 6 * len(
        CONTEXTS
    )
    first = [
        model.asked[place + 2]
        for place, (length, new) in enumerate(model.asked)
        if new == length + 1
    ]
    assert {new for _, new in first} == set(ROWS), "rows asked first after a warm pass"
    assert max(length for length, _ in model.asked) == max(CONTEXTS) + len(ROWS)


def test_two_runtimes_of_one_model_are_told_apart():
    clock = Clock()
    table = found(Linear("a", clock, runtime="slow", fixed=9.0), Linear("a", clock, runtime="fast"))
    slow, fast = (tables(table, runtime)["a"] for runtime in ("slow", "fast"))
    assert slow.at(1, 4) - fast.at(1, 4) == pytest.approx(0.8 * 8)
    with pytest.raises(
        ValueError,
        match="a needs one value of network_seconds per number of rows and context, got 12 for 6 places",
    ):
        tables(table)
    with pytest.raises(
        ValueError, match="no pass was timed with runtime 'other'; there are \\['fast', 'slow'\\]"
    ):
        tables(table, "other")


@pytest.mark.parametrize(
    "changes, complaint",
    [
        ({"repeats": 0}, "repeats=0"),
        ({"clock": None}, None),
    ],
)
def test_what_cannot_be_timed_is_named(changes, complaint):
    clock = Clock()
    if complaint:
        with pytest.raises(ValueError, match=complaint):
            found(Linear("a", clock), **changes)
    with pytest.raises(ValueError, match=r"got models \[\('a', 'made up'\), \('a', 'made up'\)\]"):
        curves([Linear("a", clock), Linear("a", clock)], progress=False)
    with pytest.raises(
        ValueError, match="a has 60 positions and 50 tokens; these passes need 63 positions"
    ):
        curves([Linear("a", clock)], (2,), (60,), repeats=1, progress=False)


def test_a_line_is_found_with_its_error():
    exact = pd.DataFrame(
        [(r, c, 1 + 0.5 * r + 0.25 * c) for r in ROWS for c in CONTEXTS],
        columns=["rows", "context_tokens", "seconds"],
    )
    line = fitted(exact.assign(model="a", runtime="")).iloc[0]
    assert (line.fixed_seconds, line.row_seconds, line.context_seconds) == pytest.approx(
        (1, 0.5, 0.25)
    )
    assert line.largest_error == pytest.approx(0, abs=1e-9)
    bent = exact.assign(seconds=lambda t: t.seconds * (1 + (t.rows == 2)))
    assert fitted(bent.assign(model="a", runtime="")).iloc[0].largest_error > 0.2, (
        "a cliff is no line, and the fit says so"
    )
    flat = fitted(exact[exact.context_tokens == 4].assign(model="a", runtime="")).iloc[0]
    assert flat.context_seconds == 0 and flat.largest_error == pytest.approx(0, abs=1e-9)


def test_a_table_is_exact_where_measured_and_linear_between():
    table = PassTable((1, 2, 4), (10, 20), ((1.0, 3.0, 4.0), (2.0, 4.0, 5.0)))
    assert (
        table.at(1, 10),
        table.at(2, 20),
        table.at(3, 10),
        table.at(1, 15),
        table.at(3, 15),
    ) == (1, 4, 3.5, 1.5, 4)
    assert table.at(6, 10) == 5 and table.at(1, 30) == 3 and table.at(1, 0) == 0.5, (
        "beyond the ends along the last line, never below half the least"
    )
    assert table.faster(2).at(3, 15) == 2
    assert PassTable((2,), (5,), ((7.0,),)).at(9, 99) == 7


@pytest.mark.parametrize(
    "call, complaint",
    [
        (lambda: PassTable((2, 1), (5,), ((1.0, 1.0),)), "rows rise"),
        (lambda: PassTable((1, 2), (), ()), "contexts rise"),
        (lambda: PassTable((1, 2), (5,), ((1.0,),)), "1 contexts and 2 rows need as many seconds"),
        (lambda: PassTable((1,), (5,), ((0.0,),)), "more than 0 seconds"),
        (lambda: PassTable((1,), (5,), ((1.0,),)).at(0), "at least 1 row"),
        (lambda: PassTable((1,), (5,), ((1.0,),)).faster(0), "more than 0 times"),
    ],
)
def test_what_is_no_table_is_named(call, complaint):
    with pytest.raises(ValueError, match=complaint):
        call()


def decoder(layers: int, width: int) -> SimpleNamespace:
    """What a roofline reads of a Hugging Face decoder."""
    config = SimpleNamespace(num_hidden_layers=layers, hidden_size=width)
    config.get_text_config = lambda: config
    return SimpleNamespace(config=config, dtype=torch.float32)


def test_the_roofline_is_the_slower_of_memory_and_arithmetic():
    model = Linear("a", Clock())
    model.model = decoder(2, 8)
    table = pd.DataFrame(
        {"model": "a", "runtime": "made up", "rows": [1, 1000], "context_tokens": 0}
    )
    seconds = with_roofline(table, [model], Machine("m", 4.0, 1e3)).roofline_seconds
    weights = 12 * 2 * 64 + 50 * 8
    assert seconds[0] == pytest.approx((weights + 2 * 2 * 8 * 2 + 2 * 18 * 2 * 8 + 50) * 4 / 4.0), (
        "weights, keys and values, activations"
    )
    assert seconds[1] > 2 * 1000 * weights / 1e3, "operations"
    model.weights = SimpleNamespace(head=(torch.zeros(50 * 8, dtype=torch.int8).numpy(),))
    assert with_roofline(table, [model], Machine("m", 4.0, 1e3)).roofline_seconds[
        0
    ] == pytest.approx(seconds[0] / 4), "a byte per number"
    with pytest.raises(ValueError, match="b \\(made up\\) was timed and is not among a"):
        with_roofline(table.assign(model="b"), [model], Machine("m", 4.0, 1e3))
    with pytest.raises(ValueError, match="a roofline needs a Hugging Face decoder, a is a Linear"):
        with_roofline(table, [Linear("a", Clock())], Machine("m", 4.0, 1e3))


def test_peaks_are_bytes_and_operations_over_the_least_seconds(monkeypatch):
    monkeypatch.setattr("specdec_lib.measure.latency.machine.COPIED", 1000)
    monkeypatch.setattr("specdec_lib.measure.latency.machine.MULTIPLIED", 10)
    readings = iter([0, 9, 0, 4, 0, 2, 0, 3])  # a warm-up, then three
    assert copy_bandwidth(repeats=3, clock=lambda: next(readings)) == 8000 / 2
    readings = iter([0, 9, 0, 4])
    assert peak_flops(repeats=1, clock=lambda: next(readings)) == 2000 / 4
    machine = measured_machine(repeats=1)
    assert (
        machine.bytes_per_second > 0
        and machine.name == machine_name()
        and set(machine.name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    )
    with pytest.raises(ValueError, match="at least 1 repeat, got 0"):
        copy_bandwidth(repeats=0)
