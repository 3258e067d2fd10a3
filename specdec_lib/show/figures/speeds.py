"""Figures of speed: predicted and measured, over the size of the tree, and over settings."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.forms.cells import TWO_SIDED, add_cells, frame_cell
from specdec_lib.show.figures.forms.chart import PLAIN, open_chart
from specdec_lib.show.figures.forms.dots import add_dots
from specdec_lib.show.figures.forms.lines import add_diagonal
from specdec_lib.show.figures.marks import (
    check,
    check_among,
    check_grid,
    ends_of,
    lanes,
    marks,
    names_of,
)
from specdec_lib.show.figures.theme import GAIN, INK, LOSS, Look, looks

SPEED_UP_ENDS = ("speed_up_low", "speed_up_high")
VERDICTS = {
    "slower than plain decoding": Look(LOSS, symbol="x"),
    "too close to tell": Look(INK, symbol="circle-open"),
    "faster": Look(GAIN),
}


def predicted_speeds(table: pd.DataFrame) -> go.Figure:
    """Measured against predicted tokens per second, a mark per setting and a shape per series; in
    the band they differ by at most 10 %.

    table    a row per setting: `name`, `predicted`, `measured`, `low` and `high` (interval of the
             measured), `series`, optionally `sampling`: a panel each, with the same axes

    The headline has the median and the largest error, as shares of what was measured.
    """
    check(table, ("name", "predicted", "measured", "low", "high", "series"))
    values = table[["predicted", "measured", "low", "high"]].astype(float)
    if not (values > 0).all().all():
        raise ValueError(f"speeds are above 0, got down to {float(values.min().min()):g}")
    rows = marks(
        table.assign(note=table["name"]),
        x="predicted",
        y="measured",
        series="series",
        panel="sampling" if "sampling" in table else "",
        ends=("low", "high"),
    )
    panels = names_of(rows["panel"])
    chart = open_chart(
        panels,
        size=(910 if len(panels) > 1 else 640, 444),
        x="predicted, in tokens per second",
        y="measured, in tokens per second",
        gap=0.04,
    )
    ends = 0.94 * float(values.min().min()), 1.06 * float(values.max().max())
    add_diagonal(chart, ends, name="as predicted", near=0.1)
    add_dots(chart, rows, looks(table["series"]))
    for axis in "xy":
        chart.update_axes(axis, {"range": ends})
    errors = (values["predicted"] / values["measured"] - 1).abs()
    return chart.titled(
        f"{len(table)} settings: median error {errors.median():.1%}, largest {errors.max():.1%}"
    )


def speed_surface(table: pd.DataFrame) -> go.Figure:
    """Speed-up over budget and deepest guess, a panel per width, as cells with their values; blue
    is faster than plain decoding, orange slower.

    table    a row per cell: `budget` (nodes without the root), `depth` (the deepest guess allowed),
             `width` (children per node, at most), `speed_up`

    A frame marks the best of all.
    """
    keys = ("budget", "depth", "width")
    check(table, (*keys, "speed_up"), once=keys)
    check_grid(table, keys)
    widths = sorted(set(table["width"]))
    names = [
        f"width {width}" if width == widths[0] == 1 else f"width ≤ {width}" for width in widths
    ]
    chart = open_chart(
        names,
        size=(min(900, 120 + 260 * len(widths)), 94 + 34 * table["budget"].nunique()),
        x="deepest guess",
        y="budget, in nodes",
        gap=0.03,
    )
    most = float((table["speed_up"] - 1).abs().max()) or 1.0
    best = table.loc[table["speed_up"].idxmax()]
    for name, width in zip(names, widths, strict=True):
        own = table[table["width"] == width]
        grid = own.pivot(index="budget", columns="depth", values="speed_up")
        add_cells(
            chart,
            grid,
            name="speed-up",
            ends=(1 - most, 1 + most),
            shades=TWO_SIDED,
            panel=name,
            scale=width == widths[-1],
        )
        if width == best["width"]:
            at = list(grid.columns).index(best["depth"]), list(grid.index).index(best["budget"])
            frame_cell(chart, *at, panel=name)
    return chart.titled(
        f"Speed-up over plain decoding: {best['speed_up']:.2f} in the frame, budget"
        f" {best['budget']:g}, depth {best['depth']:g}, width {best['width']:g}"
    )


def setting_speed_ups(table: pd.DataFrame) -> go.Figure:
    """Speed-up over plain decoding of every setting, the slowest on top: a dot with its interval, a
    panel per sampling; below 1 it does not pay.

    table    a row per dot: `draft`, `sampling`, `speed_up`, `speed_up_low`, `speed_up_high`

    Settings stand in the order of their mean.
    """
    keys = ("draft", "sampling")
    check(table, (*keys, "speed_up", *SPEED_UP_ENDS), once=keys)
    means = table.groupby("draft", sort=False)["speed_up"].mean().sort_values(kind="stable")
    order = names_of(means.index.to_series())
    slower, close, faster = VERDICTS
    low, high = (table[name] for name in SPEED_UP_ENDS)
    said = table.assign(
        verdict=np.select([high < 1, low > 1], [slower, faster], close),
        place=[order.index(str(draft)) for draft in table["draft"]],
        note=table["draft"],
    )
    rows = marks(
        said,
        x="speed_up",
        y="place",
        series="verdict",
        panel="sampling",
        ends=SPEED_UP_ENDS,
        value="speed_up",
    )
    panels = names_of(rows["panel"])
    size = (240 + 320 * len(panels), 74 + 24 * len(order))
    chart = open_chart(panels, size=size, x="speed-up over plain decoding", y="", gap=0.04)
    add_dots(chart, rows, VERDICTS, lying=True)
    chart.figure.add_vline(x=1, **PLAIN)
    chart.update_axes("x", {"range": [0, 1.05 * float(ends_of(rows, "x").max())]})
    chart.name_places("y", order, longest=40)
    return chart.titled("Where speculation pays, and where it is slower than plain decoding")


def speed_sweep(
    table: pd.DataFrame, *, over: Sequence[str] = ("temperature", "domain")
) -> go.Figure:
    """Speed-up over plain decoding along what was swept: a panel per sweep, dots with intervals per
    draft, joined where the values are numbers.

    table    a row per dot: `sweep` (the panel, one of `over`), `value` (a number or a word),
             `draft`, `speed_up`, `speed_up_low`, `speed_up_high`
    """
    keys = ("sweep", "value", "draft")
    check(table, (*keys, "speed_up", *SPEED_UP_ENDS), once=keys)
    check_among("a sweep", table["sweep"], over)
    sweeps = [name for name in over if name in set(table["sweep"])]
    chart = open_chart(
        [f"by {name}" for name in sweeps],
        size=(120 + 390 * len(sweeps), 364),
        x="",
        y="speed-up over plain decoding (dotted)",
    )
    drafts = names_of(table["draft"])
    for sweep in sweeps:
        own = table[table["sweep"] == sweep]
        place = lanes(own["value"], own["draft"], room=0.07 * len(drafts), order=drafts)
        rows = marks(
            own.assign(place=place, what=f"by {sweep}"),
            x="place",
            y="speed_up",
            series="draft",
            panel="what",
            ends=SPEED_UP_ENDS,
        )
        ordered = all(isinstance(value, int | float) for value in own["value"])
        add_dots(chart, rows, looks(drafts), joined=2 if ordered else 0)
        words = names_of(own["value"].map("{:g}".format) if ordered else own["value"])
        ticks = {"tickvals": list(range(len(words))), "ticktext": words, "title": sweep}
        chart.figure.update_xaxes(ticks, showgrid=False, **chart.panels[f"by {sweep}"])
    chart.figure.add_hline(y=1, **PLAIN)
    chart.update_axes("y", {"range": [0, 1.08 * float(table["speed_up_high"].max())]})
    return chart.titled("Speed-up over plain decoding, by temperature and by kind of text")
