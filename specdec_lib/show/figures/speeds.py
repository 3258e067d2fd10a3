"""Figures of speed: predicted and measured, over trees and settings, and against baselines."""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from specdec_lib.measure.sweep.ratios import sampling_of
from specdec_lib.show.figures.chart import PLAIN, open_chart
from specdec_lib.show.figures.forms import (
    TWO_SIDED,
    add_cells,
    add_diagonal,
    add_dots,
    frame_cell,
)
from specdec_lib.show.figures.marks import check, check_among, check_grid, lanes, marks, names_of
from specdec_lib.show.figures.theme import GAIN, INK, LOSS, Look, looks

ENDS = "speed_up_low speed_up speed_up_high"
VERDICTS = {
    "slower than plain decoding": Look(LOSS, symbol="x"),
    "too close to tell": Look(INK, symbol="circle-open"),
    "faster": Look(GAIN),
}
LANE = 19  # pixels from a baseline's dot to the next
FOREIGN = "hf_"  # methods that are nothing but baselines begin so
NAMES = {
    "autoregressive": "plain decoding",
    "hf_generate": "transformers generate",
    "hf_assisted": "transformers assisted",
    "hf_prompt_lookup": "transformers prompt lookup",
}
TICKS = (0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32)


def predicted_speeds(table: pd.DataFrame) -> go.Figure:
    """Measured against predicted tokens per second, a mark per setting and a shape per series; in
    the band they differ by at most 10 %. The headline has the median and the largest error.

    table    `name`, `predicted`, `measured`, `low` and `high` (interval of the measured), `series`,
             optionally `sampling`: a panel each, with the same axes
    """
    check(table, "", "name predicted measured low high series")
    values = table[["predicted", "measured", "low", "high"]].astype(float)
    if not (values > 0).all().all():
        raise ValueError(f"speeds are above 0, got down to {float(values.min().min()):g}")
    by = {"series": "series", "panel": "sampling" if "sampling" in table else ""}
    noted = table.assign(note=table["name"])
    rows = marks(noted, "predicted", "measured", ends="low measured high", **by)
    panels = names_of(rows["panel"])
    x, y = (f"{how}, in tokens per second" for how in ("predicted", "measured"))
    chart = open_chart(panels, size=(910 if len(panels) > 1 else 640, 444), x=x, y=y, gap=0.04)
    ends = 0.94 * float(values.min().min()), 1.06 * float(values.max().max())
    add_diagonal(chart, ends, name="as predicted", near=0.1)
    add_dots(chart, rows)
    chart.figure.update_xaxes(range=ends).update_yaxes(range=ends)
    errors = (values["predicted"] / values["measured"] - 1).abs()
    return chart.titled(
        f"{len(table)} settings: median error {errors.median():.1%}, largest {errors.max():.1%}"
    )


def speed_surface(table: pd.DataFrame) -> go.Figure:
    """Speed-up over budget and deepest guess, a panel per width, as cells with their values; blue
    is faster than plain decoding, orange slower. A frame marks the best of all.

    table    the full grid: `budget` (nodes without the root), `depth` (the deepest guess allowed),
             `width` (children per node, at most), `speed_up`
    """
    check(table, "budget depth width", "speed_up")
    check_grid(table, "budget depth width")
    widths = sorted(set(table["width"]))
    names = [f"width ≤ {width}" if width > 1 else "width 1" for width in widths]
    size = (min(900, 120 + 260 * len(widths)), 94 + 34 * table["budget"].nunique())
    chart = open_chart(names, size=size, x="deepest guess", y="budget, in nodes", gap=0.03)
    most = float((table["speed_up"] - 1).abs().max()) or 1.0
    best, ends = table.loc[table["speed_up"].idxmax()], (1 - most, 1 + most)
    for name, width in zip(names, widths, strict=True):
        own = table[table["width"] == width]
        grid, last = own.pivot(index="budget", columns="depth", values="speed_up"), widths[-1]
        look = {"ends": ends, "shades": TWO_SIDED, "panel": name, "scale": width == last}
        add_cells(chart, grid, name="speed-up", **look)
        if width == best["width"]:
            frame_cell(chart, grid, (best["depth"], best["budget"]), panel=name)
    return chart.titled(
        f"Speed-up over plain decoding: {best['speed_up']:.2f} in the frame, budget"
        f" {best['budget']:g}, depth {best['depth']:g}, width {best['width']:g}"
    )


def setting_speed_ups(table: pd.DataFrame) -> go.Figure:
    """Speed-up over plain decoding of every setting, that of the lowest mean on top: a dot with its
    interval, a panel per sampling; below 1 it does not pay.

    table    `draft`, `sampling`, `speed_up`, `speed_up_low`, `speed_up_high`
    """
    check(table, "draft sampling", ENDS)
    means = table.groupby("draft", sort=False)["speed_up"].mean().sort_values(kind="stable")
    order = names_of(means.index.to_series())
    low, high, (slower, close, faster) = table["speed_up_low"], table["speed_up_high"], VERDICTS
    verdicts = np.select([high < 1, low > 1], [slower, faster], close)
    said = table.assign(verdict=verdicts, note=table["draft"])
    place, by = table["draft"].map(str).map(order.index), {"series": "verdict", "panel": "sampling"}
    rows = marks(said, "speed_up", place, ends=ENDS, **by)
    panels = names_of(rows["panel"])
    size = (240 + 320 * len(panels), 74 + 24 * len(order))
    chart = open_chart(panels, size=size, x="speed-up over plain decoding", gap=0.04)
    add_dots(chart, rows, VERDICTS, lying=True)
    chart.figure.add_vline(x=1, **PLAIN)
    chart.start_at_zero("x", rows, 1.05)
    chart.name_places("y", order, longest=40)
    return chart.titled("Where speculation pays, and where it is slower than plain decoding")


def speed_sweep(
    table: pd.DataFrame, *, over: Sequence[str] = ("temperature", "domain")
) -> go.Figure:
    """Speed-up over plain decoding along what was swept: a panel per sweep, dots with intervals per
    draft, joined where the values are numbers.

    table    `sweep` (the panel, one of `over`), `value` (a number or a word), `draft`, `speed_up`,
             `speed_up_low`, `speed_up_high`
    """
    check(table, "sweep value draft", ENDS)
    check_among("a sweep", table["sweep"], over)
    sweeps, drafts = (
        [name for name in over if name in set(table["sweep"])],
        names_of(table["draft"]),
    )
    panels, y = [f"by {name}" for name in sweeps], "speed-up over plain decoding (dotted)"
    chart = open_chart(panels, size=(120 + 390 * len(sweeps), 364), y=y)
    for sweep, panel in zip(sweeps, panels, strict=True):
        own = table[table["sweep"] == sweep]
        place = lanes(own["value"], own["draft"], room=0.07 * len(drafts), order=drafts)
        rows = marks(own, place, "speed_up", series="draft", ends=ENDS).assign(panel=panel)
        ordered = all(isinstance(value, int | float) for value in own["value"])
        add_dots(chart, rows, looks(drafts), joined=2 if ordered else 0)
        words = names_of(own["value"].map("{:g}".format) if ordered else own["value"])
        ticks = {"tickvals": list(range(len(words))), "ticktext": words, "title": sweep}
        chart.figure.update_xaxes(ticks, showgrid=False, **chart.panels[panel])
    chart.figure.add_hline(y=1, **PLAIN)
    chart.figure.update_yaxes(range=[0, 1.08 * float(table["speed_up_high"].max())])
    return chart.titled("Speed-up over plain decoding, by temperature and by kind of text")


def versus(table: pd.DataFrame, *, domain: str = "all") -> go.Figure:
    """How many times faster each of our methods is than each baseline: a panel per sampler, a row
    per method, a dot with its interval per baseline; equal factors are equally far apart.

    table     as `make bench` writes it, of one edition
    domain    of the prompts; "all" is all together
    """
    ends = "ratio_low ratio ratio_high"
    keys = f"method baseline temperature top_k domain runtime {ends}"
    check(table, "", keys)
    table = table[table["domain"] == domain]
    check(table, "", keys)
    named = _named(table[~table["method"].str.startswith(FOREIGN)])
    check(named, "sampling name baseline", "")
    place, by = lanes(named["name"], named["baseline"], room=0.8), {"panel": "sampling"}
    rows = marks(named, "ratio", place, series="baseline", ends=ends, text="ratio", **by)
    panels, methods, baselines = (names_of(rows[one]) for one in ("panel", "name", "series"))
    size = (180 + 390 * len(panels), 74 + LANE * (len(baselines) + 1) * len(methods))
    chart = open_chart(panels, size=size, x="times as fast as the baseline", y="method")
    add_dots(chart, rows, lying=True, size=8)
    chart.figure.add_vline(x=1, **PLAIN)
    chart.name_places("y", methods)
    span = 0.85 * min(1.0, float(rows["low"].min())), 1.5 * max(1.0, float(rows["high"].max()))
    ticks = {"tickvals": TICKS, "ticktext": [f"{tick:g}" for tick in TICKS]}
    span = list(map(math.log10, span))
    chart.figure.update_xaxes(ticks, type="log", range=span, showline=True)
    prompts = "all prompts" if domain == "all" else f"{domain} prompts"
    return chart.titled(f"Speed against each baseline, with 95 % intervals ({prompts})")


def _named(table: pd.DataFrame) -> pd.DataFrame:
    """Methods, baselines and samplers in words; a method in several runtimes says which."""
    several = table.groupby("method")["runtime"].transform("nunique") > 1
    called = table["method"].replace(NAMES)
    sampling = [sampling_of(row.temperature, row.top_k or None) for row in table.itertuples()]
    return table.assign(
        name=called.where(~several, called + ", " + table["runtime"]),
        sampling=sampling,
        baseline=table["baseline"].replace(NAMES),
    )
