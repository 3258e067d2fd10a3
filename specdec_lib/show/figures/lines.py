"""Charts of lines, over bands where there is an interval."""

import math
from dataclasses import replace

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures import theme
from specdec_lib.show.figures.chart import Chart
from specdec_lib.show.figures.forms import add_dots, words_beside
from specdec_lib.show.figures.marks import check, lanes, marks, names_of
from specdec_lib.show.figures.theme import DASHES, INK, PAPERS, SOURCES, Look, looks, short, wrap

LINES = {"joined": 2, "size": 0, "bands": True}
SECONDS = "low_seconds seconds high_seconds"
CHOSEN, ALLOWED, STAR = "at the chosen context", "what the machine would allow", "this pass"
PASS_LOOKS = {
    CHOSEN: Look(SOURCES["target"]),
    ALLOWED: Look(INK, "dot"),
    STAR: Look(SOURCES["target"], symbol="star"),
}


def position(table: pd.DataFrame) -> go.Figure:
    """How likely, `rate`, a draft is accepted up to a `position` from 1: a line per `drafter`, a
    panel per `domain`; `at_risk` drafts are that long.
    """
    check(table, "domain drafter position", "low rate high at_risk")
    table = table.replace({"drafter": theme.MODEL_NAMES})
    by = {"series": "drafter", "panel": "domain", "note": "{at_risk:,.0f} drafts at risk"}
    rows = marks(table, "position", "rate", ends="low rate high", **by)
    x, y = "position in the draft", "accepted up to here (probability)"
    chart = Chart(rows["panel"], wide=300, high=330, x=x, y=y)
    add_dots(chart, rows, **LINES)
    last = int(rows["x"].max())
    ticks = [1, *range(5, last + 1, 5)]
    chart.axis("x", tickvals=ticks, range=[0.5, last + 0.5], showline=True)
    chart.show_rates(rows)
    return chart.titled("How much of a long draft is accepted, by drafter")


def sensitivity(table: pd.DataFrame) -> go.Figure:
    """What `k00` changes: `value` ÷ that at K00 = 1, a line per `domain`, a panel per `variant` of
    what else is set and way, `by` ("SWI, counted" or "speed, measured"); beside ours the paper's,
    `paper_relative`, or NaN.
    """
    check(table, "domain k00 variant by", "low value high paper_relative")
    table = table.assign(panel=table["variant"] + ": " + table["by"])
    by = {"panel": "panel", "series": "domain", "ends": "low value high"}
    rows = marks(table, lanes(table, "k00", "domain", 0.44), "value", **by)
    x, y = "K00, tokens wanted of the first drafter", "÷ that at K00 = 1 (dotted)"
    chart = Chart(rows["panel"], wide=380, high=330, x=x, y=y)
    add_dots(chart, rows, joined=2)
    papers = marks(table, lanes(table, "k00"), "paper_relative", panel="panel")
    papers = papers[papers["k00"] != 1]  # there 1 by definition
    papers = papers.assign(series="paper").dropna(subset=["y"]).drop_duplicates(["panel", "k00"])
    add_dots(chart, papers, {"paper": PAPERS[0]}, size=12, by="measured")
    chart.name_places("x", table["k00"])
    return chart.titled("What more tokens of the first drafter (K00) change", plain="y")


def lenience(table: pd.DataFrame) -> go.Figure:
    """What `lenience` changes: a `value` ÷ plain decoding's, a panel per `metric`, a series
    per `domain`; below an interval its `tail`, copied tokens in a draft at most, or NaN.
    """
    check(table, "domain lenience metric", "low value high tail")
    table = table.assign(named=table["lenience"].map("{:g}".format))
    by = {"series": "domain", "panel": "metric", "ends": "low value high"}
    rows = marks(table, lanes(table, "named", "domain", 0.64), "value", **by)
    x, y = "lenience (1: none)", "÷ plain decoding's (dotted)"
    chart = Chart(rows["panel"], wide=430, x=x, y=y, shared_y=False, gap=0.07)
    styles = looks(rows["series"])
    add_dots(chart, rows, styles)
    tails = rows["tail"].map("{:g}".format).replace("nan", "")
    words = rows.assign(text=tails, y=rows["low"].fillna(rows["y"])).drop(columns=["low", "high"])
    for (_, name), own in words.groupby(["panel", "series"], sort=False):
        words_beside(chart, own, lying=False)
        font = {"color": styles[name].colour, "size": 11}
        chart.figure.data[-1].update(textposition="bottom center", textfont=font)
    chart.name_places("x", table["named"])
    headline = "Lenience, each with its K tuned on SWI; below an interval, the tail: copies at most"
    return chart.titled(headline, plain="y")


def budget_curves(table: pd.DataFrame) -> go.Figure:
    """`tokens_per_round`, with an interval `low` to `high` or NaN, against the `budget` in nodes
    without the root, a line per `shape` of tree; those that are `measured` are dots.
    """
    ends = "low tokens_per_round high"
    check(table, "", f"budget shape measured {ends}")
    rows = marks(table, "budget", "tokens_per_round", series="shape", ends=ends)
    styles, chart = looks(rows["series"]), _budget_chart(rows, "tokens per round")
    seen = rows["measured"].astype(bool)
    add_dots(chart, rows[~seen], styles, **LINES, by="predicted")
    kept = {name: styles[name] for name in names_of(rows[seen]["series"])}
    add_dots(chart, rows[seen], kept, size=10, by="counted")
    headline = "Tokens per round of a tree of each size: lines are predicted, dots counted"
    return chart.titled(headline)


def budget_speed_ups(table: pd.DataFrame, *, title: str = "") -> go.Figure:
    """Predicted `speed_up` against the `budget` in nodes without the root, a line per `depth`, the
    deepest guess allowed, thicker where another may cover it; a star marks the best.
    """
    check(table, "budget depth", "speed_up")
    rows = marks(table, "budget", "speed_up").sort_values(["depth", "budget"])
    rows = rows.assign(series=rows["depth"].map("depth ≤ {}".format))
    chart = _budget_chart(rows, "predicted speed-up over plain decoding (dotted)")
    styles = looks(rows["series"])
    for place, (name, own) in enumerate(rows.groupby("series", sort=False)):
        line = LINES | {"joined": 2 + 1.3 * (len(styles) - 1 - place)}
        add_dots(chart, own, {name: styles[name]}, **line, by="predicted")
    best = rows.loc[rows["y"].idxmax()]
    words = f"{best.y:.2f} with {best.budget} guesses, {best.series}"
    star = best.to_frame().T.assign(series="the best", text=words)
    add_dots(chart, star, {"the best": Look(INK, symbol="star")}, size=15)
    headline = "Predicted: which budget is fastest, for each deepest guess allowed"
    return chart.titled(title or headline, plain="y")


def _budget_chart(rows: pd.DataFrame, y: str) -> Chart:
    least, most = rows["x"].min(), rows["x"].max()
    if least < 1:
        raise ValueError(f"a budget is at least 1 node, got {least}")
    chart = Chart(high=404, x="budget, in nodes without the root", y=y)
    chart.count_in_powers(rows["x"])
    chart.axis("x", range=[math.log10(least) - 0.04, math.log10(most) + 0.04])
    return chart


def latency(table: pd.DataFrame) -> go.Figure:
    """Milliseconds of a pass against its `rows`, a panel per `model`, a line per `runtime` and for
    the least and the greatest of `context_tokens`, with a band between the quartiles, `low_seconds`
    and `high_seconds`; the roofline, dotted, once for runtimes that share it.
    """
    check(table, "model runtime rows context_tokens", f"{SECONDS} roofline_seconds")
    table = table.replace({"model": theme.MODEL_NAMES})
    contexts = sorted({table["context_tokens"].min(), table["context_tokens"].max()})
    table = table[table["context_tokens"].isin(contexts)]
    after = table["context_tokens"].map(", context {}".format) if len(contexts) > 1 else ""
    rows = _milliseconds(table.assign(series=table["runtime"] + after, panel=table["model"]))
    hues, styles = looks(table["runtime"]), {}
    for row in rows.drop_duplicates("series").itertuples():
        hue, dash = hues[row.runtime], DASHES[contexts.index(row.context_tokens)]
        styles[row.series] = Look(hue.colour, dash, hue.symbol)
    look = {"wide": 260, "shared_y": False, "gap": 0.07}
    chart = Chart(rows["panel"], **look, x="rows of a pass", y="milliseconds of a pass")
    add_dots(chart, rows, styles, **LINES | {"size": 8})
    roofs = rows[rows["context_tokens"] == contexts[-1]].drop(columns=["low", "high"])
    roofs = roofs.assign(y=1e3 * roofs["roofline_seconds"])
    alike: dict[tuple[float, ...], list[str]] = {}
    at = f", context {contexts[-1]}" if len(contexts) > 1 else ""
    for name, own in roofs.groupby("runtime", sort=False):
        alike.setdefault(tuple(own["y"]), []).append(name)
    for names in alike.values():
        called, own = f"roofline, {' and '.join(names)}{at}", roofs[roofs["runtime"] == names[0]]
        dotted = {called: Look(hues[names[-1]].colour, "dot")}
        add_dots(chart, own.assign(series=called), dotted, **LINES)
    chart.count_in_powers(table["rows"])
    chart.axis("y", rangemode="tozero")
    return chart.titled("How long a pass takes, measured, by its rows; the roofline is predicted")


def _milliseconds(table: pd.DataFrame) -> pd.DataFrame:
    """Passes as marks, in milliseconds; low and high are their quartiles."""
    scaled = table.assign(**{name: 1e3 * table[name] for name in SECONDS.split()})
    return marks(scaled, "rows", "seconds", series="series", panel="panel", ends=SECONDS)


def pass_at(measured: pd.DataFrame, line: pd.DataFrame, *, rows: int, title: str) -> go.Figure:
    """Milliseconds of a pass against its rows: thin lines per measured context, a thick one at the
    chosen context, a star at the pass of `rows`.

    measured    of one model in one runtime, as of `latency`
    line        at the chosen context: `rows`, `seconds`, `roofline_seconds`
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
    chosen = marks(line, "rows", 1e3 * line["seconds"]).sort_values("rows").assign(series=CHOSEN)
    add_dots(chart, chosen, PASS_LOOKS, joined=3, size=0)
    roof = chosen.assign(y=1e3 * chosen["roofline_seconds"], series=ALLOWED)
    add_dots(chart, roof, PASS_LOOKS, **LINES)
    star = chosen[chosen["rows"] == rows]
    took, one = star["y"].iloc[0], chosen["y"].iloc[0]
    words = f"{short(took)} ms, {short(took / one)} × one row"
    add_dots(chart, star.assign(series=STAR, text=words), PASS_LOOKS, size=17)
    side, font = "left" if rows > 4 else "right", {"size": 14, "color": SOURCES["target"]}
    chart.figure.data[-1].update(textposition=f"top {side}", textfont=font)
    chart.count_in_powers([1, *line["rows"]])
    chart.axis("y", rangemode="tozero")
    return chart.titled(title)


def relative_performance(table: pd.DataFrame, *, title: str) -> go.Figure:
    """Each `prompt`'s performance, `relative` to plain decoding's, per `method`, a panel per
    `sampling` and way of finding it, `by`; prompts are sorted by that of "staged". The legend has
    the names in `called`, if there is that column.
    """
    check(table, "sampling by prompt method", "relative")
    table = table.assign(panel=table["sampling"] + ": " + table["by"])
    staged = table[table["method"] == "staged"].set_index(["panel", "prompt"])["relative"]
    rank = staged.groupby("panel").rank(method="first").rename("rank")
    by = {"series": "called", "panel": "panel", "note": "{prompt}"}
    table = table.assign(called=table.get("called", table["method"]))
    rows = marks(table.join(rank.astype(int), on=["panel", "prompt"]), "rank", "relative", **by)
    chart, most = Chart(rows["panel"], wide=380, x="rank of the prompt"), int(rows["x"].max())
    add_dots(chart, rows, joined=1.2, size=8 if most <= 40 else 5)
    for panel, what in table.drop_duplicates(["by"])[["panel", "by"]].to_numpy():
        y = f"{what.split(',')[0]} per token: plain decoding's ÷ the method's (dotted: 1)"
        chart.axis("y", panel, title=wrap(y, 36))
    chart.axis("x", range=[0.5 - 0.02 * most, 0.5 + 1.02 * most])
    chart.axis("y", rangemode="tozero")
    return chart.titled(title, plain="y")
