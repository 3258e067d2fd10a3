"""What both papers measured beside ours: speed-ups, prompts one by one, and SWI by price list."""

from typing import Any

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.chart import Chart, check, lanes, marks, named_rows, span_of
from specdec_lib.show.figures.forms import add_dots
from specdec_lib.show.figures.rows import BETWEEN
from specdec_lib.show.figures.theme import DARK, INK, PAPERS, SOURCES, Look, looks, names_of

PAPER = "the paper, measured"
FORETOLD = "ours, predicted at the paper's sizes"
FIRST, SECOND = SOURCES["draft"], SOURCES["prompt"]
WHOSE = {
    PAPER: PAPERS[0],
    FORETOLD: Look(DARK, symbol="line-ns-open"),
    "float32, embedded prompts": Look(FIRST),
    "float32, published prompts": Look(FIRST, symbol="circle-open"),
    "int8, embedded prompts": Look(SECOND, symbol="square"),
    "int8, published prompts": Look(SECOND, symbol="square-open"),
}
GREYS = (Look(INK, "dash", "diamond-open"), Look(INK, "dot", "square-open"))
THICK = 3.0  # pixels of the line from one method to the other


def paper_speed_ups(table: pd.DataFrame) -> go.Figure:
    """Speed-ups over plain decoding as the paper measured them, and ours: a row per method, in it a
    lying mark for each of `WHOSE`, with an interval where it has one, and its value; a panel per
    sampler.

    table    a row per mark: `sampling`, `method`, `whose` (a key of `WHOSE`), and `speed_up` (over
             plain decoding of the same kind (dotted)) with its 95 % interval `low` to `high` (NaN:
             none)
    """
    check(table, "sampling method whose", "low speed_up high")
    place = lanes(table, "method", "whose", 0.8, list(WHOSE))
    by = {"series": "whose", "panel": "sampling", "ends": "low speed_up high", "text": "speed_up"}
    rows = marks(table, "speed_up", place, **by)
    shown = {name: look for name, look in WHOSE.items() if name in set(rows["series"])}
    methods = names_of(rows["method"])
    high = 60 + (30 + 17 * len(shown)) * len(methods)
    x = "speed-up over plain decoding of the same kind (dotted)"
    chart = Chart(rows["panel"], wide=440, high=high, x=x, gap=0.03)
    for name in shown:
        add_dots(chart, rows[rows["series"] == name], shown, lying=True, size=9)
    span = span_of(rows[["x", "low", "high"]].assign(plain=1.0), 0.05, 0.14)
    chart.axis("x", range=span, showline=True).name_places("y", methods, longest=16)
    for edge in range(1, len(methods)):
        chart.figure.add_hline(y=edge - 0.5, **BETWEEN)
    return chart.titled("Speed-ups as the paper measured them, and ours", plain="x")


def prompt_gains(table: pd.DataFrame, *, before: str, after: str) -> go.Figure:
    """What one method gains over another, prompt by prompt: from a hollow dot to a full one, the
    larger the more of its text repeats itself, coloured by the kind of prompt; prompts stand in the
    order of the second. A panel per sampler, one below the other.

    table            a row per prompt and sampler: `sampling`, `prompt`, `kind` (of prompt),
                     `repetition` (0 to 1), and the speed ÷ plain decoding's (dotted) under both
                     methods, `before` and `after`
    before, after    the names of the two, for the headline
    """
    check(table, "sampling prompt", "kind repetition before after")
    rank = table.groupby("sampling")["after"].rank(method="first")
    by = {"series": "kind", "panel": "sampling"}
    note = "{prompt}: {before:.2f} to {after:.2f}, repetition {repetition:.2f}"
    rows = marks(table, rank, "after", **by, note=note)
    rows["size"] = 6 + 12 * rows["repetition"]
    most = int(rank.max())
    styles = looks(rows["series"])
    x = f"prompts, from the least gain of {after} to the greatest"
    chart = Chart(rows["panel"], wide=930, high=330, columns=1, x=x, y="speed ÷ plain decoding's")
    for row in named_rows(rows):
        colour = styles[row.series].colour
        line: dict[str, Any] = {"color": colour, "width": THICK}
        ends = {"x": [row.x, row.x], "y": [row.before, row.after], "opacity": 0.45}
        quiet = {"mode": "lines", "showlegend": False, "hoverinfo": "skip"}
        chart.add(go.Scatter(**ends, **quiet, line=line), row.panel)
    hollow = {name: Look(look.colour, symbol="circle-open") for name, look in styles.items()}
    earlier = rows.assign(y=rows["before"]).drop(columns="size")
    add_dots(chart, earlier, hollow, size=4)
    chart.figure.update_traces(showlegend=False)
    full = {name: Look(look.colour) for name, look in styles.items()}
    add_dots(chart, rows, full)
    chart.axis("x", range=[0, most + 1], showticklabels=False, showgrid=False)
    least, greatest = span_of(rows[["before", "after"]].assign(plain=1.0), 0.04, 0.06)
    chart.axis("y", range=[least, greatest])
    chart.figure.update_layout(legend={"itemsizing": "constant"})
    said = f"From {before} (hollow) to {after} (full, larger where the text repeats itself)"
    return chart.titled(f"{said}, on each of {most} prompts", plain="y")


def walltimes(table: pd.DataFrame) -> go.Figure:
    """Measured speed ÷ plain decoding's (dotted) of the paper's methods: a row per method, a lying
    dot per kind of text, with an interval, and the paper's data sets in grey.

    table    a row per dot: `method`, `data` (our kind of text, or the paper's data set), `ratio`
             with its 95 % interval `low` to `high` (NaN: none), `printed` (whether it is the
             paper's), and `tokens_per_second`
    """
    check(table, "method data", "low ratio high printed tokens_per_second")
    place = lanes(table, "method", "data", 0.76, names_of(table["data"]))
    note = "{tokens_per_second:.4g} tokens per second"
    rows = marks(table, "ratio", place, series="data", ends="low ratio high", note=note)
    styles = _with_greys(table)
    methods = names_of(rows["method"])
    high = 60 + (22 + 14 * len(styles)) * len(methods)
    x = "measured speed ÷ plain decoding's (dotted)"
    chart = Chart(wide=780, high=high, x=x)
    add_dots(chart, rows, styles, lying=True, size=9).name_places("y", methods, longest=30)
    for edge in range(1, len(methods)):
        chart.figure.add_hline(y=edge - 0.5, **BETWEEN)
    chart.axis("x", range=span_of(rows[["x", "low", "high"]].assign(plain=1.0), 0.05, 0.05))
    headline = "The paper's Table 3 by the clock: its settings here, and on its own machine (grey)"
    return chart.titled(headline, plain="x")


def _with_greys(table: pd.DataFrame) -> dict[str, Look]:
    """A look per `data`: kinds of text in colour, the paper's data sets in grey."""
    theirs = names_of(table["data"][table["printed"].astype(bool)])
    styles = looks(name for name in names_of(table["data"]) if name not in theirs)
    return styles | dict(zip(theirs, GREYS, strict=False))


def swi_by_prices(table: pd.DataFrame) -> go.Figure:
    """SWI of drafters by list of prices: a line per kind of text from list to list, with intervals,
    the paper's data sets in grey; plain decoding is dotted at 1. A panel per set of drafters.

    table    a row per dot: `data` (our kind of text, or the paper's data set), `prices` (the list's
             name), `drafters` (the panel), `swi` with its 95 % interval `low` to `high` (NaN:
             none), and `printed` (whether it is the paper's)
    """
    check(table, "data prices drafters", "low swi high printed")
    table = table.sort_values("printed", ascending=False, kind="stable")
    place = lanes(table, "prices", "data", 0.5)
    rows = marks(table, place, "swi", series="data", panel="drafters", ends="low swi high")
    y = "SWI, counted (plain decoding is 1, dotted)"
    chart = Chart(rows["panel"], wide=310, high=380, x="prices of a pass", y=y, gap=0.03)
    add_dots(chart, rows, _with_greys(table), joined=2, size=9)
    chart.name_places("x", table["prices"]).start_at_zero("y", 1.06)
    return chart.titled(
        "SWI of a tuned cascade and of the best drafter alone, by prices", plain="y"
    )
