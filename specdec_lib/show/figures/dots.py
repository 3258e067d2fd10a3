"""Charts of dots with intervals along an axis of numbers, or over names that stand side by side."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures import theme
from specdec_lib.show.figures.chart import Chart, check, groups_of, lanes, marks, span_of
from specdec_lib.show.figures.forms import add_diagonal, add_dots
from specdec_lib.show.figures.theme import PAPERS, SOURCES, Look, escape, looks, names_of

WIDE = 3  # times the slowest
SPEEDS = (10, 15, 20, 30, 40, 60, 80, 100, 120, 150, 200, 300, 400, 600, 800, 1000)
WIDEST = 26  # pixels across the dot of the most tokens
LEAST = 10  # pixels across the smallest dot
EWIF_LOOKS = {
    "printed": PAPERS[0],
    "recomputed for the same k": Look(SOURCES["draft"]),
    "at the best k, where another is better": Look(SOURCES["target"], symbol="star"),
}
RATES = {"ends": "low rate high", "note": "{at_risk:,.0f} tokens at risk"}
ACCEPTED = "How often a guess is accepted, by"
RATE = "acceptance rate"


def acceptance(
    table: pd.DataFrame,
    *,
    x: str,
    x_title: str,
    log_x: bool = False,
    title: str = "",
    apart: float = 0.0,
    bare: str = "",
) -> go.Figure:
    """How often a guess is accepted, over a number such as its depth: a dot per row with an
    interval, joined by a line per series.

    table    a row per dot: the column that `x` names, `series`, `rate` (0 to 1; NaN draws nothing)
             with its 95 % interval `low` to `high` (NaN: none), and `at_risk` (tokens tried);
             perhaps `panel`, of several side by side, `part`, which breaks a series' line in two,
             and `prompts`, for the headline
    x_title  of the axis; what stands before its first comma is also in the headline
    apart    how far the outer series stand beside their numbers; where `log_x`, in octaves
    bare     which marks have no interval, for the headline

    Raises ValueError if `log_x` and a number is not above 0.
    """
    check(table, "", f"{x} series low rate high at_risk")
    what = x_title.split(",")[0]
    note = f"{what}: {{{x}:,g}}; {RATES['note']}"
    panel = "panel" if "panel" in table else ""
    rows = marks(table, x, "rate", series="series", panel=panel, ends=RATES["ends"], note=note)
    if log_x and not rows["x"].min() > 0:
        raise ValueError(f"a logarithmic axis shows {x} above 0, got {rows['x'].min()}")
    chart = Chart(rows["panel"], wide=420 if panel else 640, high=384, x=x_title, y=RATE)
    styles = looks(rows["series"])
    values = sorted(set(rows["x"]))
    sides = np.linspace(-apart, apart, len(styles))
    aside = rows["series"].map(dict(zip(styles, sides, strict=True)))
    rows["x"] = rows["x"] * 2**aside if log_x else rows["x"] + aside
    for _, own in rows.groupby(rows.get("part", rows["panel"])):
        add_dots(chart, own, styles, joined=2)
    chart.figure.update_traces(hoverinfo="y+text+name", selector={"hoverinfo": "x+y+text+name"})
    chart.axis("x", type="log" if log_x else "linear", showline=True)
    if len(values) <= 24 and all(float(one).is_integer() for one in values):
        words = [theme.with_prefix(one) if log_x else f"{one:g}" for one in values]
        chart.axis("x", tickvals=values, ticktext=words)
    chart.start_at_zero("y", 1.15, top=1.08)
    return chart.titled(title or f"{ACCEPTED} {what}", bare=bare)


def kinds(table: pd.DataFrame, *, x_title: str, title: str = "") -> go.Figure:
    """How often a guess is accepted, over names such as kinds of text: a dot per series at each
    name, with an interval and its value.

    table    a row per dot: `kind` (the place on the axis), `series`, `rate` (0 to 1; NaN draws
             nothing) with its 95 % interval `low` to `high` (NaN: none), and `at_risk` (tokens
             tried)
    """
    check(table, "", "kind series low rate high at_risk")
    place = lanes(table, "kind", "series", 0.6)
    rows = marks(table, place, "rate", series="series", text="rate", **RATES)
    chart = Chart(high=384, x=x_title, y=RATE)
    add_dots(chart, rows, size=11, beside=True)
    chart.name_places("x", table["kind"]).start_at_zero("y", 1.15, top=1.08)
    return chart.titled(title or f"{ACCEPTED} {x_title.split(',')[0]}")


def calibration_curve(table: pd.DataFrame) -> go.Figure:
    """Whether a draft's confidence is right: a dot per bin of confidence, with an interval, the
    larger the more tokens are in it; on the dotted diagonal it is. A panel per series.

    table    a row per bin: `series`, `confidence` (the bin's mean, 0 to 1), `rate` (the share
             accepted, 0 to 1) with its 95 % interval `low` to `high`, and `at_risk` (tokens in the
             bin, which the dot's area counts)
    """
    check(table, "", "confidence series low rate high at_risk")
    rows = marks(table, "confidence", "rate", panel="series", **RATES)
    chart = Chart(rows["panel"], wide=450, high=470, x="confidence of the draft", y=RATE)
    add_diagonal(chart, (-0.02, 1.02), name="perfectly calibrated")
    share = rows["at_risk"] / max(1.0, float(rows["at_risk"].max()))
    rows["size"] = np.maximum(WIDEST * np.sqrt(share), LEAST)
    add_dots(chart, rows, {"": Look(SOURCES["draft"])})
    return chart.titled("Is the draft's confidence right? Larger areas: more guesses")


def predicted_tokens(table: pd.DataFrame) -> go.Figure:
    """Counted against predicted tokens per round: a dot per setting, with an interval; on the
    diagonal they agree, in the band to within 5 %; a line per series where all its predictions
    would be wrong by the median of their ratios, which the headline has. A panel per sampler.

    table    a row per setting: `name`, `series` (its kind), `sampling`, `predicted` and `measured`
             (both tokens per round; the latter counted) with its 95 % interval `low` to `high`
    """
    rows = _predictions(table)
    x = "predicted tokens per round"
    y = "counted tokens per round"
    chart = Chart(rows["panel"], wide=450, high=490, x=x, y=y)
    ends = span_of(rows[["x", "y", "low", "high"]], 0.08, 0.08)
    add_diagonal(chart, ends, name="as predicted", near=0.05)
    styles = looks(rows["series"])
    medians = (rows["y"] / rows["x"]).groupby(rows["series"], sort=False).median()
    said = ", ".join(f"{ratio - 1:+.0%} {name}" for name, ratio in medians.items())
    for (panel, name), own in groups_of(rows, ["panel", "series"]):
        span = own["x"].agg(["min", "max"])
        line = pd.DataFrame({"x": span, "y": medians[name] * span, "panel": panel})
        called = f"{name}, median"
        look = {called: styles[name]}
        add_dots(chart, line.assign(series=called), look, joined=1.5, size=0)
    headline = f"Counted tokens per round ÷ predicted, in the median: {said}"
    return add_dots(chart, rows, styles).titled(headline)


def predicted_speeds(table: pd.DataFrame) -> go.Figure:
    """Measured against predicted tokens per second: a dot per setting, with an interval; on the
    diagonal they agree, in the band to within 10 %. A panel per sampler; logarithmic axes where the
    quickest is `WIDE` times the slowest. The headline has the median error, the largest error, and
    the largest median of one kind.

    table    a row per setting: `name`, `series` (its kind), `sampling`, `predicted` and `measured`
             (both tokens per second) with its 95 % interval `low` to `high`

    Raises ValueError if a speed is not above 0.
    """
    rows = _predictions(table)
    lowest = rows[["x", "y", "low", "high"]].min().min()
    if not lowest > 0:
        raise ValueError(f"speeds are above 0, got down to {lowest:g}")
    x = "predicted, in tokens per second"
    y = "measured, in tokens per second"
    chart = Chart(rows["panel"], wide=395, high=444, x=x, y=y, gap=0.04)
    least, most = span_of(rows[["x", "y", "low", "high"]])
    ends = (0.94 * least, 1.06 * most)
    add_diagonal(chart, ends, name="as predicted", near=0.1)
    if most > WIDE * least:
        ticks = [one for one in SPEEDS if ends[0] <= one <= ends[1]]
        chart.count_in_factors("x", ticks, ends).count_in_factors("y", ticks, ends)
    add_dots(chart, rows)
    errors = (rows["x"] / rows["y"] - 1).abs()
    medians = errors.groupby([rows["panel"], rows["series"]]).median()
    worst = ", ".join(filter(None, medians.idxmax()))
    return chart.titled(
        f"{len(table)} settings, predicted: median error {errors.median():.1%}, largest"
        f" {errors.max():.1%}; worst kind ({worst}) {medians.max():.1%}"
    )


def _predictions(table: pd.DataFrame) -> pd.DataFrame:
    check(table, "", "name series sampling predicted low measured high")
    by = {"series": "series", "panel": "sampling", "ends": "low measured high", "note": "{name}"}
    return marks(table, "predicted", "measured", **by)


def ablation(table: pd.DataFrame, *, value_title: str) -> go.Figure:
    """A chain and a tree, each with one and with two stages: a dot per shape at each number of
    stages, with an interval and its value; a panel per sampler.

    table          a row per dot: `shape` ("chain" or "tree"), `stages` (1 or 2), `sampling`, and
                   `value` with its 95 % interval `low` to `high`
    value_title    what `value` is, with its unit, for the axis; plain decoding is dotted at 1
    """
    check(table, "shape stages sampling", "low value high")
    table, shapes = table.sort_values("stages", kind="stable"), sorted(names_of(table["shape"]))
    by = {"series": "shape", "panel": "sampling", "ends": "low value high", "text": "value"}
    rows = marks(table, lanes(table, "stages", "shape", 0.5, shapes), "value", **by)
    chart = Chart(rows["panel"], wide=320, y=value_title)
    add_dots(chart, rows, looks(shapes), size=11, beside=True)
    chart.axis("y", range=span_of(rows[["low", "high"]].assign(plain=1.0), 0.1, 0.06))
    chart.name_places("x", table["stages"].map("{} stages".format).replace("1 stages", "1 stage"))
    return chart.titled("One stage against two, for a chain and for a tree", plain="y")


def speed_sweep(table: pd.DataFrame) -> go.Figure:
    """Measured speed-up over plain decoding (dotted) by temperature and by kind of text: a panel
    each, a dot per draft at each value, with an interval; lines join temperatures.

    table    a row per dot: `sweep` ("temperature" or "domain"), `value` (of what is swept),
             `draft`, `speed_up` (× plain decoding's speed) with its 95 % interval `speed_up_low` to
             `speed_up_high`, and `domain` and `temperature`, of which the one that is not swept
             stands in the panel's name

    Raises ValueError for another sweep.
    """
    ends = "speed_up_low speed_up speed_up_high"
    check(table, "sweep value draft", f"domain temperature {ends}")
    said = {"temperature": "by temperature ({domain})", "domain": "by domain (T = {temperature:g})"}
    others = table["sweep"][~table["sweep"].isin(list(said))]
    if len(others):
        raise ValueError(f"a sweep is by {' or '.join(said)}, got {others.iloc[0]!r}")
    first = table.drop_duplicates("sweep").to_dict("records")
    panels = {row["sweep"]: said[row["sweep"]].format_map(row) for row in first}
    drafts = names_of(table["draft"])
    y = "measured speed-up over plain decoding (dotted)"
    chart = Chart(panels.values(), wide=390, y=y)
    for sweep, panel in panels.items():
        own = table[table["sweep"] == sweep]
        ordered = sweep == "temperature"
        place = lanes(own, "value", "draft", 0.07 * len(drafts), drafts)
        rows = marks(own, place, "speed_up", series="draft", ends=ends).assign(panel=panel)
        add_dots(chart, rows, looks(drafts), joined=2 if ordered else 0)
        words = names_of(own["value"].map("{:g}".format) if ordered else own["value"])
        ticks = {"tickvals": list(range(len(words))), "ticktext": words}
        chart.axis("x", panel, **ticks, title=sweep, showgrid=False)
    headline = "Measured speed-up over plain decoding, by temperature and by kind of text"
    ends_of_all = span_of(table[ends.split()].assign(plain=1.0), 0.06, 0.06)
    return chart.axis("y", range=ends_of_all).titled(headline, plain="y")


def ewif_by_drafters(table: pd.DataFrame) -> go.Figure:
    """EWIF, the cascade paper's predicted speed-up, per set of drafters: the printed value, the one
    recomputed for the same k, and a star at the best k where that is better by more than rounding;
    a panel per data set.

    table    a row per data set and set of drafters: `data`, `drafters`, `lengths` (the printed k),
             `paper`, `ours` (for that k), `best` and `best_lengths` (the k that is best)
    """
    check(table, "data drafters", "lengths paper ours best best_lengths")
    table = table.assign(best=table["best"].where(table["best"] > table["ours"] + 1e-9))
    sets = names_of(table["drafters"])
    lengths = table["best_lengths"].map(escape)
    forms = {"paper": "{:.2f}", "ours": "{:.3f}", "best": "{:.3f}<br>k = {}"}
    x = "drafters, with the printed k"
    y = "EWIF, predicted (1: plain)"
    chart = Chart(table["data"], wide=390, x=x, y=y)
    places = lanes(table, "drafters")
    for aside, name, column in zip((-0.29, 0.0, 0.29), EWIF_LOOKS, forms, strict=True):
        rows = marks(table, places + aside, column, panel="data").assign(series=name)
        rows["text"] = list(map(forms[column].format, table[column], lengths))
        add_dots(chart, rows, EWIF_LOOKS, size=10)
    below = {"mode": "markers+text", "name": name}  # the best
    chart.figure.update_traces(textposition="bottom center", selector=below)
    chart.name_places("x", sets, longest=14)
    for data, own in table.groupby(table["data"].map(str)):
        lengths = own.set_index("drafters")["lengths"]
        ticks = [f"{theme.wrap(name, 14)}<br>k = {escape(lengths.get(name, '–'))}" for name in sets]
        chart.axis("x", data, ticktext=ticks)
    chart.axis("y", range=span_of(table[["paper", "ours", "best"]], 0.14, 0.28))
    headline = "EWIF, a predicted speed-up: as printed in Table 1, recomputed, and at the best k"
    return chart.titled(headline)
