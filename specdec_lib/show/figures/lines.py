"""Charts of lines, over bands where there is an interval."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures import theme
from specdec_lib.show.figures.chart import Chart, check, marks, named_rows
from specdec_lib.show.figures.forms import add_dots
from specdec_lib.show.figures.theme import (
    DASHES,
    INK,
    SOURCES,
    Look,
    escape,
    looks,
    names_of,
    short,
)

LINES: dict[str, Any] = {"joined": 2, "size": 0, "bands": True}
SECONDS = "low_seconds seconds high_seconds"
LEAST_RATE = 0.001  # that is drawn on a logarithmic axis
LEAST_DRAFTS = 5  # that came so far
NAMES_APART = 0.055  # of the height, between the names at the ends of two lines
BEST_DEPTH = "the best depth"
ASIDE = 0.06  # octaves that the outer dots stand beside their budget


def position(table: pd.DataFrame) -> go.Figure:
    """How likely a draft is accepted up to each position, on a logarithmic axis: a line per drafter
    over a band, the 95 % interval; a panel per kind of text.

    table    a row per position: `domain`, `drafter`, `position` (of a guess in its draft, from 1),
             `rate` (probability that all guesses up to it are accepted, 0 to 1; drawn from
             `LEAST_RATE` and `LEAST_DRAFTS` accepted drafts on) with `low` to `high`, and `at_risk`
             (drafts that are so long)
    """
    check(table, "domain drafter position", "low rate high at_risk")
    many = table["rate"] * table["at_risk"] >= LEAST_DRAFTS - 0.5
    table = table[many & (table["rate"] >= LEAST_RATE)].replace({"drafter": theme.MODEL_NAMES})
    table = table.assign(low=table["low"].clip(lower=LEAST_RATE))
    by = {"series": "drafter", "panel": "domain", "note": "{at_risk:,.0f} drafts at risk"}
    rows = marks(table, "position", "rate", ends="low rate high", **by)
    x = "position in the draft"
    y = "accepted up to here (probability)"
    chart = Chart(rows["panel"], wide=300, high=330, x=x, y=y)
    add_dots(chart, rows, **LINES)
    ticks = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1]
    chart.count_in_factors("y", ticks, (LEAST_RATE, 1.2))
    last = int(rows["x"].max())
    chart.axis("x", tickvals=[1, *range(5, last + 1, 5)], range=[0.5, last + 0.5], showline=True)
    return chart.titled("How much of a long draft is accepted, by drafter")


def budget_curves(table: pd.DataFrame) -> go.Figure:
    """Tokens per round against a tree's size: a line per shape of tree through what is predicted,
    with its name at the end, and a dot with an interval for each that was counted.

    table    a row per point: `budget` (nodes without the root, from 1), `shape`, `measured`
             (whether it was counted and not predicted), and `tokens_per_round` with its 95 %
             interval `low` to `high` (NaN: none)
    """
    ends = "low tokens_per_round high"
    check(table, "", f"budget shape measured {ends}")
    rows = marks(table, "budget", "tokens_per_round", series="shape", ends=ends)
    styles = looks(rows["series"])
    chart = _budget_chart(rows, "tokens per round", after=0.36)
    seen = rows["measured"].astype(bool)
    add_dots(chart, rows[~seen], styles, **LINES, by="predicted")
    chart.figure.update_traces(showlegend=False)
    _name_ends(chart, rows[~seen], styles)
    counted = rows[seen]
    names = names_of(counted["series"])
    aside = counted["series"].map(
        dict(zip(names, np.linspace(-ASIDE, ASIDE, len(names)), strict=True))
    )
    add_dots(chart, counted.assign(x=counted["x"] * 2**aside), styles, size=10, by="counted")
    headline = "Tokens per round of a tree of each size: lines are predicted, dots counted"
    return chart.titled(headline)


def _name_ends(chart: Chart, rows: pd.DataFrame, styles: Mapping[str, Look]) -> None:
    """Write the name of each line right of its last point, clear of the others' names."""
    last = rows.sort_values("x", kind="stable").groupby("series", sort=False).tail(1)
    last = last.sort_values("y", kind="stable")
    apart = NAMES_APART * (rows["y"].max() - rows["y"].min())
    lowest = -math.inf
    for row in named_rows(last):
        lowest = max(row.y, lowest + apart)
        font = {"color": styles[row.series].colour, "size": 13}
        words = {"text": [f" {escape(row.series)}"], "textposition": "middle right"}
        look = {"mode": "text", "textfont": font, "showlegend": False, "hoverinfo": "skip"}
        chart.add(go.Scatter(x=[row.x], y=[lowest], **words, **look, cliponaxis=False))


def budget_speed_ups(table: pd.DataFrame, *, title: str = "") -> go.Figure:
    """Predicted speed-up over plain decoding (dotted) against a tree's size: the line of the depth
    that is best at each size, that depth written where it changes, and a band down to the worst; a
    star at the best of all.

    table    a row per point: `budget` (nodes without the root, from 1), `depth` (of the deepest
             guess allowed) and `speed_up` (× plain decoding's speed)
    """
    check(table, "budget depth", "speed_up")
    rows = marks(table, "budget", "speed_up").sort_values(["budget", "depth"])
    by = rows.groupby("budget")["y"]
    best = rows.loc[by.idxmax()].assign(low=by.min().to_numpy(), high=by.max().to_numpy())
    chart = _budget_chart(rows, "predicted speed-up over plain decoding (dotted)")
    look = {BEST_DEPTH: Look(SOURCES["draft"])}
    add_dots(chart, best.assign(series=BEST_DEPTH), look, **LINES, by="predicted")
    turns = best[best["depth"] != best["depth"].shift()]
    turns = turns.assign(series=BEST_DEPTH, text=turns["depth"].map("depth {}".format))
    add_dots(chart, turns.drop(columns=["low", "high"]), look, size=8, by="predicted")
    chart.figure.data[-1].update(textposition="bottom center")
    top = best.iloc[best["y"].argmax()]
    words = f"{top.y:.2f} with {top.budget} guesses"
    star = top.to_frame().T.drop(columns=["low", "high"]).assign(series="the best", text=words)
    add_dots(chart, star, {"the best": Look(INK, symbol="star")}, size=15)
    headline = "Predicted: which budget is fastest; the band reaches down to the worst depth"
    return chart.titled(title or headline, plain="y")


def _budget_chart(rows: pd.DataFrame, y: str, *, after: float = 0.04) -> Chart:
    """A chart over budgets, with so many powers of ten of room `after` the last."""
    if rows["x"].min() < 1:
        raise ValueError(f"a budget is at least 1 node, got {rows['x'].min()}")
    chart = Chart(high=404, x="budget, in nodes without the root", y=y)
    ends = math.log10(rows["x"].min()) - 0.04, math.log10(rows["x"].max()) + after
    return chart.count_in_powers(rows["x"]).axis("x", range=ends)


def latency(table: pd.DataFrame) -> go.Figure:
    """Milliseconds of a pass against its rows: a line per runtime, and per context where there are
    two, over a band between the quartiles; the roofline dotted, once for runtimes that share it. A
    panel per model.

    table    a row per pass: `model`, `runtime`, `rows`, `context_tokens` (only the least and the
             greatest are drawn), `seconds` (the median) with its quartiles `low_seconds` and
             `high_seconds`, and `roofline_seconds` (the least that the machine allows, predicted)
    """
    check(table, "model runtime rows context_tokens", f"{SECONDS} roofline_seconds")
    table = table.replace({"model": theme.MODEL_NAMES})
    contexts = sorted({table["context_tokens"].min(), table["context_tokens"].max()})
    table = table[table["context_tokens"].isin(contexts)]
    after = table["context_tokens"].map(", context {}".format) if len(contexts) > 1 else ""
    rows = _milliseconds(table.assign(series=table["runtime"] + after, panel=table["model"]))
    hues = looks(table["runtime"])
    styles = {
        line.series: replace(hues[line.runtime], dash=DASHES[contexts.index(line.context_tokens)])
        for line in named_rows(rows.drop_duplicates("series"))
    }
    look = {"wide": 260, "shared_y": False, "gap": 0.07}
    chart = Chart(rows["panel"], **look, x="rows of a pass", y="milliseconds of a pass")
    dotted: dict[str, Any] = {**LINES, "size": 8}
    add_dots(chart, rows, styles, **dotted)
    roofs = rows[rows["context_tokens"] == contexts[-1]].drop(columns=["low", "high"])
    roofs = roofs.assign(y=1e3 * roofs["roofline_seconds"])
    heights = roofs.groupby("runtime", sort=False)["y"].agg(tuple)
    for _, alike in heights.groupby(heights, sort=False):
        called = f"roofline, {' and '.join(alike.index)}"
        called += f", context {contexts[-1]}" if len(contexts) > 1 else ""
        own = roofs[roofs["runtime"] == alike.index[0]].assign(series=called)
        add_dots(chart, own, {called: Look(hues[alike.index[-1]].colour, "dot")}, **LINES)
    chart.count_in_powers(table["rows"]).axis("y", rangemode="tozero")
    return chart.titled("How long a pass takes, measured, by its rows; the roofline is predicted")


def _milliseconds(table: pd.DataFrame) -> pd.DataFrame:
    """Passes as marks, in milliseconds; low and high are their quartiles."""
    scaled = table.assign(**{name: 1e3 * table[name] for name in SECONDS.split()})
    return marks(scaled, "rows", "seconds", series="series", panel="panel", ends=SECONDS)


def pass_at(measured: pd.DataFrame, line: pd.DataFrame, *, rows: int, title: str) -> go.Figure:
    """Milliseconds of a pass against its rows: thin lines per measured context, a thick one at the
    chosen context, what the machine would allow (dotted), and a star at one pass.

    measured    of one model in one runtime: `rows`, `context_tokens`, and `seconds` with the
                quartiles `low_seconds` and `high_seconds`
    line        at the chosen context: `rows`, `seconds`, `roofline_seconds`, the first row that of
                the pass of one row, against which the star is compared
    rows        of the pass at the star

    Raises ValueError if the line has no such pass.
    """
    check(measured, "rows context_tokens", SECONDS)
    check(line, "rows", "seconds roofline_seconds")
    if rows not in set(line["rows"]):
        raise ValueError(
            f"the line has passes of {line['rows'].min()} to {line['rows'].max()} rows, got {rows}"
        )
    named = measured.sort_values("context_tokens", kind="stable")
    named = named.assign(series=named["context_tokens"].map("context {}".format), panel="")
    grey = {name: replace(one, colour=INK) for name, one in looks(named["series"]).items()}
    chart = Chart(high=394, x="rows of the pass", y="milliseconds of a pass")
    add_dots(chart, _milliseconds(named), grey, joined=1, size=6, bands=True)
    target = SOURCES["target"]
    chosen = marks(line, "rows", 1e3 * line["seconds"]).assign(series="at the chosen context")
    add_dots(chart, chosen, {"at the chosen context": Look(target)}, joined=3, size=0)
    roof = chosen.assign(y=1e3 * chosen["roofline_seconds"], series="what the machine would allow")
    add_dots(chart, roof, {"what the machine would allow": Look(INK, "dot")}, **LINES)
    star = chosen[chosen["rows"] == rows]
    took = star["y"].iloc[0]
    one = chosen["y"].iloc[0]
    words = f"{short(took)} ms, {short(took / one)} × one row"
    star = star.assign(series="this pass", text=words)
    add_dots(chart, star, {"this pass": Look(target, symbol="star")}, size=17)
    side = "left" if rows > 4 else "right"
    font = {"size": 14, "color": target}
    chart.figure.data[-1].update(textposition=f"top {side}", textfont=font)
    return chart.count_in_powers([1, *line["rows"]]).axis("y", rangemode="tozero").titled(title)
