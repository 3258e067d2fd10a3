"""What cannot be drawn or explored is refused in one line that says what is allowed."""

from functools import partial
from math import nan

import pandas as pd
import pytest
from fakes import assert_refused
from test_figures_drawn import CURVE, LENGTHS, LINE, MATRIX, PAIRS, ROOF, stored

from specdec_lib.core.tree import TokenTree
from specdec_lib.measure.cascade.record import CascadeSetting
from specdec_lib.show import figures, tables
from specdec_lib.show.widgets import (
    Source,
    break_even_explorer,
    cascade_explorer,
    plan_explorer,
)
from specdec_lib.theory import Overhead, PassTable

TREE = TokenTree(0, (1,)).grown([2, 3, 4], [0, 0, 1], source="draft", scores=[0.5, 0.4, 0.2])
FOUR = list("abcd")
DEPTH = {"x": "depth", "x_title": "depth"}
ROOFLINE, SWEPT, SPEEDS = stored("03b_roofline"), stored("05_sweeps"), stored("05_predicted")


def changed(name: str, **columns: object) -> pd.DataFrame:
    return stored(name).assign(**columns)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    "call, said",
    [
        (
            lambda: figures.surface(stored("04_surface"), **MATRIX | {"best": (99, 1)}),
            r"the frame marks a cell with a value, got k1 and k2 \(99, 1\)",
        ),
        (
            lambda: figures.surface(changed("04_surface", swi=nan), **MATRIX),
            r"the frame marks a cell with a value, got k1 and k2 \(2, 1\)",
        ),
        (lambda: figures.roofline(ROOFLINE.assign(intensity=0.0), **ROOF), "above 0, got 0"),
        (lambda: figures.roofline(ROOFLINE.assign(kind="other"), **ROOF), "or ours, got 'other'"),
        (
            lambda: figures.acceptance(changed("02_depth", depth=0), **DEPTH, log_x=True),
            "a logarithmic axis shows depth above 0, got 0",
        ),
        (
            lambda: figures.predicted_speeds(SPEEDS.assign(predicted=0.0)),
            "speeds are above 0, got down to 0",
        ),
        (
            lambda: figures.speed_sweep(SWEPT[:1].assign(sweep="seed", value=1)),
            "a sweep is by temperature or domain, got 'seed'",
        ),
        (
            lambda: figures.budget_curves(changed("01_budget", budget=0)[:1]),
            "a budget is at least 1 node, got 0",
        ),
        (
            lambda: figures.pass_at(CURVE, LINE, rows=999, title=""),
            "the line has passes of 1 to 32 rows, got 999",
        ),
        (
            lambda: figures.chain_lengths(LENGTHS, length=99, title=""),
            "length is one of .*, got 99",
        ),
        (lambda: figures.step(pd.DataFrame({"text": ["a"]}), title=""), "columns text and one of"),
        (lambda: figures.step(pd.DataFrame(), title=""), "got 0 rows"),
        (
            lambda: figures.tree(TREE, labels=FOUR, path=(2, 3)),
            r"a path follows the tree's edges from the root on, got \(2, 3\)",
        ),
        (lambda: figures.tree(TREE, labels=FOUR, path=(0,)), r"the root on, got \(0,\)"),
        (lambda: figures.tree(TREE, labels=FOUR, path=(9,), bonus="e"), r"got \(9,\)"),
        (lambda: tables.nodes(TREE, labels=FOUR, path=(1, 9)), r"the root on, got \(1, 9\)"),
        (lambda: tables.shape_nodes({}, [[0.5]]), "at least one shape, got none"),
    ],
)
def test_what_cannot_be_drawn_is_named(call, said):
    assert_refused(call, said)


def test_a_path_along_the_edges_is_drawn():
    assert tables.nodes(TREE, labels=FOUR, path=(1, 3)).accepted.tolist() == [
        False,
        True,
        False,
        True,
    ]
    assert figures.tree(TREE, labels=FOUR, path=(1, 3), bonus="e").data


PASSES = PassTable((1, 2, 64), (8, 512), ((0.1, 0.11, 0.2), (0.1, 0.11, 0.3)))
HOST, ONE = Overhead(0.0, 0.0, 0.0), CascadeSetting(("draft",), ((1,),))
PLAN = (PASSES, HOST, HOST)


def explored(
    drafters: tuple[str, ...] = ("draft",),
    *,
    texts: tuple[str, ...] = ("code",),
    prices: dict[str, float] | None = None,
    start: CascadeSetting = ONE,
) -> None:
    cost = {"target": 1.0, "middle": 0.3, "draft": 0.1} if prices is None else prices
    rows = {"setting": ["a"], "swi": [1.0]}
    cascade_explorer(
        lambda *_: pd.DataFrame(rows),
        drafters,
        prices=cost,
        start=start,
        texts=texts,
        presets={},
        tune=lambda *_: None,
    )


BELOW = CascadeSetting(("middle", "draft"), ((1, 1), (2, 1)))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    "call, said",
    [
        (partial(explored, ()), "a drafter and texts, got 0 drafters and 1 texts"),
        (partial(explored, texts=()), "a drafter and texts, got 1 drafters and 0 texts"),
        (partial(explored, prices={"target": 1.0}), "a price of 0 or more .* draft has none in"),
        (partial(explored, prices={"target": 1.0, "draft": nan}), "draft has none in"),
        (partial(explored, ("middle", "draft"), start=BELOW), "upper triangular, got"),
        (
            lambda: break_even_explorer({}, PAIRS, acceptance_rate=0.5, cost=0.1),
            "the map needs a curve of the target",
        ),
        (
            lambda: break_even_explorer({"flat": None}, PAIRS, acceptance_rate=1.5, cost=0.1),
            "from 0 to 1, got 1.5",
        ),
        (lambda: plan_explorer({}, *PLAN), "a plan needs a source"),
        (lambda: plan_explorer({"a": Source((0.5,), PASSES)}, *PLAN), "rates of two ranks"),
    ],
)
def test_what_cannot_be_explored_is_named(call, said):
    assert_refused(call, said)
