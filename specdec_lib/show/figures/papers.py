"""What both papers measured beside ours: speed-ups, prompts one by one, and SWI by price list."""

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.chart import Chart, check, lanes, marks, span_of
from specdec_lib.show.figures.forms import add_dots
from specdec_lib.show.figures.headings import BETWEEN
from specdec_lib.show.figures.theme import (
    DARK,
    EDITIONS,
    INK,
    PAPERS,
    Look,
    family_looks,
    looks,
    names_of,
)

PAPER = "the paper, measured"
MANY = 6  # pixels across a dot, of one beside the other
FORETOLD = "predicted at the paper's sizes"
WHOSE = {
    PAPER: PAPERS[0],
    FORETOLD: Look(DARK, symbol="line-ns-open"),
    **family_looks(EDITIONS),
}
GREYS = (Look(INK, "dash", "diamond-open"), Look(INK, "dot", "square-open"))


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
    ours = [name for name in shown if name not in (PAPER, FORETOLD)]
    theirs = [name for name in shown if name not in ours]
    for name in (*ours[:2], *theirs, *ours[2:]):  # an edition per row of the legend
        add_dots(chart, rows[rows["series"] == name], shown, lying=True, size=9)
    span = span_of(rows[["x", "low", "high"]].assign(plain=1.0), 0.05, 0.14)
    chart.axis("x", range=span, showline=True).name_places("y", methods, longest=16)
    for edge in range(1, len(methods)):
        chart.figure.add_hline(y=edge - 0.5, **BETWEEN)
    return chart.titled("Speed-ups as the paper measured them, and ours", plain="x")


def prompt_gains(table: pd.DataFrame, *, before: str, after: str, about: str = "") -> go.Figure:
    """What one method gains over another, prompt by prompt: a dot per prompt, in the colour and
    form of its kind, from the least gain to the greatest; a panel per sampler, one below the other.

    table            a row per prompt and sampler: `sampling`, `prompt`, `kind` (of prompt), and the
                     speed ÷ plain decoding's under both methods, `before` and `after`
    before, after    the names of the two; the speed of the second ÷ that of the first is drawn
    about            what both ran with, for the headline
    """
    check(table, "sampling prompt", "kind before after")
    table = table.assign(gain=table["after"] / table["before"])
    rank = table.groupby("sampling")["gain"].rank(method="first")
    note = "{prompt}: {gain:.2f} times, {before:.2f} to {after:.2f} times plain decoding"
    rows = marks(table, rank, "gain", series="kind", panel="sampling", note=note)
    most = int(rank.max())
    x = "prompts, from the least gain to the greatest"
    y = f"speed, {after} ÷ {before}"
    chart = Chart(rows["panel"], wide=930, high=300, columns=1, x=x, y=y)
    add_dots(chart, rows, size=MANY)
    chart.axis("x", range=[0, most + 1], showticklabels=False, showgrid=False)
    chart.axis("y", range=span_of(rows[["y"]].assign(plain=1.0), 0.06, 0.06))
    slower = rows.groupby("panel", sort=False)["y"].agg(lambda own: (own < 1).mean())
    shares = [f"{100 * share:.0f} % ({panel})" for panel, share in slower.items()]
    said = f"slower on {', '.join(shares)}"
    names = f"{after[0].upper()}{after[1:]} beside {before}"
    return chart.titled(f"{names}, {most} prompts{about and f' ({about})'}; {said}", plain="y")


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
    chart = Chart(wide=820, high=high, x=x)
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
    """SWI of drafters by list of prices, ours from the cheapest: a dot per kind of text with an
    interval, the paper's data sets in grey; plain decoding is dotted at 1. A panel per set of
    drafters.

    table    a row per dot: `data` (our kind of text, or the paper's data set), `prices` (the list's
             name), `drafters` (the panel), `swi` with its 95 % interval `low` to `high` (NaN:
             none), and `printed` (whether it is the paper's)
    """
    check(table, "data prices drafters", "low swi high printed")
    table = table.sort_values("printed", ascending=False, kind="stable")
    cheapest = {name: at for at, name in enumerate(("measured", "reported", "parameters"))}
    table = table.sort_values("prices", key=lambda own: own.map(cheapest), kind="stable")
    order = names_of(table.sort_values("printed", ascending=False, kind="stable")["data"])
    place = lanes(table, "prices", "data", 0.6, order)
    rows = marks(table, place, "swi", series="data", panel="drafters", ends="low swi high")
    y = "SWI, counted (plain decoding: 1)"
    chart = Chart(
        rows["panel"],
        wide=310,
        high=380,
        x="list of prices",
        y=y,
        gap=0.03,
    )
    add_dots(chart, rows, _with_greys(table), size=9, joined=1.2)
    chart.name_places("x", table["prices"]).start_at_zero("y", 1.06)
    return chart.titled(
        "SWI of a tuned cascade and of the best drafter alone, by list of prices", plain="y"
    )
