"""The explorers of a pass, of break-even and of a plan: their numbers are those of theory."""

import json
import math
from itertools import product

import pandas as pd
import plotly.graph_objects as go
import pytest

from specdec_lib import theory
from specdec_lib.show import widgets
from specdec_lib.show.widgets import Source, break_even_explorer, latency_explorer
from specdec_lib.theory import Overhead, PassTable, chain_break_even, chain_map, tree_gains
from specdec_lib.theory.chains import chain_speed_up


def curves() -> pd.DataFrame:
    took, slowness = {1: 2.0, 2: 2.0, 4: 2.4, 8: 4.0}, {"fast": 1.0, "reference": 4.0}
    rows = [
        (model, runtime, count, context, slow * size * (ms + context / 640) / 1e3)
        for model, size in (("target", 1.0), ("draft", 0.2))
        for runtime, slow in slowness.items()
        for count, ms in took.items()
        for context in (64, 256)
    ]
    table = pd.DataFrame(rows, columns=["model", "runtime", "rows", "context_tokens", "seconds"])
    ends = {"low_seconds": 0.9 * table.seconds, "high_seconds": 1.1 * table.seconds}
    return table.assign(**ends, roofline_seconds=table.seconds / 2)


def milliseconds(drawn) -> float:
    line, rows = drawn.given("pass_at", 1), drawn.named("pass_at", "rows")
    return 1e3 * line[line.rows == rows].seconds.item()


def test_a_pass_is_read_off_the_curve_and_between_its_points_off_a_line(drawn):
    panel = latency_explorer(curves())
    assert panel.values()["context"] == 256, "the middle of the contexts there are"
    assert milliseconds(drawn) == pytest.approx(2.4 + 0.4)
    assert "allow 1.40 ms (bandwidth or arithmetic): 50% of what it takes" in panel.words.value
    panel.turn(rows=6, context=160)
    assert milliseconds(drawn) == pytest.approx((2.4 + 4.0) / 2 + 160 / 640)
    ratio = (3.2 + 0.25) / (2.0 + 0.25)
    assert f"{ratio:.2f} times a pass over one row: 5 guesses to verify" in panel.words.value
    panel.turn(rows=4, context=256, model="draft", runtime="reference")
    assert milliseconds(drawn) == pytest.approx(2.8 * 0.2 * 4)


def test_a_model_that_was_not_timed_in_every_runtime_is_shown_in_those_in_which_it_was(drawn):
    """Control: where every model was timed in all, nothing is said to be missing."""
    whole = curves()
    lacking = (whole.model == "target") & (whole.runtime == "fast")
    panel = latency_explorer(whole[~lacking])  # the first model lacks the first runtime
    assert panel.values()["runtime"] == "reference"
    assert "passes of target were not timed in the runtime fast" in panel.words.value
    assert milliseconds(drawn) == pytest.approx(4 * (2.4 + 0.4))
    with pytest.raises(ValueError, match="'runtime' cannot be at 'fast': it offers"):
        panel.turn(runtime="fast")
    panel.turn(model="draft", runtime="fast")
    assert milliseconds(drawn) == pytest.approx(0.2 * (2.4 + 0.4))
    assert "not timed" not in panel.words.value
    panel.knobs["model"].value = "target"
    assert panel.values()["runtime"] == "reference"
    assert milliseconds(drawn) == pytest.approx(4 * (2.4 + 0.4))
    panel.knobs["model"].value = "draft"
    assert panel.values()["runtime"] == "reference", "the menu stays where it can"
    assert "not timed" not in latency_explorer(whole).words.value


POINTS = pd.DataFrame([("draft", 0.6, 0.15)], columns=["pair", "acceptance_rate", "cost"])
STEEP = {"steep": lambda rows: 0.5 + 0.5 * rows, "flat": None}


HOST = {"acceptance_rate": 0.2, "host": 9.0, "verify": "flat"}
TURNS = [
    ({}, 0.16, STEEP["steep"], "Do not speculate: no length pays."),
    ({"host": 0.2, "verify": "flat", "cost": 0.3}, 0.3, lambda rows: 1.2, "with {best} guesses"),
    ({"acceptance_rate": 0.5, "verify": "flat", "cost": 0.4}, 0.4, None, "Speculate, with 1 guess"),
    (HOST, 0.16, lambda rows: 10.0, "even a free draft does not pay"),
]


@pytest.mark.parametrize("turn, cost, verify, verdict", TURNS)
def test_the_bars_and_the_verdict_are_those_of_chain_speed_ups(drawn, turn, cost, verify, verdict):
    panel = break_even_explorer(STEEP, POINTS, acceptance_rate=0.6, cost=0.16)
    panel.turn(**turn)
    rate, found = turn.get("acceptance_rate", 0.6), drawn.given("chain_lengths").speed_up.tolist()
    wanted = [chain_speed_up(rate, length, cost, verify) for length in range(1, 13)]
    assert found == pytest.approx(wanted)
    assert drawn.named("break_even", "here") == (rate, cost), "the pair stands on the map"
    assert verdict.format(best=1 + found.index(max(found))) in panel.words.value
    assert ("Do not speculate" in panel.words.value) == (max(found) <= 1)


def test_the_map_is_of_the_best_length_or_of_the_one_set(drawn):
    panel = break_even_explorer({"flat": None}, POINTS, acceptance_rate=0.7, cost=0.2)
    best = drawn.given("break_even").set_index(["acceptance_rate", "cost"]).speed_up
    panel.turn(map="the length set", length=2)
    two = drawn.given("break_even").set_index(["acceptance_rate", "cost"]).speed_up
    assert two[0.5, 0.3] == pytest.approx(chain_speed_up(0.5, 2, 0.3))
    assert (best >= two - 1e-12).all() and (best > two).any()


def test_the_map_of_theory_is_the_best_chain_everywhere():
    places = [*product((0.0, 0.3, 0.7, 1.0), (0.0, 0.2, 1.5))]
    cells = chain_map((0.0, 0.3, 0.7, 1.0), (0.0, 0.2, 1.5), STEEP["steep"], overhead=0.1)
    hosted = lambda rows: STEEP["steep"](rows) + 0.1  # noqa: E731
    for (rate, cost), cell in zip(places, cells, strict=True):
        best = theory.best_chain_speed_up(rate, cost, hosted)
        assert (cell.acceptance_rate, cell.cost) == (rate, cost)
        assert cell.speed_up == pytest.approx(best, rel=1e-12)
        assert cell.speed_up == pytest.approx(chain_speed_up(rate, cell.length, cost, hosted))
    assert chain_map([0.7], [0.2])[0].speed_up > chain_map([0.7], [0.2], overhead=0.1)[0].speed_up


def test_break_even_is_where_the_best_chain_neither_gains_nor_loses():
    found = chain_break_even(0.6, 0.2, STEEP["steep"], overhead=0.05)
    hosted = lambda rows: STEEP["steep"](rows) + 0.05  # noqa: E731
    at = theory.best_chain_speed_up(found.acceptance_rate, 0.2, hosted)
    assert at == pytest.approx(1, abs=1e-3) and at >= 1
    assert theory.best_chain_speed_up(0.6, found.cost, hosted) == pytest.approx(1)
    # flat, one guess: a draft pays if α > c
    assert chain_break_even(0.5, 0.4) == pytest.approx((0.4, 0.5), abs=1e-3)
    assert chain_break_even(0.1, 3.0).acceptance_rate is None
    assert chain_break_even(0.1, 0.2, overhead=0.5).cost is None


@pytest.mark.parametrize("options", [{"lengths": (0, 1)}, {"overhead": -0.1}, {"costs": (-0.1,)}])
def test_a_map_of_nothing_is_refused(options):
    with pytest.raises(ValueError, match="a map needs lengths of at least 1"):
        chain_map(**{"rates": (0.5,), "costs": (0.2,)} | options)


TARGET = PassTable((1, 2, 9, 33), (0,), ((1.0, 1.1, 1.8, 4.2),))
DRAFT, MIDDLE = (PassTable((1, 9), (0,), ((cost, 1.2 * cost),)) for cost in (0.1, 0.2))
TABLES, TREE, PLAIN = (
    {"target": TARGET, "draft": DRAFT},
    Overhead(0.06, 0.002, 0.01),
    Overhead(0.03),
)
SOURCES = {"draft": Source([0.5, 0.15, 0.1], DRAFT), "middle": Source([0.6, 0.2], MIDDLE)}


@pytest.fixture
def panel(drawn):
    return widgets.plan_explorer(SOURCES, TARGET, TREE, PLAIN)


def sent(figure):
    """What of a figure a notebook sends to its page as JSON: all but arrays of numbers."""
    known = go.Figure(figure).to_dict()
    return json.dumps(known, default=lambda values: values.tolist(), allow_nan=False)


def test_what_a_plan_sends_to_the_page_is_json(panel):
    """Control: a list with NaN, which is none."""
    assert all(sent(getattr(one, "figure", one)) for one in panel.figures)
    with pytest.raises(ValueError, match="not JSON compliant"):
        sent(go.Figure(go.Scatter(x=[math.nan], y=[1.0])))


def drawn_speeds(drawn, wanted):
    """The speed-ups drawn of these trees."""
    found = drawn.given("budget_speed_ups").set_index(["budget", "depth"]).speed_up
    return {place: found[place] for place in wanted}


def gains(rates, tables, **options):
    """The speed-up of every tree that the panel may choose, by theory; one row per tree."""
    sizes = {"budgets": range(1, 9), "depths": (1, 2, 3, 4, 6, 8), "widths": [3]}
    found = pd.DataFrame(tree_gains(rates, tables, **sizes, **options))
    found = found.drop_duplicates(["depth", "speed_up"]).set_index(["budget", "depth"])
    return found.speed_up.to_dict()


def test_the_drawn_tree_is_the_one_that_pays_best(drawn, panel):
    wanted = gains(rates := [[0.5, 0.15, 0.1]], TABLES, overhead=TREE, plain=PLAIN)
    assert drawn_speeds(drawn, wanted) == pytest.approx(wanted)
    (budget, depth), best = max(wanted.items(), key=lambda item: item[1])
    assert drawn.given("budget_speed_ups").speed_up.max() == pytest.approx(best) and best > 1
    tree = theory.best_tree(rates, budget, depth)
    assert drawn.given("shapes").parent.tolist() == list(tree.parents)
    words = panel.words.value
    assert f"{tree.guesses} guesses, {tree.depth} deep: {best:.2f} times" in words
    assert f"emits {theory.expected_tokens(tree, rates):.2f} tokens" in words


def test_every_knob_says_what_theory_says_of_its_change(drawn, panel):
    panel.turn(rows=0.0, host=0.0, first=0.6)
    flat = PassTable(TARGET.rows, (0,), ((1.0,) * 4,))
    rates, cheap = [[0.6, 0.4 * 0.5 * 0.6, 0.4 * 0.5 * 0.4]], drawn.given("budget_speed_ups")
    wanted = gains(rates, {"target": flat, "draft": DRAFT})
    assert drawn_speeds(drawn, wanted) == pytest.approx(wanted)
    panel.turn(cost=0.2)
    wanted = gains(rates, {"target": flat, "draft": DRAFT.faster(0.5)})
    assert drawn_speeds(drawn, wanted) == pytest.approx(wanted)
    assert cheap.speed_up.max() > max(wanted.values()) + 0.01, "the control: costs count"


def test_a_button_sets_what_was_measured_of_a_source(panel):
    panel.buttons["middle"].click()
    found = {"first": 0.6, "others": 0.5, "cost": 0.2}
    assert panel.values() == found | {"rows": 1, "host": 1}


@pytest.mark.parametrize(
    "turn, said",
    [
        ({"cost": 1.0}, "it would pay with draft passes in"),
        ({"first": 0.02, "others": 0.02, "host": 3.0}, "even free draft passes would not"),
    ],
)
def test_where_nothing_pays_the_verdict_is_not_to_speculate(drawn, panel, turn, said):
    panel.turn(**turn)
    assert drawn.given("budget_speed_ups").speed_up.max() <= 1
    assert "Do not speculate" in panel.words.value and said in panel.words.value
