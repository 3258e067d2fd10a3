"""Every figure of a table: it renders with a headline, axis titles and its series, and refuses a
wrong table with what it got and what is allowed.
"""

import math
import re

import pandas as pd
import plotly.graph_objects as go
import pytest
from figure_tables import (
    BOOKED,
    BUDGETS,
    CASES,
    CURVES,
    GAINS,
    GRID,
    LENGTHS,
    MAP,
    MAPPED,
    ONE_CURVE,
    PAIRS,
    POINTS,
    PROMPTS,
    RATES,
    ROOF,
    SHAPES,
    SURFACE,
    SWEPT,
    VERSUS,
    YIELDS,
    Case,
)

from specdec_lib.core.tree import MatchTable, Shape
from specdec_lib.show import figures
from specdec_lib.show.widgets import faster_draft
from specdec_lib.theory import Gain, Overhead, PassTable, tree_gains

every_figure = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def series(figure: go.Figure) -> list[str]:
    """What the legend names."""
    return [trace.name for trace in figure.data if trace.showlegend]


@every_figure
def test_a_figure_has_a_headline_axis_titles_and_each_series_once(case: Case) -> None:
    figure = case.draw(case.table)
    assert figure.layout.title.text and figure.layout.width <= 1160
    titles = [axis.title.text for axis in figure.select_xaxes()]
    titles += [axis.title.text for axis in figure.select_yaxes()]
    assert any(titles) or case.panels, "an axis or a panel says what is shown"
    assert sorted(series(figure)) == sorted(filter(None, case.series.split("|")))
    panels = {note.text for note in figure.layout.annotations}
    assert set(filter(None, case.panels.split("|"))) <= panels


@every_figure
def test_a_table_without_a_column_or_a_row_is_refused(case: Case) -> None:
    for table in (case.table[:0], pd.DataFrame({"x": [1.0]})):
        with pytest.raises(ValueError, match=f"columns .* got {len(table)} rows"):
            case.draw(table)


@pytest.mark.parametrize("case", [one for one in CASES.values() if one.once])
def test_a_mark_that_is_there_twice_is_refused(case: Case) -> None:
    with pytest.raises(ValueError, match=r"at most one row per .*, got several"):
        case.draw(pd.concat([case.table, case.table]))


@pytest.mark.parametrize("case", [one for one in CASES.values() if one.ends])
def test_an_interval_that_does_not_hold_its_value_is_refused(case: Case) -> None:
    low, value, high = case.ends.split()
    with pytest.raises(ValueError, match=f"{low} ≤ {value} ≤ {high}"):
        case.draw(case.table.assign(**{high: case.table[low] - 1}))


@pytest.mark.parametrize(
    ("draw", "said"),
    [
        (lambda: figures.budget_curves(BUDGETS.assign(budget=0)), "at least 1 node, got 0"),
        (
            lambda: figures.acceptance(RATES.assign(depth=0), x="depth", x_title="", log_x=True),
            "above 0, got 0",
        ),
        (lambda: figures.shapes(SHAPES.query("node != 1")), "without a gap"),
        (lambda: figures.slots({}, [[0.5]]), "at least one shape, got none"),
        (lambda: figures.gap_table(MatchTable((0.5,), "flat")), "'flat'"),
        (lambda: figures.roofline(POINTS.assign(kind="theirs"), **ROOF), "paper, ours, got theirs"),
        (lambda: figures.roofline(POINTS.assign(intensity=0), **ROOF), "above 0, got down to 0"),
        (lambda: figures.relative_performance(PROMPTS[1:]), "3 prompts times 2 methods but 5 rows"),
        (
            lambda: figures.surface(SURFACE, best=(0, 0), across="", down=""),
            "got k1 = 0, k2 = 0",
        ),
        (lambda: figures.surface(SURFACE[1:], best=(2, 1), across="", down=""), "6, got 5 rows"),
        (lambda: figures.speed_surface(GRID[1:]), "12, got 11 rows"),
        (lambda: figures.break_even(MAP[1:], MAPPED), "9, got 8 rows"),
        (lambda: figures.break_even(MAP, MAPPED[:0]), "got 0 rows"),
        (lambda: figures.pass_at(ONE_CURVE, ONE_CURVE[:4], rows=9), "1 to 4 rows, got 9"),
        (lambda: figures.ledger(BOOKED.assign(part="magic")), "host, got magic"),
        (lambda: figures.predicted_speeds(PAIRS.assign(predicted=0.0)), "got down to 0"),
        (lambda: figures.speed_sweep(SWEPT.assign(sweep="size")), "domain, got size"),
        (lambda: figures.chain_lengths(LENGTHS, length=3), r"\[1, 2\], got 3"),
        (lambda: figures.versus(VERSUS, prompt_set="none"), "got 0 rows"),
        (lambda: figures.step(PAIRS), "got 2 rows"),
    ],
)
def test_a_value_out_of_bounds_is_refused(draw, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        draw()


def test_the_probabilities_of_slots_add_up_to_the_expected_tokens() -> None:
    sums = SHAPES.groupby("shape")["probability"].sum()
    assert sums["chain"] == pytest.approx(1 + 0.6 + 0.36 + 0.216)
    assert sums["wide"] == pytest.approx(1 + 0.6 + 0.6 * 0.9)
    drawn = figures.shapes(SHAPES, title="<3>")
    assert drawn.layout.title.text == "&lt;3&gt;" and "2.18 tokens" in str(drawn.data[-1].text)


def test_a_gap_table_has_a_row_per_bin_and_rank() -> None:
    match = MatchTable((0.6, 0.2), "two", (1.0,), ((0.4, 0.3), (0.9, 0.1)))
    table = figures.gap_table(match)
    assert table["gap"].tolist() == ["0–1", "0–1", "1 and more", "1 and more"]
    assert table["rate"].tolist() == [0.4, 0.3, 0.9, 0.1]


def test_headlines_say_what_was_found() -> None:
    def title(figure: go.Figure) -> str:
        return figure.layout.title.text.replace("<br>", " ")

    assert "2 settings: median error 4.1%" in title(figures.predicted_speeds(PAIRS))
    assert "1.16 in the frame" in title(figures.speed_surface(GRID))
    assert "at (2, 1)" in title(CASES["surface"].draw(SURFACE))
    assert "gives 0" in title(figures.yields(YIELDS, bonus=False))
    assert "all prompts" in title(figures.versus(VERSUS, prompt_set="all"))


def test_settings_stand_in_the_order_of_their_mean() -> None:
    shuffled = GAINS.sort_values("draft")
    axis = figures.setting_speed_ups(shuffled).layout.yaxis
    assert list(axis.ticktext) == ["slow", "even", "fast"] and axis.range[0] > axis.range[1]


def test_stages_come_by_levels_and_samplings_may_be_temperatures() -> None:
    figure = CASES["stages"].draw(CASES["stages"].table)
    assert figure.layout.yaxis.ticktext[0] == "target"
    passes = CASES["passes"].table.drop(columns="sampling").assign(temperature=0.5)
    notes = [note.text for note in figures.passes(passes[:2]).layout.annotations]
    assert notes == ["temperature 0.5"]


def test_one_context_needs_no_name_and_no_roofline() -> None:
    one = CURVES[CURVES.context_tokens == 64].drop(columns="roofline_seconds")
    assert series(figures.latency(one)) == ["reference", "fast"]


def test_a_faster_draft_gains_more_and_a_faster_host_too() -> None:
    tables = {
        "target": PassTable((1, 8), (0,), ((1.0, 1.5),)),
        "draft": PassTable((1,), (0,), ((0.3,),)),
    }
    grown = {"budgets": (1, 2, 4), "depths": (1, 2, 4), "widths": (2,), "context": 0}

    def gains(faster: dict, busy: Overhead, idle: Overhead) -> list[Gain]:
        return tree_gains([[0.7, 0.2]], faster, overhead=busy, plain=idle, **grown)

    def best(draft: float, host: float) -> float:
        overheads = Overhead(0.1, 0.0, 0.05), Overhead(0.05)
        figure = faster_draft(gains, tables, overheads, draft=draft, host=host)
        assert "the best" in series(figure)
        return float(re.search(r"([\d.]+) times plain", figure.layout.title.text)[1])

    assert best(0.1, 1) < best(1, 1) < min(best(10, 1), best(1, 10))


def test_empty_panels_and_zeros_still_draw() -> None:
    bars, passes = CASES["paper_and_ours"], CASES["passes"]
    empty = bars.table.assign(paper=math.nan, ours=math.nan)
    assert bars.draw(empty).layout.yaxis.range[1] > 0
    assert passes.draw(passes.table.assign(passes=0.0, low=0.0, high=0.0)).layout.xaxis.range[1] > 0


def test_a_shape_of_many_nodes_starts_a_new_line() -> None:
    rates = [[0.5]]
    short = figures.shapes(figures.slots({"a": Shape.chain(3), "b": Shape.chain(3)}, rates))
    long = figures.shapes(figures.slots({"a": Shape.chain(16), "b": Shape.chain(16)}, rates))
    assert long.layout.height > short.layout.height
