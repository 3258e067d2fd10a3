import math

import pandas as pd
import plotly.graph_objects as go
import pytest

from specdec_lib.show import figures

NONE = math.nan
EWIF = pd.DataFrame(
    [
        ("CNNDM", "SMALL", "9", 2.65, 2.654, 2.654, "9"),
        ("CNNDM", "BASE + SMALL", "5, 3", 3.03, 3.027, 3.044, "5, 5"),
    ],
    columns=["data", "drafters", "lengths", "paper", "ours", "best", "best_lengths"],
)
POSITION = pd.DataFrame(
    [
        ("code", "middle", 2, 90, 0.5, 0.4, 0.6),
        ("code", "middle", 1, 100, 0.8, 0.7, 0.9),
        ("math", "Max-Gram", 1, 100, 0.4, 0.3, 0.5),
    ],
    columns=["domain", "drafter", "position", "at_risk", "rate", "low", "high"],
)
SWI = pd.DataFrame(
    [
        ("code", "parameters", "cascade", "middle + Max-Gram", NONE, 2.0, 1.9, 2.2),
        ("code", "parameters", "speculative", "middle", NONE, 1.5, 1.4, 1.6),
        ("GSM8K", "parameters", "speculative", "middle", 3.38, NONE, NONE, NONE),
        ("MMLU", "parameters", "speculative", "middle", 3.97, NONE, NONE, NONE),
        ("GSM8K", "parameters", "autoregressive", "", 1.0, NONE, NONE, NONE),
        ("code", "measured", "speculative", "middle", NONE, 1.2, 1.1, 1.3),
    ],
    columns=["data", "prices", "method", "drafters", "paper", "ours", "ours_low", "ours_high"],
)
WALLTIME = pd.DataFrame(
    [
        ("code", "autoregressive", NONE, 150.0, 149.0, 151.0, 1.0, 1.0, 1.0, NONE),
        ("code", "cascade", NONE, 300.0, 290.0, 310.0, 2.0, 1.9, 2.1, NONE),
        ("math", "autoregressive", 33.34, 150.0, 149.0, 151.0, 1.0, 1.0, 1.0, 1.0),
        ("math", "cascade", 56.72, 270.0, 260.0, 280.0, 1.8, 1.7, 1.9, 1.7),
        ("MMLU", "cascade", 55.6, NONE, NONE, NONE, NONE, NONE, NONE, 1.68),
    ],
    columns=[
        "domain",
        "method",
        "paper",
        "ours",
        "ours_low",
        "ours_high",
        "ratio",
        "ratio_low",
        "ratio_high",
        "paper_ratio",
    ],
)
SENSITIVITY = pd.DataFrame(
    [
        ("code", 2, 1.8, 1.7, 1.9, 0.9, NONE, NONE),
        ("code", 1, 2.0, 1.9, 2.1, 1.0, NONE, NONE),
        ("GSM8K", 1, NONE, NONE, NONE, NONE, 56.16, 1.0),
        ("GSM8K", 3, NONE, NONE, NONE, NONE, 53.73, 0.957),
    ],
    columns=[
        "domain",
        "k00",
        "ours",
        "ours_low",
        "ours_high",
        "ours_relative",
        "paper",
        "paper_relative",
    ],
)
ABLATION = pd.DataFrame(
    [
        ("code", "full", 0.0, 0.0, 0.0, NONE),
        ("code", "no horizontal", -3.0, -4.0, -2.0, NONE),
        ("code", "no lenience", 1.0, 0.5, 2.0, NONE),
        ("math", "no horizontal", -5.0, -6.0, -4.0, -4.6),
    ],
    columns=["domain", "variant", "change_percent", "low", "high", "paper"],
)
LENIENCE = pd.DataFrame(
    [
        ("math", 2.0, 1.9, 1.8, 2.0, 3.5),
        ("math", 1.0, 1.7, 1.6, 1.8, 3.2),
        ("code", 1.0, 1.5, 1.4, 1.6, 2.8),
    ],
    columns=["domain", "lenience", "swi", "swi_low", "swi_high", "tokens_per_round"],
)
SURFACE = pd.DataFrame(
    [
        (k1, k2, NONE if k1 == k2 == 0 else 1 + k1 / 10 + k2 / 100)
        for k1 in range(3)
        for k2 in range(2)
    ],
    columns=["k1", "k2", "swi"],
)


def surface(table: pd.DataFrame, best: tuple[int, int] = (2, 1)) -> go.Figure:
    return figures.surface(
        table, best=best, across="tokens of the middle", down="tokens of the draft"
    )


TABLES = {
    figures.ewif: EWIF,
    figures.position: POSITION,
    figures.swi: SWI,
    figures.walltime: WALLTIME,
    figures.sensitivity: SENSITIVITY,
    figures.cascade_ablation: ABLATION,
    figures.lenience: LENIENCE,
    surface: SURFACE,
}


def named(figure: go.Figure, name: str) -> list[go.Scatter | go.Bar]:
    return [trace for trace in figure.data if trace.name == name]


def legend(figure: go.Figure) -> list[str]:
    return [trace.name for trace in figure.data if trace.name and trace.showlegend is not False]


def panel_titles(figure: go.Figure) -> list[str]:
    return [note.text for note in figure.layout.annotations]


def words(figure: go.Figure) -> list[str]:
    return [
        text.strip()
        for trace in figure.data
        if isinstance(trace, go.Scatter) and trace.mode == "text"
        for text in trace.text
    ]


def is_hollow(trace: go.Scatter) -> bool:
    return trace.marker.symbol.endswith("-open")


def test_ewif_stands_beside_the_printed_value_and_a_better_k_has_a_star() -> None:
    figure = figures.ewif(EWIF)
    printed, ours, best = figure.data
    assert panel_titles(figure) == ["CNNDM"] and is_hollow(printed) and not is_hollow(ours)
    assert list(printed.text) == ["2.65", "3.03"] and list(ours.y) == [2.654, 3.027]
    assert (
        list(best.y) == [3.044]
        and best.text[0] == "3.044<br>k = 5, 5"
        and best.marker.symbol == "star"
    )
    assert (
        printed.x[1] < ours.x[1] < best.x[0]
        and list(figure.layout.xaxis.ticktext)[1] == "BASE + SMALL<br>k = 5, 3"
    )
    assert [trace.marker.symbol for trace in figures.ewif(EWIF.assign(best=EWIF.ours)).data] == [
        "diamond-open",
        "circle",
    ], "no star where none is better"


def test_position_is_a_line_with_a_band_per_drafter_and_a_panel_per_domain() -> None:
    figure = figures.position(POSITION)
    assert panel_titles(figure) == ["code", "math"] and legend(figure) == ["middle", "Max-Gram"]
    (middle,) = named(figure, "middle")
    assert (
        list(middle.x) == [1, 2] and list(middle.y) == [0.8, 0.5] and middle.customdata[1][2] == 90
    )
    bands = [trace for trace in figure.data if trace.fill == "toself"]
    assert [list(band.y) for band in bands] == [[0.7, 0.4, 0.6, 0.9], [0.3, 0.5]]
    assert named(figure, "Max-Gram")[0].line.color == "#009E73", (
        "the colour of the statistical models"
    )
    assert list(figures.position(POSITION.assign(rate=[NONE, 0.8, 0.4])).data[1].x) == [1], (
        "a missing rate draws nothing"
    )


def test_swi_has_the_known_sets_in_their_order_and_the_paper_as_hollow_marks() -> None:
    figure = figures.swi(SWI)
    assert panel_titles(figure) == ["prices: parameters", "prices: measured"]
    assert list(figure.layout.yaxis.ticktext) == [
        "middle<br><i>speculative</i>",
        "middle + Max-Gram<br><i>cascade</i>",
    ]
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1], "the first set is on top"
    assert legend(figure) == ["code", "paper, GSM8K", "paper, MMLU"]
    (gsm8k,), (mmlu,), ours = (
        named(figure, "paper, GSM8K"),
        named(figure, "paper, MMLU"),
        named(figure, "code"),
    )
    assert (
        is_hollow(gsm8k)
        and is_hollow(mmlu)
        and gsm8k.marker.symbol != mmlu.marker.symbol
        and not is_hollow(ours[0])
    )
    assert list(gsm8k.x) == [3.38] and list(mmlu.x) == [3.97], (
        "plain decoding is the line, not a row"
    )
    assert (
        list(ours[0].x) == [2.0, 1.5]
        and list(ours[0].error_x.array) == pytest.approx([0.2, 0.1])
        and len(ours) == 2
    )
    assert ours[0].y[1] < gsm8k.y[0] < mmlu.y[0] < 0.5 < ours[0].y[0], (
        "a lane each, within the row of their set"
    )
    assert {shape.x0 for shape in figure.layout.shapes if shape.x0 == shape.x1} == {1}


def test_walltime_compares_ratios_and_writes_tokens_per_second_into_the_bars() -> None:
    figure = figures.walltime(WALLTIME)
    (code,), (math_,), (paper,) = (
        named(figure, "code"),
        named(figure, "math"),
        named(figure, "paper"),
    )
    assert (
        list(code.y) == [1.0, 2.0]
        and list(code.text) == ["150", "300"]
        and list(code.error_y.array) == pytest.approx([0, 0.1])
    )
    assert (
        list(paper.y) == [1.0, 1.7, 1.68] and is_hollow(paper) and paper.customdata[1][2] == 56.72
    )
    assert paper.x[0] > math_.x[0] + math_.width / 2, "beside the bar, not on it"
    assert list(figure.layout.xaxis.ticktext) == ["code", "math", "MMLU"] * 2
    assert panel_titles(figure) == ["<b>autoregressive</b>", "<b>cascade</b>"] and not named(
        figure, "MMLU"
    )


def test_walltime_without_the_paper_has_no_hollow_mark() -> None:
    assert legend(figures.walltime(WALLTIME.assign(paper_ratio=NONE))) == ["code", "math"]


def test_sensitivity_is_relative_with_the_papers_three_points() -> None:
    figure = figures.sensitivity(SENSITIVITY)
    (code,), (paper,) = named(figure, "code"), named(figure, "paper (tokens per second)")
    assert (
        list(code.x) == [1, 2]
        and list(code.y) == [1.0, 0.9]
        and is_hollow(paper)
        and list(paper.y) == [1.0, 0.957]
    )
    assert list(paper.customdata) == [56.16, 53.73]
    assert list(figure.data[0].y) == pytest.approx([0.95, 0.85, 0.95, 1.05]), (
        "the band is relative too"
    )


def test_the_paper_is_drawn_once_even_where_every_domain_repeats_it() -> None:
    repeated = pd.concat([SENSITIVITY, SENSITIVITY.iloc[2:].assign(domain="math")])
    assert list(named(figures.sensitivity(repeated), "paper (tokens per second)")[0].x) == [1, 3]


def test_an_ablation_is_a_bar_per_part_with_the_full_cascade_as_the_line() -> None:
    figure = figures.cascade_ablation(ABLATION)
    assert panel_titles(figure) == ["code", "math"] and list(figure.layout.yaxis.ticktext) == [
        "no horizontal",
        "no lenience",
    ]
    bars = [trace for trace in figure.data if isinstance(trace, go.Bar)]
    assert [list(bar.x) for bar in bars] == [[-3.0, 1.0], [-5.0]] and list(
        bars[0].error_x.arrayminus
    ) == [1.0, 0.5]
    (paper,) = named(figure, "paper")
    assert list(paper.x) == [-4.6] and is_hollow(paper) and paper.xaxis == "x2"
    assert words(figure) == ["+1.0", "−3.0", "−5.0", "−4.6"]
    assert {shape.x0 for shape in figure.layout.shapes} == {0}


def test_lenience_shows_speed_and_tokens_per_round_side_by_side() -> None:
    figure = figures.lenience(LENIENCE)
    assert panel_titles(figure) == ["SWI", "tokens per round"] and legend(figure) == [
        "math",
        "code",
    ]
    speed, length = named(figure, "math")
    assert (
        list(speed.x) == [1.0, 2.0]
        and list(speed.y) == [1.7, 1.9]
        and list(length.y) == [3.2, 3.5]
        and length.xaxis == "x2"
    )
    assert list(figure.data[0].y) == [1.6, 1.8, 2.0, 1.8] and figure.data[0].fill == "toself"


def test_a_domain_looks_the_same_in_every_figure() -> None:
    seen = [
        named(figure, "math")[0].line.color
        for figure in (figures.lenience(LENIENCE), figures.lenience(LENIENCE.iloc[::-1]))
    ]
    assert seen == [named(figures.walltime(WALLTIME), "math")[0].marker.line.color] * 2


def test_a_surface_writes_its_values_and_frames_the_optimum() -> None:
    figure = surface(SURFACE)
    assert figure.data[0].z.shape == (2, 3) and figure.data[0].z[1][2] == pytest.approx(1.21)
    assert figure.layout.title.text == "SWI over K: 1.210 in the frame, at (2, 1)"
    assert (figure.layout.shapes[0].x0, figure.layout.shapes[0].y0) == (1.5, 0.5)
    assert panel_titles(figure) == ["1.01", "1.10", "1.11", "1.20", "1.21"], (
        "an empty cell has no number"
    )
    assert (figure.layout.xaxis.title.text, figure.layout.yaxis.title.text) == (
        "tokens of the middle",
        "tokens of the draft",
    )


def test_a_surface_with_gaps_between_its_numbers_writes_each_into_its_cell() -> None:
    uneven = SURFACE.assign(k2=SURFACE.k2 * 8)
    figure = surface(uneven, best=(2, 8))
    written = {(note.x, note.y): note.text for note in figure.layout.annotations}
    assert written == {
        (0, 1): "1.01",
        (1, 0): "1.10",
        (1, 1): "1.11",
        (2, 0): "1.20",
        (2, 1): "1.21",
    } and list(figure.data[0].y) == ["0", "8"]


@pytest.mark.parametrize("draw", TABLES, ids=lambda draw: draw.__name__)
def test_every_figure_has_a_title_and_axes_with_words_and_fits_a_page(draw) -> None:
    figure = draw(TABLES[draw])
    assert figure.layout.title.text and figure.layout.width <= 900
    assert all(axis.title.text for axis in figure.select_xaxes())
    assert figure.layout.yaxis.title.text


@pytest.mark.parametrize("draw", TABLES, ids=lambda draw: draw.__name__)
def test_every_figure_refuses_a_table_without_its_columns_or_rows(draw) -> None:
    for table in (
        TABLES[draw].iloc[:0],
        *(TABLES[draw].drop(columns=column) for column in TABLES[draw]),
    ):
        with pytest.raises(ValueError, match="with the columns"):
            draw(table)


@pytest.mark.parametrize("draw", TABLES, ids=lambda draw: draw.__name__)
def test_every_figure_refuses_a_row_that_is_there_twice(draw) -> None:
    with pytest.raises(ValueError, match="at most one row per"):
        draw(pd.concat([TABLES[draw]] * 2))


@pytest.mark.parametrize(
    "draw, table, message",
    [
        (figures.position, POSITION.assign(low=0.95), "low ≤ rate ≤ high"),
        (figures.swi, SWI.assign(ours_high=0.5), "ours_low ≤ ours ≤ ours_high"),
        (figures.swi, SWI.assign(method="autoregressive"), "with the columns"),
        (figures.walltime, WALLTIME.assign(ratio_low=9.0), "ratio_low ≤ ratio ≤ ratio_high"),
        (figures.sensitivity, SENSITIVITY.assign(ours_high=0.1), "ours_low ≤ ours ≤ ours_high"),
        (figures.cascade_ablation, ABLATION.assign(low=9.0), "low ≤ change_percent ≤ high"),
        (figures.cascade_ablation, ABLATION.iloc[:1], "with the columns"),
        (figures.lenience, LENIENCE.assign(swi_low=9.0), "swi_low ≤ swi ≤ swi_high"),
        (surface, SURFACE.iloc[1:], "every pair of its k1 and k2: 3 times 2, got 5 rows"),
        (lambda table: surface(table, (0, 0)), SURFACE, "with a value, got k1 = 0, k2 = 0"),
        (lambda table: surface(table, (7, 0)), SURFACE, "must be a cell of the surface"),
    ],
)
def test_a_table_that_cannot_be_drawn_is_refused(draw, table: pd.DataFrame, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        draw(table)
