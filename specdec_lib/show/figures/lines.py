"""Charts of lines, over bands where there is an interval."""

import math
from dataclasses import replace
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures import theme
from specdec_lib.show.figures.chart import Chart, check, groups_of, lanes, marks, named_rows
from specdec_lib.show.figures.forms import add_dots, words_beside
from specdec_lib.show.figures.theme import DASHES, INK, PAPERS, SOURCES, Look, looks, short, wrap

LINES: dict[str, Any] = {"joined": 2, "size": 0, "bands": True}
SECONDS = "low_seconds seconds high_seconds"


def position(table: pd.DataFrame) -> go.Figure:
    """How likely a draft is accepted up to each position: a line per drafter over a band, the 95 %
    interval; a panel per kind of text.

    table    a row per position: `domain`, `drafter`, `position` (of a guess in its draft, from 1),
             `rate` (probability that all guesses up to it are accepted, 0 to 1) with `low` to
             `high`, and `at_risk` (drafts that are so long)
    """
    check(table, "domain drafter position", "low rate high at_risk")
    table = table.replace({"drafter": theme.MODEL_NAMES})
    by = {"series": "drafter", "panel": "domain", "note": "{at_risk:,.0f} drafts at risk"}
    rows = marks(table, "position", "rate", ends="low rate high", **by)
    x = "position in the draft"
    y = "accepted up to here (probability)"
    chart = Chart(rows["panel"], wide=300, high=330, x=x, y=y)
    add_dots(chart, rows, **LINES).start_at_zero("y", 1.15, top=1.08)
    last = int(rows["x"].max())
    chart.axis("x", tickvals=[1, *range(5, last + 1, 5)], range=[0.5, last + 0.5], showline=True)
    return chart.titled("How much of a long draft is accepted, by drafter")


def sensitivity(table: pd.DataFrame) -> go.Figure:
    """What K00, the tokens that the target wants of its first drafter, changes: a line per kind of
    text with intervals, relative to K00 = 1 (dotted), and the paper's as diamonds; a panel per
    variant and way.

    table    a row per dot: `domain`, `k00`, `variant` (what else is set), `by` ("SWI, counted" or
             "speed, measured"), `value` (÷ that at K00 = 1) with its 95 % interval `low` to `high`,
             and `paper_relative` (the same ratio of the paper; NaN where it prints none)
    """
    check(table, "domain k00 variant by", "low value high paper_relative")
    table = table.assign(panel=table["variant"] + ": " + table["by"])
    by = {"panel": "panel", "series": "domain", "ends": "low value high"}
    rows = marks(table, lanes(table, "k00", "domain", 0.44), "value", **by)
    x = "K00, tokens wanted of the first drafter"
    y = "÷ that at K00 = 1 (dotted)"
    chart = Chart(rows["panel"], wide=380, high=330, x=x, y=y)
    add_dots(chart, rows, joined=2)
    papers = marks(table, lanes(table, "k00"), "paper_relative", panel="panel")
    papers = papers.dropna(subset=["y"]).drop_duplicates(["panel", "k00"]).assign(series="paper")
    papers = papers[papers["k00"] != 1]  # there 1 by definition
    add_dots(chart, papers, {"paper": PAPERS[0]}, size=12, by="measured")
    headline = "What more tokens of the first drafter (K00) change"
    return chart.name_places("x", table["k00"]).titled(headline, plain="y")


def lenience(table: pd.DataFrame) -> go.Figure:
    """What lenience changes: a dot per kind of text at each lenience, with an interval, and below
    it the tail; plain decoding's is dotted. A panel per metric.

    table    a row per dot: `domain`, `lenience` (1: none), `metric` (the panel), `value` (÷ plain
             decoding's) with its 95 % interval `low` to `high`, and `tail` (copied tokens that a
             draft may have at most; NaN writes nothing)
    """
    check(table, "domain lenience metric", "low value high tail")
    table = table.assign(named=table["lenience"].map("{:g}".format))
    by = {"series": "domain", "panel": "metric", "ends": "low value high"}
    rows = marks(table, lanes(table, "named", "domain", 0.64), "value", **by)
    x = "lenience (1: none)"
    y = "÷ plain decoding's (dotted)"
    chart = Chart(rows["panel"], wide=430, x=x, y=y, shared_y=False, gap=0.07)
    styles = looks(rows["series"])
    add_dots(chart, rows, styles)
    rows["text"] = rows["tail"].map("{:g}".format).replace("nan", "")
    below = rows.assign(y=rows["low"].fillna(rows["y"])).drop(columns=["low", "high"])
    for (_, name), own in groups_of(below, ["panel", "series"]):
        words_beside(chart, own, lying=False)
        font = {"color": styles[name].colour, "size": 11}
        chart.figure.data[-1].update(textposition="bottom center", textfont=font)
    headline = "Lenience, each with its K tuned on SWI; below an interval, the tail: copies at most"
    return chart.name_places("x", table["named"]).titled(headline, plain="y")


def budget_curves(table: pd.DataFrame) -> go.Figure:
    """Tokens per round against a tree's size: a line per shape of tree through what is predicted,
    over a band where it has an interval, and a dot with an interval for each that was counted.

    table    a row per point: `budget` (nodes without the root, from 1), `shape`, `measured`
             (whether it was counted and not predicted), and `tokens_per_round` with its 95 %
             interval `low` to `high` (NaN: none)
    """
    ends = "low tokens_per_round high"
    check(table, "", f"budget shape measured {ends}")
    rows = marks(table, "budget", "tokens_per_round", series="shape", ends=ends)
    styles = looks(rows["series"])
    chart = _budget_chart(rows, "tokens per round")
    seen = rows["measured"].astype(bool)
    add_dots(chart, rows[~seen], styles, **LINES, by="predicted")
    headline = "Tokens per round of a tree of each size: lines are predicted, dots counted"
    return add_dots(chart, rows[seen], styles, size=10, by="counted").titled(headline)


def budget_speed_ups(table: pd.DataFrame, *, title: str = "") -> go.Figure:
    """Predicted speed-up over plain decoding (dotted) against a tree's size: a line per deepest
    guess allowed, thicker where another may cover it; a star at the best.

    table    a row per point: `budget` (nodes without the root, from 1), `depth` (of the deepest
             guess allowed) and `speed_up` (× plain decoding's speed)
    """
    check(table, "budget depth", "speed_up")
    rows = marks(table, "budget", "speed_up").sort_values(["depth", "budget"])
    rows = rows.assign(series=rows["depth"].map("depth ≤ {}".format))
    chart = _budget_chart(rows, "predicted speed-up over plain decoding (dotted)")
    styles = looks(rows["series"])
    for place, (name, own) in enumerate(groups_of(rows, "series")):
        line: dict[str, Any] = {**LINES, "joined": 2 + 1.3 * (len(styles) - 1 - place)}
        add_dots(chart, own, {name: styles[name]}, **line, by="predicted")
    best = rows.iloc[rows["y"].argmax()]
    words = f"{best.y:.2f} with {best.budget} guesses, {best.series}"
    star = best.to_frame().T.assign(series="the best", text=words)
    add_dots(chart, star, {"the best": Look(INK, symbol="star")}, size=15)
    headline = "Predicted: which budget is fastest, for each deepest guess allowed"
    return chart.titled(title or headline, plain="y")


def _budget_chart(rows: pd.DataFrame, y: str) -> Chart:
    if rows["x"].min() < 1:
        raise ValueError(f"a budget is at least 1 node, got {rows['x'].min()}")
    chart = Chart(high=404, x="budget, in nodes without the root", y=y)
    ends = math.log10(rows["x"].min()) - 0.04, math.log10(rows["x"].max()) + 0.04
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


def relative_performance(table: pd.DataFrame, *, title: str) -> go.Figure:
    """Each prompt's performance against plain decoding's (dotted): a dot per method, prompts sorted
    by that of "staged"; a panel per sampler and way of finding it.

    table    a row per prompt and method: `prompt`, `method` ("staged" among them), `sampling`, `by`
             (what is compared and how it was found, such as "seconds, measured") and `relative`
             (plain decoding's per token ÷ the method's: above 1 the method is better); perhaps
             `called` (the method's name in the legend)
    """
    check(table, "sampling by prompt method", "relative")
    table = table.assign(panel=table["sampling"] + ": " + table["by"])
    staged = table[table["method"] == "staged"].set_index(["panel", "prompt"])["relative"]
    rank = staged.groupby("panel").rank(method="first").rename("rank")
    by = {"series": "called", "panel": "panel", "note": "{prompt}"}
    table = table.assign(called=table.get("called", table["method"]))
    rows = marks(table.join(rank.astype(int), on=["panel", "prompt"]), "rank", "relative", **by)
    chart = Chart(rows["panel"], wide=380, x="rank of the prompt")
    most = int(rows["x"].max())
    add_dots(chart, rows, joined=1.2, size=8 if most <= 40 else 5)
    for panel, what in table.drop_duplicates(["by"])[["panel", "by"]].to_numpy():
        y = f"{what.split(',')[0]} per token: plain decoding's ÷ the method's (dotted: 1)"
        chart.axis("y", panel, title=wrap(y, 36))
    chart.axis("x", range=[0.5 - 0.02 * most, 0.5 + 1.02 * most]).axis("y", rangemode="tozero")
    return chart.titled(title, plain="y")
