"""Charts of lines, over bands where there is an interval."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures import theme
from specdec_lib.show.figures.chart import Chart, check, groups_of, marks, named_rows, span_of
from specdec_lib.show.figures.forms import add_dots, veil
from specdec_lib.show.figures.theme import (
    EDITIONS,
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
WORST = "down to the worst depth"
REFERENCE = "reference"
RUNTIMES = {REFERENCE: Look(INK, symbol="triangle-up"), "fast": EDITIONS["float32"]}
FACTORS = (0.06, 0.12, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64)  # on an axis of multiples of one pass
WHAT_IF = 1048  # pixels that the panels of prices share, each at most 400
ASIDE = 0.06  # octaves that the outer dots stand beside their budget


def position(table: pd.DataFrame) -> go.Figure:
    """How likely a draft is accepted up to each position, on a logarithmic axis: a dot per position
    on a line per drafter, over a band, the 95 % interval; a panel per kind of text.

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
    styles = {name: replace(look, dash="solid") for name, look in looks(rows["series"]).items()}
    add_dots(chart, rows, styles, **{**LINES, "size": 5})
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
    styles = {name: replace(look, dash="solid") for name, look in looks(rows["series"]).items()}
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


def _name_ends(
    chart: Chart,
    rows: pd.DataFrame,
    styles: Mapping[str, Look],
    panel: str = "",
    words: pd.Series | None = None,
    ends: Sequence[float] = (),
) -> None:
    """Write the name of each line (or its own words) right of its last point, clear of the others';
    in a panel of its own, whose y is then logarithmic, between these ends.
    """
    rows = rows.assign(words=rows["series"] if words is None else words)
    low, high = ends or (rows["y"].min(), rows["y"].max())
    last = rows.sort_values("x", kind="stable").groupby("series", sort=False).tail(1)
    last = last.sort_values("y", kind="stable")
    scale: Any = math.log if panel else float
    back: Any = math.exp if panel else float
    apart = (1.25 if panel else 1) * NAMES_APART * (scale(high) - scale(low))
    lowest = -math.inf
    for row in named_rows(last):
        lowest = max(scale(row.y), lowest + apart)
        font = {"color": styles[row.series].colour, "size": 13}
        words_here = {"text": [f" {escape(row.words)}"], "textposition": "middle right"}
        look = {"mode": "text", "textfont": font, "showlegend": False, "hoverinfo": "skip"}
        text = go.Scatter(x=[row.x], y=[back(lowest)], **words_here, **look, cliponaxis=False)
        chart.add(text, panel)


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
    chart = _budget_chart(rows, "predicted speed-up (plain decoding: 1)")
    look = {BEST_DEPTH: Look(SOURCES["draft"])}
    add_dots(chart, best.assign(series=BEST_DEPTH), look, **LINES, by="predicted")
    turns = best[best["depth"] != best["depth"].shift()]
    chart.add(veil([None], [None], SOURCES["draft"], name=WORST))  # for the legend; NaN is no JSON
    turns = turns.assign(series=BEST_DEPTH, text=turns["depth"].map("from here: depth {}".format))
    add_dots(chart, turns.drop(columns=["low", "high"]), look, size=8, by="predicted")
    rising = best["y"].diff().shift(-1).reindex(turns.index) >= 0
    sides = [f"bottom {'right' if up else 'left'}" for up in rising]  # off the line
    chart.figure.data[-1].update(textposition=sides)
    top = best.iloc[best["y"].argmax()]
    words = f"{top.y:.2f} with {top.budget} guesses"
    star = top.to_frame().T.drop(columns=["low", "high"]).assign(series="the best", text=words)
    add_dots(chart, star, {"the best": Look(INK, symbol="star")}, size=15)
    headline = "Predicted: which budget is fastest, at which depth"
    return chart.titled(title or headline, plain="y")


def _budget_chart(rows: pd.DataFrame, y: str, *, after: float = 0.04) -> Chart:
    """A chart over budgets, with so many powers of ten of room `after` the last."""
    _check_budgets(rows["x"])
    chart = Chart(high=404, x="budget, in nodes without the root", y=y)
    ends = math.log10(rows["x"].min()) - 0.04, math.log10(rows["x"].max()) + after
    return chart.count_in_powers(rows["x"]).axis("x", range=ends)


def _check_budgets(budgets: pd.Series) -> None:
    if budgets.min() < 1:
        raise ValueError(f"a budget is at least 1 node, got {budgets.min()}")


def what_ifs(table: pd.DataFrame, *, about: str) -> go.Figure:
    """Predicted speed-up over plain decoding (dotted) against a tree's size, if passes of the draft
    or the code outside the models took less time: a panel per price of the draft, in it a line per
    price of the host, each at the depth that is best at its size, with a star and its value at its
    best.

    table    a row per point: `draft` and `host` (what each takes, in words), `budget` (nodes
             without the root, from 1), `depth` (of the deepest guess allowed) and `speed_up` (×
             plain decoding's speed)
    about    what it is predicted from, for the headline
    """
    check(table, "draft host budget depth", "speed_up")
    _check_budgets(table["budget"])
    table = table.reset_index(drop=True)
    best = table.loc[table.groupby(["draft", "host", "budget"], sort=False)["speed_up"].idxmax()]
    by = {"series": "host", "panel": "draft", "note": "depth {depth}"}
    rows = marks(best, "budget", "speed_up", **by)
    styles = looks(rows["series"])
    panels = names_of(rows["panel"])
    x, y = "budget, in nodes without the root", "predicted speed-up over plain decoding (dotted)"
    wide = min(400, WHAT_IF / len(panels))
    chart = Chart(panels, wide=wide, columns=len(panels), high=380, x=x, y=y, gap=0.04)
    add_dots(chart, rows, styles, **LINES)
    tops = rows.loc[rows.groupby(["panel", "series"], sort=False)["y"].idxmax()]
    tops = tops.assign(text=tops["y"].map("{:.2f}".format))
    stars = {name: replace(look, symbol="star") for name, look in styles.items()}
    add_dots(chart, tops, stars, size=13)
    chart.figure.update_traces(showlegend=False, selector={"mode": "markers"})
    below = names_of(rows["series"])[0]
    chart.figure.update_traces(
        textposition="bottom center", selector={"mode": "markers+text", "name": below}
    )
    chart.count_in_powers(rows["x"])
    least, most = span_of(rows[["y"]].assign(plain=1.0), 0.06, 0.12)
    headline = f"What if drafts or the host cost less: predicted, {about}"
    return chart.axis("y", range=[least, most]).titled(headline, plain="y")


def latency(table: pd.DataFrame) -> go.Figure:
    """How many times as long as over one row a pass takes, against its rows, on logarithmic axes: a
    line per runtime over a band between the quartiles, with what one row takes in its name; dotted,
    in the runtime's colour and on the same scale, but not of the reference runtime, the roofline:
    the least that a pass can take, by the bytes that it reads and the operations that it does. A
    panel per model.

    table    a row per pass: `model`, `runtime`, `rows`, `context_tokens` (only the middle one is
             drawn), `seconds` (the median) with its quartiles `low_seconds` and `high_seconds`, and
             `roofline_seconds` (the least by bandwidth and arithmetic, predicted)

    Raises ValueError if a model's passes over one row are missing in a runtime.
    """
    check(table, "model runtime rows context_tokens", f"{SECONDS} roofline_seconds")
    table = table.replace({"model": theme.MODEL_NAMES})
    contexts = sorted(set(table["context_tokens"]))
    table = table[table["context_tokens"] == contexts[len(contexts) // 2]]
    keys = ["model", "runtime"]
    single = table[table["rows"] == 1].set_index(keys)
    if missing := sorted(set(zip(table["model"], table["runtime"], strict=True)) - {*single.index}):
        named = ", ".join(f"{model} ({runtime})" for model, runtime in missing)
        raise ValueError(f"this figure compares passes with those over one row; {named} has none")
    one = single.reindex(pd.MultiIndex.from_frame(table[keys])).reset_index(drop=True)
    table = table.reset_index(drop=True).assign(
        **{name: table[name].to_numpy() / one["seconds"] for name in SECONDS.split()},
        roof=table["roofline_seconds"].to_numpy() / one["seconds"],
        milliseconds=1e3 * one["seconds"],
    )
    note = "{runtime}, {rows} rows: {seconds:.2f} times the {milliseconds:.3g} ms of one"
    rows = marks(table, "rows", "seconds", series="runtime", panel="model", ends=SECONDS, note=note)
    styles = looks(rows["series"]) | RUNTIMES
    styles = {name: replace(styles[name], dash="solid") for name in names_of(rows["series"])}
    y = "times as long as over one row"
    chart = Chart(rows["panel"], wide=480, high=330, columns=2, x="rows of a pass", y=y)
    add_dots(chart, rows, styles, **{**LINES, "size": 7})
    roofs = rows[rows["series"] != REFERENCE].drop(columns=["low", "high"])
    roofs = roofs.assign(y=roofs["roof"])
    for name, look in styles.items():
        own = roofs[roofs["series"] == name].assign(series=f"{name}, roofline")
        dotted = {f"{name}, roofline": Look(look.colour, "dot")}
        add_dots(chart, own, dotted, **{**LINES, "joined": 1.2})
    least, top = span_of(pd.concat([rows[["low", "high"]], roofs[["y"]]]))
    ends = (0.87 * min(least, 0.87), 1.15 * top)
    for panel, own in groups_of(rows, "panel"):
        words = own["runtime"] + own["milliseconds"].map(" (one row: {:.2g} ms)".format)
        _name_ends(chart, own, styles, panel, words, ends)
    chart.figure.update_traces(showlegend=False)
    last = rows["x"].max()
    chart.count_in_powers(rows["x"]).axis("x", range=[-0.04, math.log10(last) + 0.85])
    chart.count_in_factors("y", [one for one in FACTORS if ends[0] <= one <= ends[1]], ends)
    said = f"after {contexts[len(contexts) // 2]} tokens"
    return chart.titled(f"What more rows cost, {said}; dotted: the roofline, the least time")


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
