import itertools
import math

import pandas as pd
import plotly.graph_objects as go
import pytest

from specdec_lib.show import figures
from specdec_lib.show.figures import labels, marks

BUDGETS = pd.DataFrame(
    {
        "budget": [4, 1, 2, 1, 2, 4],
        "tokens_per_round": [2.5, 1.5, 2.0, 1.4, 1.6, 1.7],
        "shape": ["best static"] * 3 + ["<chain>"] * 3,
        "measured": [False, False, True, False, False, True],
        "low": [math.nan, math.nan, 1.9, math.nan, math.nan, 1.6],
        "high": [math.nan, math.nan, 2.1, math.nan, math.nan, 1.9],
    }
)
RATES = pd.DataFrame(
    {
        "depth": [2, 1, 1],
        "confidence": [0.5, 0.8, 0.8],
        "rate": [0.5, 0.75, math.nan],
        "low": [0.4, 0.7, math.nan],
        "high": [0.6, 0.8, math.nan],
        "at_risk": [50, 200, 0],
        "series": ["draft", "draft", "n-gram"],
    }
)
PAIRS = pd.DataFrame(
    {
        "name": ["$a", "b"],
        "predicted": [2.0, 3.0],
        "measured": [2.1, 2.9],
        "low": [2.0, 2.8],
        "high": [2.2, 3.0],
    }
)


def shown(figure: go.Figure) -> dict[str, go.Scatter]:
    """The traces that the legend names."""
    return {
        trace.name: trace for trace in figure.data if trace.name and trace.showlegend is not False
    }


def test_budget_curves_draw_predictions_as_lines_and_measurements_as_dots() -> None:
    figure = figures.budget_curves(BUDGETS)
    assert list(shown(figure)) == ["best static", "&lt;chain&gt;", "predicted", "measured"]
    line, dots = figure.data[:2]
    assert line.mode == "lines" and list(line.x) == [1, 4] and list(line.y) == [1.5, 2.5], (
        "along the budget, whatever the table's order"
    )
    assert (
        dots.mode == "markers"
        and list(dots.x) == [2]
        and list(dots.error_y.array) == pytest.approx([0.1])
    )
    assert figure.layout.xaxis.type == "log" and list(figure.layout.xaxis.ticktext) == [
        "1",
        "2",
        "4",
    ]


def test_budget_curves_without_measurements_are_lines_with_dots_and_bands() -> None:
    plain = BUDGETS.drop(columns="measured").assign(
        low=lambda table: table["tokens_per_round"] - 0.1,
        high=lambda table: table["tokens_per_round"] + 0.2,
    )
    figure = figures.budget_curves(plain)
    assert list(shown(figure)) == ["best static", "&lt;chain&gt;"]
    assert (
        list(figure.data[0].y) == pytest.approx([1.4, 1.9, 2.4, 2.7, 2.2, 1.7])
        and figure.data[0].fill == "toself"
    )
    assert figure.data[1].mode == "lines+markers"
    assert len(figures.budget_curves(BUDGETS[["budget", "tokens_per_round", "shape"]]).data) == 4, (
        "two curves and two entries of the legend"
    )


def test_many_budgets_are_ticked_at_powers_of_two() -> None:
    table = pd.DataFrame({"budget": range(1, 41), "tokens_per_round": 1.0, "shape": "chain"})
    assert list(figures.budget_curves(table).layout.xaxis.tickvals) == [1, 2, 4, 8, 16, 32]


def test_acceptance_is_a_line_per_series_with_intervals_and_what_was_at_risk() -> None:
    figure = figures.acceptance(RATES, x="depth", x_title="depth of the <node>")
    assert list(shown(figure)) == ["draft", "n-gram"]
    assert list(figure.data[0].x) == [1, 2] and list(figure.data[0].customdata[0]) == [
        0.7,
        0.8,
        200,
    ]
    assert figure.layout.xaxis.title.text == "depth of the &lt;node&gt;" and list(
        figure.layout.xaxis.tickvals
    ) == [1, 2]
    assert figure.layout.yaxis.title.text == "acceptance rate" and tuple(
        figure.layout.yaxis.range
    ) == (0, 1.02)
    assert (
        figures.acceptance(RATES, x="depth", x_title="depth", log_x=True).layout.xaxis.type == "log"
    )


def test_calibration_has_the_diagonal_and_areas_by_what_was_at_risk() -> None:
    figure = figures.calibration(RATES)
    assert list(shown(figure)) == ["perfectly calibrated", "draft", "n-gram"]
    assert figure.data[0].line.dash == "dot" and list(figure.data[0].x) == list(
        figure.data[0].y
    ) == [0, 1]
    assert (
        list(figure.data[1].marker.size) == [50, 200] and figure.data[1].marker.sizemode == "area"
    )


def test_predicted_names_its_dots_and_shows_the_line_and_the_band() -> None:
    figure = figures.predicted(PAIRS)
    assert list(shown(figure)) == ["within 5 %", "as predicted", "measured, with interval"]
    band, line, dots = figure.data
    assert (
        list(line.x) == list(line.y)
        and band.y[0] == pytest.approx(0.95 * band.x[0])
        and band.y[2] == pytest.approx(1.05 * band.x[2])
    )
    assert list(dots.text) == ["&#36;a", "b"] and dots.mode == "markers+text"
    series = figures.predicted(PAIRS.assign(series=["chain", "tree"]))
    assert [trace.name for trace in series.data[2:]] == ["chain", "tree"]


def test_predicted_names_many_dots_on_hover_alone() -> None:
    assert figures.predicted(pd.concat([PAIRS] * 8)).data[2].mode == "markers"


@pytest.mark.parametrize(
    "draw, table, message",
    [
        (figures.budget_curves, BUDGETS.assign(budget=0), "at least 1 node, got 0"),
        (figures.budget_curves, BUDGETS.assign(high=1.0), "low ≤ tokens_per_round ≤ high"),
        (figures.calibration, RATES.assign(low=0.9), "low ≤ rate ≤ high"),
        (figures.predicted, PAIRS.assign(low=9.0), "low ≤ measured ≤ high"),
        (
            lambda table: figures.acceptance(table, x="depth", x_title="", log_x=True),
            RATES.assign(depth=0),
            "above 0, got 0",
        ),
        (
            lambda table: figures.acceptance(table, x="rank", x_title=""),
            RATES,
            "with the columns rank, rate",
        ),
        (figures.budget_curves, RATES, "with the columns"),
        (figures.calibration, PAIRS, "with the columns"),
        (figures.predicted, PAIRS.iloc[:0], "with the columns"),
    ],
)
def test_a_table_that_cannot_be_drawn_is_refused(draw, table: pd.DataFrame, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        draw(table)


def test_no_two_of_ten_series_look_alike() -> None:
    found = marks.looks([f"series {number}" for number in range(10)])
    for part in ("colour", "symbol"):
        assert len({getattr(look, part) for look in list(found.values())[:8]}) == 8
    assert len({(look.dash, look.symbol) for look in found.values()}) == 10, (
        "told apart without colour too"
    )
    mixed = marks.looks(["chain", "draft", "tree"])
    assert mixed["draft"].colour == "#0072B2" and len({look.colour for look in mixed.values()}) == 3


@pytest.mark.parametrize(
    "value, text",
    [
        (0, "0.00"),
        (0.012345, "0.012"),
        (1.234, "1.23"),
        (12.34, "12.3"),
        (1234.5, "1,234"),
        (math.nan, ""),
    ],
)
def test_numbers_are_short(value: float, text: str) -> None:
    assert marks.short(value) == text


def test_quantities_have_prefixes() -> None:
    assert [marks.with_prefix(value, "B/s") for value in (3.35e12, 1.5e6, 12)] == [
        "3.35 TB/s",
        "1.5 MB/s",
        "12 B/s",
    ]


def test_long_names_are_broken_and_escaped() -> None:
    assert marks.wrapped("a tree of <16> nodes", 9) == "a tree of<br>&lt;16&gt;<br>nodes"


def test_words_beside_crowded_dots_cover_neither_each_other_nor_a_dot() -> None:
    dots = [(100.0, 100.0), (104.0, 118.0), (300.0, 20.0), (395.0, 200.0)]
    texts = ["first", "second<br>line", "third", "at the right edge"]
    places = labels.beside(dots, texts, size=(400.0, 300.0))
    boxes = [
        labels._box(dot, text, place) for dot, text, place in zip(dots, texts, places, strict=True)
    ]
    assert all(labels._shared(one, other) == 0 for one, other in itertools.combinations(boxes, 2))
    assert all(
        labels._shared(box, (x - 6, y - 6, x + 6, y + 6)) == 0 for box in boxes for x, y in dots
    )
    assert places[3].endswith("left")


def test_words_keep_off_obstacles_and_need_a_dot_each() -> None:
    assert labels.beside([(50.0, 50.0)], ["word"], size=(200.0, 100.0)) == ["middle right"]
    assert labels.beside(
        [(50.0, 50.0)], ["word"], size=(200.0, 100.0), obstacles=[(60.0, 0.0, 200.0, 100.0)]
    ) == ["middle left"]
    with pytest.raises(ValueError, match="1 dots need as many texts, got 0"):
        labels.beside([(0.0, 0.0)], [], size=(9.0, 9.0))


def test_heights_are_spread_as_little_as_needed() -> None:
    assert labels.spread([5.0, 1.0, 1.0], 1.0) == [5.0, 0.5, 1.5]
    moved = labels.spread([1.0, 1.1, 1.2, 3.0], 0.5)
    assert (
        all(after - before >= 0.5 - 1e-9 for before, after in itertools.pairwise(moved))
        and moved[3] == 3.0
    )
