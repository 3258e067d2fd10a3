import math

import pandas as pd
import plotly.graph_objects as go
import pytest

from specdec_lib.show import figures

BARS = pd.DataFrame(
    {
        "sampling": ["greedy", "greedy", "T = 1"],
        "method": ["plain", "<staged>", "plain"],
        "paper": [1.0, 3.16, math.nan],
        "ours": [1.0, 2.5, 1.0],
        "ours_low": [1.0, 2.25, math.nan],
        "ours_high": [1.0, 3.0, math.nan],
    }
)
PROMPTS = pd.DataFrame(
    {
        "sampling": ["greedy"] * 6,
        "prompt": ["a", "b", "c"] * 2,
        "method": ["staged"] * 3 + ["speculative"] * 3,
        "relative": [3.0, 1.0, 2.0, 0.5, 1.5, 2.5],
    }
)
POINTS = pd.DataFrame(
    {
        "point": ["50% $", "prompt"],
        "intensity": [1, 100],
        "flops_per_second": [5e11, 1e13],
        "kind": ["paper", "ours"],
    }
)
SQUARE = pd.DataFrame(
    {
        "shape": ["chain", "chain", "tree", "tree"],
        "stages": [2, 1, 1, 2],
        "sampling": ["greedy"] * 4,
        "value": [2.0, 1.5, 1.5, 3.0],
        "low": [1.9, 1.4, 1.4, 2.9],
        "high": [2.1, 1.6, 1.6, 3.1],
    }
)
STACKS = pd.DataFrame(
    {
        "levels": [3, 1, 3, 1],
        "stack": ["target ← draft ← n-gram", "target"] * 2,
        "metric": ["tokens per round"] * 2 + ["MB & more"] * 2,
        "value": [2.5, 1.0, 40.0, 90.0],
        "low": [2.0, 1.0, 39.0, 90.0],
        "high": [3.0, 1.0, 41.0, 90.0],
    }
)
PASSES = pd.DataFrame(
    {
        "draft": ["chain", "chain", "tree"],
        "scout": ["none", "n-gram", "none"],
        "temperature": [0.0, 0.0, 1.0],
        "passes": [4.0, 1.5, 3.0],
        "low": [4.0, 1.4, 2.9],
        "high": [4.0, 1.6, 3.1],
    }
)
ROOF = {"bytes_per_second": 10**12, "flops_per_second": 5e13, "name": "a <machine>"}


def titles(figure: go.Figure) -> list[str]:
    return [note.text for note in figure.layout.annotations]


def legend(figure: go.Figure) -> list[str]:
    return [trace.name for trace in figure.data if trace.name and trace.showlegend is not False]


def test_paper_and_ours_are_two_bars_per_method_with_their_values() -> None:
    figure = figures.paper_and_ours(BARS, y_title="tokens per second")
    assert titles(figure) == ["greedy", "T = 1"] and legend(figure) == ["paper", "ours"]
    paper, values, ours = figure.data[:3]
    assert (
        list(paper.y) == [1.0, 3.16]
        and list(values.text) == ["1.00", "3.16"]
        and paper.x[0] < 0 < ours.x[0]
    )
    assert list(ours.error_y.array) == [0.0, 0.5] and paper.error_y.array is None
    assert list(figure.data[3].y) == [1.0, 3.0], "a value stands above its interval"
    assert paper.marker.pattern.shape != ours.marker.pattern.shape, "told apart without colour too"
    assert list(figure.layout.xaxis.ticktext) == ["plain", "&lt;staged&gt;"]
    assert figure.layout.yaxis.title.text == "tokens per second (higher is better)"


def test_a_bar_without_a_number_is_left_out_with_its_value() -> None:
    figure = figures.paper_and_ours(BARS, y_title="MB per token", lower_is_better=True)
    assert math.isnan(figure.data[4].y[0]) and list(figure.data[5].text) == [""]
    assert "lower is better" in figure.layout.yaxis.title.text


def test_relative_performance_sorts_prompts_by_staged() -> None:
    figure = figures.relative_performance(PROMPTS)
    staged, speculative = figure.data
    assert (
        list(staged.y) == [1.0, 2.0, 3.0]
        and list(speculative.y) == [1.5, 2.5, 0.5]
        and list(staged.x) == [1, 2, 3]
    )
    assert (
        list(staged.customdata) == ["b", "c", "a"]
        and staged.marker.symbol != speculative.marker.symbol
    )
    assert titles(figure) == ["greedy", "plain decoding"] and figure.layout.shapes[0].y0 == 1


def test_relative_performance_without_staged_sorts_by_the_last_method() -> None:
    figure = figures.relative_performance(PROMPTS.replace("staged", "tree"))
    assert list(figure.data[1].y) == [0.5, 1.5, 2.5]


def test_roofline_gives_each_point_its_share_of_the_limit_over_it() -> None:
    figure = figures.roofline(POINTS, **ROOF)
    assert figure.layout.title.text == "a &lt;machine&gt;" and legend(figure) == ["paper", "ours"]
    texts = [text for trace in figure.data if trace.text is not None for text in trace.text]
    assert texts == [
        "50% &#36;<br>50 % of the bandwidth line",
        "prompt<br>20 % of the compute roof",
    ]
    assert list(figure.data[0].y)[1:] == [5e13, 5e13] and figure.data[0].x[1] == 50
    assert titles(figure) == ["1 TB/s", "50 TFLOP/s", "ridge 50 FLOP/byte"]


def test_ablation_is_a_line_per_shape_with_values_beside_the_dots() -> None:
    figure = figures.ablation(SQUARE, value_title="tokens per round")
    assert legend(figure) == ["chain", "tree"] and titles(figure) == ["greedy"]
    assert list(figure.data[0].y) == [1.5, 2.0] and list(figure.layout.xaxis.ticktext) == [
        "1 stage",
        "2 stages",
    ]
    words = figure.data[2]
    assert list(words.text) == ["1.50", "1.50", "2.00", "3.00"] and words.y[1] - words.y[0] > 0.1, (
        "equal values are written apart"
    )
    assert list(words.textposition) == ["middle left"] * 2 + ["middle right"] * 2


def test_stages_are_a_panel_per_metric_with_the_fewest_levels_on_top() -> None:
    figure = figures.stages(STACKS)
    assert titles(figure) == ["tokens per round", "MB &amp; more"]
    assert list(figure.layout.yaxis.ticktext) == ["target", "target ← draft ← n-gram"]
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1], "the first name is on top"
    assert list(figure.data[0].x) == [1.0, 2.5] and list(figure.data[0].y) == [0, 1]
    assert [text.strip() for text in figure.data[1].text] == ["1.00", "2.50"] and list(
        figure.data[1].x
    ) == [1.0, 3.0]


def test_passes_are_grouped_by_draft_a_dot_per_scout() -> None:
    figure = figures.passes(PASSES)
    assert titles(figure) == ["temperature 0", "temperature 1"] and legend(figure) == [
        "none",
        "n-gram",
    ]
    none, _, scouted = figure.data[:3]
    assert none.y[0] < 0 < scouted.y[0] and none.marker.symbol != scouted.marker.symbol
    assert titles(figures.passes(PASSES.rename(columns={"temperature": "sampling"}))) == [
        "0.0",
        "1.0",
    ]


@pytest.mark.parametrize(
    "draw, table, message",
    [
        (
            lambda table: figures.paper_and_ours(table, y_title=""),
            pd.concat([BARS, BARS]),
            "one row per sampling and method",
        ),
        (
            lambda table: figures.paper_and_ours(table, y_title=""),
            BARS.assign(ours_low=9.0),
            "ours_low ≤ ours ≤ ours_high",
        ),
        (figures.relative_performance, PROMPTS.iloc[:5], "one row per method: 'greedy'"),
        (
            figures.relative_performance,
            pd.concat([PROMPTS, PROMPTS]),
            "got several for sampling greedy, prompt a",
        ),
        (
            lambda table: figures.roofline(table, **ROOF),
            POINTS.assign(kind="theirs"),
            "paper, ours, got theirs",
        ),
        (
            lambda table: figures.roofline(table, **ROOF),
            POINTS.assign(intensity=0),
            "above 0, got down to 0",
        ),
        (
            lambda table: figures.ablation(table, value_title=""),
            SQUARE.assign(stages=1),
            "one row per shape and stages",
        ),
        (figures.stages, STACKS.assign(metric="one"), "one row per stack and metric"),
        (figures.passes, PASSES.assign(high=0.0), "low ≤ passes ≤ high"),
        (
            figures.passes,
            PASSES.drop(columns="temperature"),
            "with the columns draft, scout, sampling",
        ),
    ],
)
def test_a_table_that_cannot_be_drawn_is_refused(draw, table: pd.DataFrame, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        draw(table)


def test_every_figure_refuses_a_table_without_its_columns_or_rows() -> None:
    draws = (
        lambda table: figures.paper_and_ours(table, y_title=""),
        lambda table: figures.roofline(table, **ROOF),
        lambda table: figures.ablation(table, value_title=""),
        figures.relative_performance,
        figures.stages,
        figures.passes,
    )
    for draw in draws:
        for table in (
            pd.DataFrame({"x": [1]}),
            pd.concat([BARS, PROMPTS, POINTS, SQUARE, STACKS, PASSES]).iloc[:0],
        ):
            with pytest.raises(ValueError, match="with the columns"):
                draw(table)


def test_no_figure_is_wider_than_a_page() -> None:
    wide = pd.concat(
        [BARS.drop_duplicates("method").assign(sampling=f"T = {number}") for number in range(4)]
    )
    many = pd.concat(
        [STACKS.drop_duplicates("stack").assign(metric=f"metric {number}") for number in range(5)]
    )
    for figure in (
        figures.paper_and_ours(wide, y_title=""),
        figures.stages(many),
        figures.passes(PASSES),
        figures.roofline(POINTS, **ROOF),
    ):
        assert figure.layout.width <= 900


def test_nothing_but_zeros_or_gaps_is_drawn_too() -> None:
    empty = figures.paper_and_ours(BARS.assign(paper=math.nan, ours=math.nan), y_title="")
    zeros = figures.passes(PASSES.assign(passes=0.0, low=0.0, high=0.0))
    assert empty.layout.yaxis.range[1] > 0 and zeros.layout.xaxis.range[1] > 0
