"""Speed: predicted and measured, over the size of the tree, over acceptance and cost, over
settings, temperatures and domains.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.lanes import headed, key
from specdec_lib.show.figures.marks import (
    Look,
    check,
    check_once,
    faint,
    groups,
    interval,
    looks,
    panels,
    place,
    short,
    tops,
)
from specdec_lib.show.figures.theme import DARK, INK, SCREEN, SOURCES, escaped

NEAR = 0.1  # a prediction this close, as a share of itself, lies in the band
LOSS, GAIN = SOURCES["target"], SOURCES["draft"]


def predicted_speeds(table: pd.DataFrame) -> go.Figure:
    """Measured against predicted tokens per second, a mark per setting and a shape per series; in
    the band they differ by at most 10 %.

    table    a row per setting: `name`, `predicted`, `measured`, `low` and `high` (interval of the
             measured), `series`, optionally `sampling`: a panel each, with the same axes

    The headline has the median and the largest error, as shares of what was measured.  Raises
    ValueError if the table lacks a column or a row, a speed is not above 0, or an interval does not
    hold its measured value.
    """
    check(table, ("name", "predicted", "measured", "low", "high", "series"))
    values = table[["predicted", "measured", "low", "high"]].astype(float)
    if not (values > 0).all().all():
        raise ValueError(f"speeds are above 0, got down to {float(values.min().min()):g}")
    errors = (values["predicted"] / values["measured"] - 1).abs()
    ends = 0.94 * float(values.min().min()), 1.06 * float(values.max().max())
    samplings = list(groups(table, "sampling")) if "sampling" in table else [("", table)]
    figure = panels(
        [name for name, _ in samplings],
        width=910 if len(samplings) > 1 else 640,
        height=520,
        gap=0.04,
    )
    styles, shown = looks(table["series"]), set()
    for number, (_, rows) in enumerate(samplings):
        where = place(number, len(samplings))
        for trace in (
            *_as_foretold(*ends),
            *(_foretold(own, name, styles[name]) for name, own in groups(rows, "series")),
        ):
            key(figure, shown, trace, where)
    figure.update_layout(showlegend=True)
    figure.update_xaxes(title="predicted, in tokens per second", range=ends)
    figure.update_yaxes(range=ends)
    figure.update_yaxes(title="measured, in tokens per second", col=1)
    return headed(
        figure,
        f"{len(table)} settings: median error {errors.median():.1%}, largest {errors.max():.1%}",
    )


def _as_foretold(low: float, high: float) -> tuple[go.Scatter, go.Scatter]:
    """The diagonal and the band around it."""
    edges = [(1 - NEAR) * low, (1 - NEAR) * high, (1 + NEAR) * high, (1 + NEAR) * low]
    veil = {
        "mode": "lines",
        "line": {"width": 0},
        "fill": "toself",
        "fillcolor": faint(INK),
        "hoverinfo": "skip",
    }
    dotted = {
        "mode": "lines",
        "line": {"dash": "dot", "color": INK, "width": 1.5},
        "hoverinfo": "skip",
    }
    return go.Scatter(x=[low, high, high, low], y=edges, name="within 10 %", **veil), go.Scatter(
        x=[low, high], y=[low, high], name="as predicted", **dotted
    )


def _foretold(rows: pd.DataFrame, name: str, look: Look) -> go.Scatter:
    """The settings of one series."""
    return go.Scatter(
        x=rows["predicted"],
        y=rows["measured"],
        mode="markers",
        marker=look.marker(),
        error_y=interval(rows, "measured", look) | {"thickness": 1, "width": 2},
        name=escaped(name),
        legendgroup=name,
        text=[escaped(str(text)) for text in rows["name"]],
        hovertemplate="%{text}<br>predicted %{x:.1f}, measured %{y:.1f} tokens per second<extra>%{fullData.name}</extra>",
    )


def speed_surface(table: pd.DataFrame) -> go.Figure:
    """Speed-up over budget and deepest guess, a panel per width, as cells with their values; blue
    is faster than plain decoding, orange slower.

    table    a row per cell: `budget` (nodes without the root), `depth` (the deepest guess allowed),
             `width` (children per node, at most), `speed_up`

    A frame marks the best of all.  Raises ValueError if the table lacks a column, a row or a cell
    of its grid, or has one twice.
    """
    check(table, ("budget", "depth", "width", "speed_up"))
    check_once(table, ("budget", "depth", "width"))
    widths = sorted(set(table["width"]))
    size = table["budget"].nunique() * table["depth"].nunique() * len(widths)
    if size != len(table):
        raise ValueError(
            f"a surface has a cell per budget, depth and width: {size}, got {len(table)} rows"
        )
    most = float((table["speed_up"] - 1).abs().max()) or 1.0
    best = table.loc[table["speed_up"].idxmax()]
    shades = [[0, LOSS], [0.5, "#FFFFFF"], [1, GAIN]]
    names = [
        f"width {width}" if width == widths[0] == 1 else f"width ≤ {width}" for width in widths
    ]
    figure = panels(
        names,
        width=min(900, 120 + 260 * len(widths)),
        height=170 + 34 * table["budget"].nunique(),
        gap=0.03,
    )
    for column, width in enumerate(widths, 1):
        grid = (
            table[table["width"] == width]
            .pivot(index="budget", columns="depth", values="speed_up")
            .astype(float)
        )
        heat = go.Heatmap(
            x=[f"{depth}" for depth in grid.columns],
            y=[f"{budget}" for budget in grid.index],
            z=grid.to_numpy(),
            zmin=1 - most,
            zmax=1 + most,
            colorscale=shades,
            xgap=1,
            ygap=1,
            showscale=column == len(widths),
            colorbar={"title": {"text": "speed-up", "side": "top"}, "thickness": 14},
            text=[[short(value) for value in line] for line in grid.to_numpy()],
            texttemplate="%{text}",
            textfont={"size": 11, "color": DARK},
            hovertemplate="budget %{y}, depth ≤ %{x}: %{z:.3f}<extra></extra>",
        )
        figure.add_trace(heat, row=1, col=column)
        if width == best["width"]:
            at = list(grid.columns).index(best["depth"]), list(grid.index).index(best["budget"])
            frame = {"x0": at[0] - 0.5, "x1": at[0] + 0.5, "y0": at[1] - 0.5, "y1": at[1] + 0.5}
            figure.add_shape(
                type="rect", **frame, line={"color": DARK, "width": 3}, row=1, col=column
            )
    figure.update_xaxes(title="deepest guess", type="category", showgrid=False)
    figure.update_yaxes(type="category", showgrid=False)
    figure.update_yaxes(title="budget, in nodes", col=1)
    words = f"budget {best['budget']:g}, depth {best['depth']:g}, width {best['width']:g}"
    return headed(
        figure, f"Speed-up over plain decoding: {best['speed_up']:.2f} in the frame, {words}"
    )


def setting_speed_ups(table: pd.DataFrame) -> go.Figure:
    """Speed-up over plain decoding of every setting, the slowest on top: a dot with its interval, a
    panel per sampling; below 1 it does not pay.

    table    a row per dot: `draft`, `sampling`, `speed_up`, `speed_up_low`, `speed_up_high`

    Settings stand in the order of their mean.  Raises ValueError if the table lacks a column or a
    row, has a dot twice, or an interval does not hold its value.
    """
    check(table, ("draft", "sampling", "speed_up", "speed_up_low", "speed_up_high"))
    check_once(table, ("draft", "sampling"))
    order = list(
        table.groupby("draft", sort=False)["speed_up"].mean().sort_values(kind="stable").index
    )
    samplings = list(groups(table, "sampling"))
    figure = panels(
        [name for name, _ in samplings],
        width=min(900, 240 + 320 * len(samplings)),
        height=150 + 24 * len(order),
        gap=0.04,
    )
    kinds = {
        "slower than plain decoding": Look(LOSS, "solid", "x"),
        "not told apart": Look(INK, "solid", "circle-open"),
        "faster": Look(GAIN, "solid", "circle"),
    }
    ends = {"low": "speed_up_low", "high": "speed_up_high"}
    shown: set[str] = set()
    for column, (_, rows) in enumerate(samplings, 1):
        words = list(kinds)
        verdicts = np.select(
            [rows["speed_up_high"] < 1, rows["speed_up_low"] > 1], [words[0], words[2]], words[1]
        )
        for name, own in groups(rows.assign(verdict=verdicts), "verdict"):
            figure.add_scatter(
                x=own["speed_up"],
                y=[order.index(draft) for draft in own["draft"]],
                mode="markers",
                marker=kinds[name].marker(9),
                error_x=interval(own, "speed_up", kinds[name], **ends),
                name=name,
                legendgroup=name,
                showlegend=name not in shown,
                text=[escaped(str(draft)) for draft in own["draft"]],
                hovertemplate="%{text}: %{x:.2f} times as fast<extra></extra>",
                row=1,
                col=column,
            )
            shown.add(name)
    figure.add_vline(x=1, line={"dash": "dot", "width": 1.5, "color": INK}, layer="below")
    figure.update_xaxes(
        title="speed-up over plain decoding",
        range=[0, 1.05 * float(tops(table, "speed_up", high=ends["high"]).max())],
    )
    figure.update_yaxes(
        tickvals=list(range(len(order))),
        ticktext=[escaped(str(name)) for name in order],
        range=[len(order) - 0.4, -0.6],
        showgrid=False,
    )
    return headed(figure, "Where speculation pays, and where it is slower")


def speed_sweep(
    table: pd.DataFrame, *, over: Sequence[str] = ("temperature", "domain")
) -> go.Figure:
    """Speed-up over plain decoding along what was swept: a panel per sweep, a line with intervals
    per draft.

    table    a row per dot: `sweep` (the panel, one of `over`), `value` (a number or a word),
             `draft`, `speed_up`, `speed_up_low`, `speed_up_high`

    Raises ValueError if the table lacks a column or a row, has a dot twice, a sweep is another, or
    an interval does not hold its value.
    """
    check(table, ("sweep", "value", "draft", "speed_up", "speed_up_low", "speed_up_high"))
    check_once(table, ("sweep", "value", "draft"))
    if strangers := sorted(set(table["sweep"]) - set(over)):
        raise ValueError(f"a sweep is over {' or '.join(over)}, got {', '.join(strangers)}")
    sweeps = [name for name in over if name in set(table["sweep"])]
    styles = looks(table["draft"])
    figure = panels(
        [f"by {name}" for name in sweeps], width=min(900, 120 + 390 * len(sweeps)), height=440
    )
    for column, sweep in enumerate(sweeps, 1):
        rows = table[table["sweep"] == sweep]
        values = list(dict.fromkeys(rows["value"]))
        for number, (name, own) in enumerate(groups(rows, "draft")):
            aside = 0.07 * (number - (rows["draft"].nunique() - 1) / 2)
            figure.add_scatter(
                x=[values.index(value) + aside for value in own["value"]],
                y=own["speed_up"],
                mode="lines+markers"
                if all(isinstance(value, int | float) for value in values)
                else "markers",  # words have no order
                line=styles[name].line,
                marker=styles[name].marker(),
                error_y=interval(
                    own, "speed_up", styles[name], low="speed_up_low", high="speed_up_high"
                ),
                name=escaped(name),
                legendgroup=name,
                showlegend=column == 1,
                hovertemplate="%{y:.2f} times as fast<extra>%{fullData.name}</extra>",
                row=1,
                col=column,
            )
        words = [
            f"{value:g}" if isinstance(value, int | float) else escaped(str(value))
            for value in values
        ]
        figure.update_xaxes(
            tickvals=list(range(len(values))),
            ticktext=words,
            title=sweep,
            showgrid=False,
            col=column,
        )
    figure.add_hline(y=1, line={"dash": "dot", "width": 1.5, "color": INK}, layer="below")
    figure.update_layout(template=SCREEN)
    figure.update_yaxes(
        range=[0, 1.08 * float(tops(table, "speed_up", high="speed_up_high").max())]
    )
    figure.update_yaxes(title="speed-up over plain decoding", col=1)
    return figure
