"""Charts of dots with intervals along an axis of numbers, or over names that stand side by side."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.chart import PLAIN, open_chart
from specdec_lib.show.figures.forms import add_diagonal, add_dots
from specdec_lib.show.figures.labels import wrap
from specdec_lib.show.figures.marks import Lanes, check, check_among, groups, marks, names_of
from specdec_lib.show.figures.theme import PAPERS, SOURCES, Look, escape, looks

MOST_TICKS = 24
WIDEST = 26  # pixels across the dot of the most tokens
SWEEPS = ("temperature", "domain")
EWIF_LOOKS = {
    "printed": PAPERS[0],
    "recomputed for the same k": Look(SOURCES["draft"]),
    "at the best k, where another is better": Look(SOURCES["target"], symbol="star"),
}


def acceptance(table: pd.DataFrame, *, x: str, x_title: str, log_x: bool = False) -> go.Figure:
    """Acceptance rates as dots with intervals, joined by a line per series.

    table    the column that `x` names, `rate` (NaN draws nothing), `low`, `high`, `at_risk`,
             `series`
    log_x    whether equal factors of `x` are equally far apart
    """
    rows = _rates(table, x).sort_values("x", kind="stable")
    if log_x and not rows["x"].min() > 0:
        raise ValueError(f"a logarithmic axis shows {x} above 0, got {rows['x'].min()}")
    chart = open_chart(size=(760, 384), x=x_title, y="acceptance rate")
    add_dots(chart, rows, joined=2)
    chart.figure.update_xaxes(type="log" if log_x else "linear", showline=True)
    values = sorted(set(rows["x"]))
    if not log_x and len(values) <= MOST_TICKS and all(float(one).is_integer() for one in values):
        chart.figure.update_xaxes(tickvals=values)
    chart.figure.update_yaxes(range=[0, 1.02])
    return chart.titled(f"How often a guess is accepted, by {x_title.split(',')[0]}")


def kinds(table: pd.DataFrame, *, x_title: str) -> go.Figure:
    """Acceptance rates as dots with intervals and their values, a place on the axis per kind and a
    dot per series.

    table    `kind`, `rate` (NaN draws nothing), `low`, `high`, `at_risk`, `series`
    """
    rows = _rates(table, Lanes("kind", "series", room=0.6), text="rate")
    chart = open_chart(size=(760, 384), x=x_title, y="acceptance rate")
    add_dots(chart, rows, size=11)
    chart.name_places("x", table["kind"])
    chart.figure.update_yaxes(range=[0, 1.08])
    return chart.titled(f"How often a guess is accepted, by {x_title.split(',')[0]}")


def calibration_curve(table: pd.DataFrame) -> go.Figure:
    """Acceptance rate against the draft's confidence, a dot with an interval per bin; the larger
    its area, the more tokens are in it.

    table    `confidence` (mean of the bin), `rate`, `low`, `high`, `at_risk`, `series`
    """
    rows = _rates(table, "confidence").sort_values("x", kind="stable")
    share = rows["at_risk"] / max(1.0, float(rows["at_risk"].max()))
    chart = open_chart(size=(600, 540), x="confidence of the draft", y="acceptance rate")
    add_diagonal(chart, (0, 1), name="perfectly calibrated")
    add_dots(chart, rows.assign(size=(WIDEST * np.sqrt(share)).clip(lower=3)), joined=1)
    chart.figure.update_layout(legend={"itemsizing": "constant"})
    _make_square(chart.figure, (-0.02, 1.02))
    return chart.titled("Is the draft's confidence right? Areas are numbers of tokens")


def _rates(table: pd.DataFrame, x: str | Lanes, text: str = "") -> pd.DataFrame:
    """Rates as marks; each says over how many tokens it is."""
    note = "{at_risk:,.0f} tokens at risk"
    return marks(table, x, "rate", series="series", ends="low rate high", text=text, note=note)


def predicted_tokens(table: pd.DataFrame) -> go.Figure:
    """Measured tokens per round against predicted ones; on the line they agree, in the band they do
    to 5 %.

    table    `name`, `predicted`, `measured`, `low` and `high` (interval of the measured), `series`
    """
    rows = _predictions(table)
    values = rows[["x", "y", "low", "high"]].astype(float)
    low, high = float(values.min().min()), float(values.max().max())
    room = 0.08 * (high - low) or 0.1 * abs(high) or 1.0
    x, y = "predicted tokens per round", "measured tokens per round"
    chart, ends = open_chart(size=(600, 540), x=x, y=y), (low - room, high + room)
    add_diagonal(chart, ends, name="as predicted", near=0.05)
    add_dots(chart, rows)
    _make_square(chart.figure, ends)
    return chart.titled("Measured against predicted: on the line they agree")


def _make_square(figure: go.Figure, ends: tuple[float, float]) -> None:
    figure.update_xaxes(range=ends, constrain="domain")
    figure.update_yaxes(range=ends, constrain="domain", scaleanchor="x")


def predicted_speeds(table: pd.DataFrame) -> go.Figure:
    """Measured against predicted tokens per second, a mark per setting and a shape per series; in
    the band they differ by at most 10 %. The headline has the median and the largest error.

    table    `name`, `predicted`, `measured`, `low` and `high` (interval of the measured), `series`,
             `sampling` (a panel each, with the same axes)
    """
    rows = _predictions(table, panel="sampling")
    values = rows[["x", "y", "low", "high"]].astype(float)
    if not (values > 0).all().all():
        raise ValueError(f"speeds are above 0, got down to {float(values.min().min()):g}")
    x, y = (f"{how}, in tokens per second" for how in ("predicted", "measured"))
    chart = open_chart(rows["panel"], size=(910, 444), x=x, y=y, gap=0.04)
    ends = 0.94 * float(values.min().min()), 1.06 * float(values.max().max())
    add_diagonal(chart, ends, name="as predicted", near=0.1)
    add_dots(chart, rows)
    chart.figure.update_xaxes(range=ends).update_yaxes(range=ends)
    errors = (values["x"] / values["y"] - 1).abs()
    return chart.titled(
        f"{len(table)} settings: median error {errors.median():.1%}, largest {errors.max():.1%}"
    )


def _predictions(table: pd.DataFrame, panel: str = "") -> pd.DataFrame:
    by = {"series": "series", "panel": panel, "note": "{name}"}
    return marks(table, "predicted", "measured", ends="low measured high", **by)


def ablation(table: pd.DataFrame, *, value_title: str) -> go.Figure:
    """A value with one stage and with two, a line with intervals per shape of tree and a panel per
    sampling, values beside the dots.

    table    `shape` ("chain", "tree"), `stages` (1, 2), `sampling`, `value`, `low`, `high`
    """
    keys, ends = "shape stages sampling", "low value high"
    check(table, keys, ends)
    table, shapes = table.sort_values("stages", kind="stable"), sorted(names_of(table["shape"]))
    place = Lanes("stages", "shape", 0.34, shapes)
    rows = marks(table, place, "value", panel="sampling", ends=ends, text="value")
    size = (110 + 320 * rows["panel"].nunique(), 354)
    chart = open_chart(rows["panel"], size=size, y=value_title)
    add_dots(chart, rows, looks(shapes), joined=2, size=11)
    counts = table["stages"].unique()
    chart.name_places("x", [f"{count} stage{'s' if count != 1 else ''}" for count in counts])
    chart.start_at_zero("y", rows, 1.1)
    return chart.titled("One stage against two, for a chain and for a tree")


def speed_sweep(table: pd.DataFrame) -> go.Figure:
    """Speed-up over plain decoding along what was swept: a panel per sweep, dots with intervals per
    draft, joined where the values are numbers.

    table    `sweep` (the panel: "temperature", "domain"), `value` (a number or a word), `draft`,
             `speed_up`, `speed_up_low`, `speed_up_high`
    """
    ends = "speed_up_low speed_up speed_up_high"
    check(table, "sweep value draft", ends)
    check_among("a sweep", table["sweep"], SWEEPS)
    drafts, swept = names_of(table["draft"]), [one for one in SWEEPS if one in set(table["sweep"])]
    panels = {sweep: f"by {sweep}" for sweep in swept}
    size, y = (120 + 390 * len(panels), 364), "speed-up over plain decoding (dotted)"
    chart = open_chart(panels.values(), size=size, y=y)
    for sweep, panel in panels.items():
        own = table[table["sweep"] == sweep]
        place = Lanes("value", "draft", 0.07 * len(drafts), drafts)
        rows = marks(own, place, "speed_up", ends=ends).assign(panel=panel)
        ordered = all(isinstance(value, int | float) for value in own["value"])
        add_dots(chart, rows, looks(drafts), joined=2 if ordered else 0)
        words = names_of(own["value"].map("{:g}".format) if ordered else own["value"])
        ticks = {"tickvals": list(range(len(words))), "ticktext": words, "title": sweep}
        chart.figure.update_xaxes(ticks, showgrid=False, **chart.panels[panel])
    chart.figure.add_hline(y=1, **PLAIN)
    chart.figure.update_yaxes(range=[0, 1.08 * float(table["speed_up_high"].max())])
    return chart.titled("Speed-up over plain decoding, by temperature and by kind of text")


def ewif_by_drafters(table: pd.DataFrame) -> go.Figure:
    """EWIF per set of drafters: the paper's printed value, ours for the same k, and the best k
    where that is better; a panel per data set.

    table    `data`, `drafters`, `lengths` (the printed k, as text), `paper`, `ours`, `best`,
             `best_lengths`
    """
    check(table, "data drafters", "lengths paper ours best best_lengths")
    rows, sets = _ewif_marks(table), names_of(table["drafters"])
    size, y = (110 + 390 * rows["panel"].nunique(), 346), "EWIF (plain decoding is 1)"
    chart = open_chart(rows["panel"], size=size, x="drafters, with the printed k", y=y)
    add_dots(chart, rows, EWIF_LOOKS, size=10)
    chart.name_places("x", sets, longest=14)
    star = {"mode": "markers+text", "name": list(EWIF_LOOKS)[-1]}
    chart.figure.update_traces(textposition="bottom center", selector=star)
    for data, own in groups(table, "data"):
        lengths = own.set_index("drafters")["lengths"]
        ticks = [f"{wrap(name, 14)}<br>k = {escape(lengths.get(name, '–'))}" for name in sets]
        chart.figure.update_xaxes(ticktext=ticks, **chart.panels[data])
    low, high = float(rows["y"].min()), float(rows["y"].max())
    room = 0.14 * ((high - low) or 1.0)
    chart.figure.update_yaxes(range=[low - room, high + 2 * room])
    return chart.titled("EWIF of the paper's Table 1: printed, recomputed, and at the best k")


def _ewif_marks(table: pd.DataFrame) -> pd.DataFrame:
    """Three marks per set of drafters; the third only where another k is better."""
    lengths = "<br>k = " + table["best_lengths"].map(escape)
    better = table["best"].where(table["best"] > table["ours"] + 1e-9)
    parts = (
        (table["paper"], -0.29, table["paper"].map("{:.2f}".format)),
        (table["ours"], 0.0, table["ours"].map("{:.3f}".format)),
        (better, 0.29, table["best"].map("{:.3f}".format) + lengths),
    )
    found = []
    for series, (values, aside, words) in zip(EWIF_LOOKS, parts, strict=True):
        rows = marks(table, Lanes("drafters").of(table) + aside, values, panel="data")
        found.append(rows.assign(series=series, text=words).dropna(subset=["y"]))
    return pd.concat(found, ignore_index=True)
