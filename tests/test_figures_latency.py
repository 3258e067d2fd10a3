"""The figures of seconds and speed: what they draw, what they say, and what they refuse."""

import math
from itertools import product

import pandas as pd
import plotly.graph_objects as go
import pytest

from specdec_lib.show import figures
from specdec_lib.show.widgets import faster_draft
from specdec_lib.theory import Gain, Overhead, PassTable, tree_gains

CURVES = pd.DataFrame(
    [
        {
            "model": model,
            "runtime": runtime,
            "rows": rows,
            "context_tokens": context,
            "seconds": 1e-3 * rows,
        }
        for model, runtime, context, rows in product(
            ("target", "draft"), ("reference", "fast"), (64, 256, 448), (1, 2, 3, 4)
        )
    ]
).assign(
    low_seconds=lambda t: 0.9 * t.seconds,
    high_seconds=lambda t: 1.2 * t.seconds,
    roofline_seconds=lambda t: 0.1 * t.seconds,
)
BOOKED = pd.DataFrame(
    {
        "draft": ["plain", "plain", "chain", "chain", "chain"],
        "sampling": "greedy",
        "part": ["verify", "host", "verify", "draft passes", "draft passes"],
        "model": ["target", math.nan, "target", "draft", "middle"],
        "round_seconds": [0.01, 0.001, 0.012, 0.004, 0.002],
        "share": [0.9, 0.1, 0.6, 0.2, 0.1],
    }
)
SPEEDS = pd.DataFrame(
    {
        "name": ["a", "<b>", "c"],
        "predicted": [100.0, 90.0, 80.0],
        "measured": [100.0, 100.0, 100.0],
        "low": [95.0, 95.0, 95.0],
        "high": [105.0, 105.0, 105.0],
        "series": ["chain", "chain", "tree"],
    }
)
SURFACE = pd.DataFrame(
    [(b, d, w, 0.7 + 0.1 * d + 0.01 * b * w) for b, d, w in product((2, 4), (1, 2, 3), (1, 4))]
)
SURFACE.columns = ["budget", "depth", "width", "speed_up"]
MAP = pd.DataFrame(
    [(a, c, 0.5 + 2 * a - c) for a, c in product((0.2, 0.5, 0.8), (0.0, 0.5, 1.0))],
    columns=["acceptance_rate", "cost", "speed_up"],
)
POINTS = pd.DataFrame({"pair": ["target ← draft"], "acceptance_rate": [0.6], "cost": [0.3]})
GAINS = pd.DataFrame(
    {
        "draft": ["slow", "even", "fast"] * 2,
        "sampling": ["greedy"] * 3 + ["T = 1"] * 3,
        "speed_up": [0.7, 1.0, 1.5] * 2,
        "speed_up_low": [0.6, 0.9, 1.2] * 2,
        "speed_up_high": [0.8, 1.1, 1.8] * 2,
    }
)
SWEPT = GAINS.drop(columns="sampling").assign(
    sweep=["temperature"] * 3 + ["domain"] * 3, value=[0.0] * 3 + ["code"] * 3
)


def named(figure: go.Figure) -> list[str]:
    """What the legend names."""
    return [trace.name for trace in figure.data if trace.name and trace.showlegend is not False]


def test_curves_have_a_panel_per_model_and_a_line_per_runtime_and_end_of_the_contexts() -> None:
    figure = figures.latency(CURVES)
    assert [note.text for note in figure.layout.annotations] == ["target", "draft"]
    assert named(figure) == [
        f"{runtime}, context {context}"
        for runtime in ("reference", "fast")
        for context in (64, 448)
    ] + [
        "roofline, reference",
        "roofline, fast",
    ]
    veil, line = figure.data[:2]
    assert list(line.y) == pytest.approx([1, 2, 3, 4]) and list(veil.y) == pytest.approx(
        [0.9, 1.8, 2.7, 3.6, 4.8, 3.6, 2.4, 1.2]
    )
    assert list(figure.layout.xaxis.tickvals) == [1, 2, 4]
    one = figures.latency(
        CURVES[(CURVES.context_tokens == 64) & (CURVES.runtime == "fast")].drop(
            columns="roofline_seconds"
        )
    )
    assert named(one) == ["fast"]


def test_runtimes_differ_in_colour_and_mark_and_contexts_in_dash() -> None:
    lines = [trace for trace in figures.latency(CURVES).data if trace.mode == "lines+markers"][:4]
    assert (
        len({trace.line.color for trace in lines}) == 2
        and len({trace.marker.symbol for trace in lines}) == 2
    )
    assert [trace.line.dash for trace in lines] == ["solid", "dash", "solid", "dash"]


def test_the_ledger_stacks_parts_with_their_shares() -> None:
    figure = figures.ledger(BOOKED)
    assert named(figure) == ["verify", "draft passes", "host"] and figure.layout.barmode == "stack"
    verify, drafting, host = figure.data
    assert list(verify.x) == pytest.approx([10, 12]) and list(verify.text) == ["90%", "60%"]
    assert list(drafting.y) == ["chain", "chain"] and [
        model for model, _ in drafting.customdata
    ] == ["draft", "middle"]
    assert list(host.text) == [""], "too short for a number" if host.text[0] == "" else host.text
    assert len({trace.marker.pattern.shape for trace in figure.data}) == 3, "colour is not alone"


def test_predictions_are_judged_in_the_headline() -> None:
    figure = figures.predicted_speeds(SPEEDS)
    assert figure.layout.title.text == "3 settings: median error 10.0%, largest 20.0%"
    assert named(figure) == ["within 10 %", "as predicted", "chain", "tree"]
    assert list(figure.data[2].text) == ["a", "&lt;b&gt;"] and list(
        figure.data[2].error_y.array
    ) == [5, 5]


def test_a_surface_has_a_panel_per_width_and_frames_the_best() -> None:
    figure = figures.speed_surface(SURFACE)
    assert [trace.type for trace in figure.data] == ["heatmap", "heatmap"]
    assert figure.layout.title.text.startswith("Speed-up over plain decoding: 1.16")
    assert "budget 4, depth 3, width 4" in figure.layout.title.text.replace("<br>", " ")
    [frame] = figure.layout.shapes
    assert (frame.xref, frame.x0, frame.x1, frame.y0, frame.y1) == ("x2", 1.5, 2.5, 0.5, 1.5)
    assert figure.data[0].zmin == pytest.approx(1 - 0.18) and figure.data[0].zmax == pytest.approx(
        1 + 0.18
    ), "white is plain decoding"


def test_the_map_has_levels_a_break_even_line_and_our_pairs() -> None:
    figure = figures.break_even(MAP, POINTS)
    assert named(figure)[-2:] == ["break-even", "our pairs"]
    levels, even, pairs = figure.data
    assert (
        levels.contours.start == 1
        and (even.contours.type, even.contours.value) == ("constraint", 1)
        and list(pairs.text) == ["target ← draft"]
    )
    assert levels.z.shape == (3, 3) and levels.z[0][2] == pytest.approx(2.1)


def test_settings_are_told_apart_from_plain_decoding_by_their_intervals() -> None:
    figure = figures.setting_speed_ups(GAINS)
    assert named(figure) == ["slower than plain decoding", "not told apart", "faster"]
    assert (
        list(figure.layout.yaxis.ticktext) == ["slow", "even", "fast"]
        and figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1]
    )
    assert [list(trace.x) for trace in figure.data] == [[0.7], [1.0], [1.5]] * 2
    assert len({trace.marker.symbol for trace in figure.data}) == 3


def test_sweeps_stand_side_by_side() -> None:
    figure = figures.speed_sweep(SWEPT)
    assert [note.text for note in figure.layout.annotations] == [
        "by temperature",
        "by domain",
    ] and named(figure) == ["slow", "even", "fast"]
    assert list(figure.layout.xaxis.ticktext) == ["0"] and list(figure.layout.xaxis2.ticktext) == [
        "code"
    ]
    assert [trace.y[0] for trace in figure.data] == [0.7, 1.0, 1.5] * 2


def test_a_faster_draft_gains_more_and_a_faster_host_too() -> None:
    tables = {
        "target": PassTable((1, 8), (0,), ((1.0, 1.5),)),
        "draft": PassTable((1,), (0,), ((0.3,),)),
    }
    overheads = Overhead(0.1, 0.0, 0.05), Overhead(0.05)

    def gains(faster: dict, busy: Overhead, idle: Overhead) -> list[Gain]:
        return tree_gains(
            [[0.7, 0.2]],
            faster,
            budgets=(1, 2, 4),
            depths=(1, 2, 4),
            widths=(2,),
            overhead=busy,
            plain=idle,
            context=0,
        )

    drawn = {
        (draft, host): faster_draft(gains, tables, overheads, draft=draft, host=host)
        for draft, host in ((1, 1), (10, 1), (1, 10), (0.1, 1))
    }
    best = {key: figure.data[-1].y[0] for key, figure in drawn.items()}
    assert best[0.1, 1] < best[1, 1] < min(best[10, 1], best[1, 10])
    assert (
        drawn[10, 1].layout.title.text
        == f"draft 10 × as fast, host 1 ×: {best[10, 1]:.2f} times plain decoding"
    )


@pytest.mark.parametrize(
    "call, complaint",
    [
        (lambda: figures.latency(CURVES.drop(columns="rows")), "needs rows with the columns"),
        (lambda: figures.latency(pd.concat([CURVES, CURVES])), "at most one row per"),
        (lambda: figures.latency(CURVES.assign(low_seconds=9.0)), "low_seconds ≤ seconds"),
        (lambda: figures.ledger(BOOKED.assign(part="magic")), "got magic"),
        (lambda: figures.ledger(pd.concat([BOOKED, BOOKED])), "at most one row per"),
        (lambda: figures.predicted_speeds(SPEEDS.assign(predicted=0.0)), "speeds are above 0"),
        (lambda: figures.predicted_speeds(SPEEDS.assign(low=101.0)), "low ≤ measured ≤ high"),
        (
            lambda: figures.speed_surface(SURFACE[1:]),
            "a cell per budget, depth and width: 12, got 11",
        ),
        (
            lambda: figures.break_even(MAP[1:], POINTS),
            "a cell per acceptance rate and cost: 9, got 8",
        ),
        (lambda: figures.break_even(MAP, POINTS[:0]), "needs rows with the columns"),
        (
            lambda: figures.setting_speed_ups(GAINS.assign(speed_up_low=1.9)),
            "speed_up_low ≤ speed_up ≤ speed_up_high",
        ),
        (
            lambda: figures.speed_sweep(SWEPT.assign(sweep="size")),
            "a sweep is over temperature or domain, got size",
        ),
    ],
)
def test_what_cannot_be_drawn_is_named(call, complaint) -> None:
    with pytest.raises(ValueError, match=complaint):
        call()
