"""Charts of lines, over bands where there is an interval."""

import math

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures import theme
from specdec_lib.show.figures.chart import Chart
from specdec_lib.show.figures.forms import COUNTED, MEASURED, PREDICTED, add_dots, words_beside
from specdec_lib.show.figures.marks import check, lanes, marks, names_of
from specdec_lib.show.figures.theme import DASHES, INK, PAPERS, SOURCES, SYMBOLS, Look, looks, short

LINES = {"joined": 2, "size": 0, "bands": True}
DOTTED = LINES | {"size": 8}
SECONDS = "low_seconds seconds high_seconds"
CHOSEN, ALLOWED, STAR = "at the chosen context", "what the machine would allow", "this pass"
PASS_LOOKS = {
    CHOSEN: Look(SOURCES["target"]),
    ALLOWED: Look(INK, "dot"),
    STAR: Look(SOURCES["target"], symbol="star"),
}


def position(table: pd.DataFrame) -> go.Figure:
    """How likely a draft is accepted up to a position: a line per drafter, a panel per domain.

    table    `domain`, `drafter`, `position` from 1, `at_risk` (drafts that long), `rate` (NaN draws
             nothing), `low`, `high`
    """
    by = {"series": "drafter", "panel": "domain", "once": "domain drafter position"}
    note = "{at_risk:,.0f} drafts at risk"
    table = table.replace({"drafter": theme.MODEL_NAMES})
    rows = marks(table, "position", "rate", ends="low rate high", note=note, **by)
    x, y = "position in the draft", "accepted up to here (probability)"
    chart = Chart(rows["panel"], wide=300, high=330, x=x, y=y)
    add_dots(chart, rows, **LINES)
    last = int(rows["x"].max())
    ticks = [1, *range(5, last + 1, 5)] if last > 12 else list(range(1, last + 1))
    chart.axis("x", tickvals=ticks, range=[0.5, last + 0.5], showline=True)
    chart.show_rates(rows)
    return chart.titled("How much of a long draft is accepted, by drafter")


def sensitivity(table: pd.DataFrame) -> go.Figure:
    """What K00 changes, by SWI beside by the clock: a line per domain, the paper's speed as
    diamonds beside ours.

    table    `domain`, `k00`, `variant` (what else is set), `by` ("SWI, counted", "speed,
             measured"), `value` ÷ that at K00 = 1, `low`, `high`, `paper_relative`; NaN: none
    """
    check(table, "domain k00 variant by", "low value high paper_relative")
    table = table.assign(panel=table["variant"] + ": " + table["by"]).sort_values("k00")
    place = lanes(table, "k00", "domain", 0.44, names_of(table.sort_index()["domain"]))
    ours = marks(table, place, "value", series="domain", panel="panel", ends="low value high")
    x, y = "K00, tokens wanted of the first drafter", "÷ that at K00 = 1 (dotted)"
    panels = names_of(table.sort_index()["panel"])
    chart = Chart(panels, wide=380, high=330, x=x, y=y, shared_y=False, gap=0.07)
    add_dots(chart, ours.sort_index(), joined=2)
    theirs = table.assign(x=lanes(table, "k00")).dropna(subset=["paper_relative"])
    if len(theirs):
        theirs = theirs.drop_duplicates(["panel", "k00"])
        papers = marks(theirs, "x", "paper_relative", panel="panel").assign(series="paper")
        add_dots(chart, papers, {"paper": PAPERS[0]}, size=12, by=MEASURED)
    chart.name_places("x", table["k00"])
    return chart.titled("What more tokens of the first drafter (K00) change", plain="y")


def lenience(table: pd.DataFrame) -> go.Figure:
    """What lenience changes: a panel per metric, a line per domain.

    table    `domain`, `lenience`, `metric` (such as "SWI, counted"), `value`, `low`, `high`, and
             `tail`, copied tokens in a draft at most (beside the mark; NaN: not shown)
    """
    check(table, "domain lenience metric", "low value high tail")
    table = table.assign(named=table["lenience"].map("{:g}".format)).sort_values("lenience")
    place = lanes(table, "named", "domain", 0.3, names_of(table.sort_index()["domain"]))
    by = {"series": "domain", "panel": "metric", "ends": "low value high"}
    rows = marks(table, place, "value", **by).sort_index()
    tails = rows["tail"].map(lambda tail: "" if math.isnan(tail) else f"{tail:g}")
    x, y = "lenience (1: none)", "÷ plain decoding's (dotted)"
    chart = Chart(rows["panel"], wide=370, x=x, y=y, shared_y=False, gap=0.07)
    styles = looks(rows["series"])
    add_dots(chart, rows, styles, joined=2)
    words = rows.assign(text=tails).drop(columns=["low", "high"])
    for (_, name), own in words.groupby(["panel", "series"], sort=False):
        words_beside(chart, own, lying=False, away=9)
        font = {"color": styles[name].colour, "size": 11}
        chart.figure.data[-1].update(textposition="middle right", textfont=font)
    chart.name_places("x", table["named"])
    headline = "Lenience, each with its own K tuned on SWI; beside a mark, the tail: copies at most"
    return chart.titled(headline, plain="y")


def budget_curves(table: pd.DataFrame) -> go.Figure:
    """Tokens per round against the budget, a line per shape of tree.

    table    `budget` (nodes without the root), `tokens_per_round`, `shape` (its name), `measured`
             (a dot, else part of the shape's line), `low` and `high` (an interval, or NaN)
    """
    check(table, "", "shape measured")
    ends = "low tokens_per_round high"
    rows = marks(table, "budget", "tokens_per_round", series="shape", ends=ends)
    styles, chart = looks(rows["series"]), _budget_chart(rows, "tokens per round")
    seen = rows["measured"].astype(bool)
    add_dots(chart, rows[~seen], styles, **LINES, by=PREDICTED)
    kept = {name: styles[name] for name in names_of(rows[seen]["series"])}
    add_dots(chart, rows[seen], kept, size=10, by=COUNTED)
    headline = "Tokens per round of a tree of each size: lines are predicted, dots counted"
    return chart.titled(headline)


def budget_speed_ups(table: pd.DataFrame) -> go.Figure:
    """Predicted speed-up against the budget, a line per deepest guess allowed, thicker where
    another may cover it; a star marks the best.

    table    `budget` (nodes without the root), `depth` (the deepest guess allowed), `speed_up`
    """
    rows = marks(table, "budget", "speed_up", once="budget depth").sort_values(["depth", "budget"])
    rows = rows.assign(series=rows["depth"].map("depth ≤ {}".format))
    chart = _budget_chart(rows, "predicted speed-up over plain decoding (dotted)")
    styles = looks(rows["series"])
    for place, (name, own) in enumerate(rows.groupby("series", sort=False)):
        line = LINES | {"joined": 2 + 1.3 * (len(styles) - 1 - place)}
        add_dots(chart, own, {name: styles[name]}, **line, by=PREDICTED)
    best = rows.loc[rows["y"].idxmax()]
    words = f"{best.y:.2f} with {best.budget} guesses, {best.series}"
    star = best.to_frame().T.assign(series="the best", text=words)
    add_dots(chart, star, {"the best": Look(INK, symbol="star")}, size=15)
    headline = "Predicted: which budget is fastest, for each deepest guess allowed"
    return chart.titled(headline, plain="y")


def _budget_chart(rows: pd.DataFrame, y: str) -> Chart:
    least, most = rows["x"].min(), rows["x"].max()
    if least < 1:
        raise ValueError(f"a budget is at least 1 node, got {least}")
    chart = Chart(high=404, x="budget, in nodes without the root", y=y)
    chart.count_in_powers(rows["x"])
    chart.axis("x", range=[math.log10(least) - 0.04, math.log10(most) + 0.04])
    return chart


def latency(table: pd.DataFrame) -> go.Figure:
    """Milliseconds of a pass against its rows, a panel per model, a line per runtime and for the
    least and the greatest context, with a band between the quartiles; the roofline dotted.

    table    `model`, `runtime`, `rows`, `context_tokens`, `seconds`, `low_seconds`, `high_seconds`,
             `roofline_seconds`
    """
    check(table, "model runtime rows context_tokens", f"{SECONDS} roofline_seconds")
    table = table.replace({"model": theme.MODEL_NAMES})
    contexts = sorted({table["context_tokens"].min(), table["context_tokens"].max()})
    table = table[table["context_tokens"].isin(contexts)]
    after = table["context_tokens"].map(", context {}".format) if len(contexts) > 1 else ""
    table = table.assign(series=table["runtime"].map(str) + after)
    rows, hues = _milliseconds(table, panel="model"), looks(table["runtime"])
    styles = {}
    for row in table.itertuples():
        hue, dash = hues[str(row.runtime)], DASHES[contexts.index(row.context_tokens)]
        styles[row.series] = Look(hue.colour, dash, hue.symbol)
    look = {"wide": 260, "shared_y": False, "gap": 0.07}
    chart = Chart(rows["panel"], **look, x="rows of a pass", y="milliseconds of a pass")
    add_dots(chart, rows, styles, **DOTTED)
    roofs = rows[rows["context_tokens"] == contexts[-1]].drop(columns=["low", "high"])
    alike: dict[tuple[float, ...], list[str]] = {}  # runtimes of one roofline, as of one format
    for name, own in roofs.groupby(roofs["runtime"].map(str), sort=False):
        alike.setdefault(tuple(own["roofline_seconds"]), []).append(name)
    called = {
        name: f"roofline, {' and '.join(names)}" for names in alike.values() for name in names
    }
    dotted = {called[name]: Look(hues[name].colour, "dot") for name in called}
    roofs = roofs[roofs["runtime"].map(str).isin([names[0] for names in alike.values()])]
    roofs = roofs.assign(y=1e3 * roofs["roofline_seconds"], series=roofs["runtime"].map(called))
    add_dots(chart, roofs, dotted, **LINES)
    chart.count_in_powers(table["rows"])
    chart.axis("y", rangemode="tozero")
    return chart.titled("How long a pass takes, measured, by its rows; the roofline is predicted")


def _milliseconds(table: pd.DataFrame, panel: str = "") -> pd.DataFrame:
    """Passes as marks, in milliseconds; low and high are their quartiles."""
    scaled = table.assign(**{name: 1e3 * table[name] for name in SECONDS.split()})
    return marks(scaled, "rows", "seconds", series="series", panel=panel, ends=SECONDS)


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
    named = named.assign(series=named["context_tokens"].map("context {}".format))
    styles = PASS_LOOKS | {
        name: Look(INK, DASHES[number % len(DASHES)], SYMBOLS[number % len(SYMBOLS)])
        for number, name in enumerate(names_of(named["series"]))
    }
    chart = Chart(high=394, x="rows of the pass", y="milliseconds of a pass")
    add_dots(chart, _milliseconds(named), styles, joined=1, size=6, bands=True)
    chosen = marks(line, "rows", 1e3 * line["seconds"]).sort_values("rows").assign(series=CHOSEN)
    add_dots(chart, chosen, styles, joined=3, size=0)
    roof = chosen.assign(y=1e3 * chosen["roofline_seconds"], series=ALLOWED)
    add_dots(chart, roof, styles, **LINES)
    star = chosen[chosen["rows"] == rows]
    took, one = star["y"].iloc[0], chosen["y"].iloc[0]
    words = f"{short(took)} ms, {short(took / one)} × one row"
    add_dots(chart, star.assign(series=STAR, text=words), styles, size=17)
    side, font = "left" if rows > 4 else "right", {"size": 14, "color": SOURCES["target"]}
    chart.figure.data[-1].update(textposition=f"top {side}", textfont=font)
    chart.count_in_powers([1, *line["rows"]])
    chart.axis("y", rangemode="tozero")
    return chart.titled(title)


def relative_performance(table: pd.DataFrame, *, title: str) -> go.Figure:
    """Each prompt's relative performance per method, a panel per sampling and way of finding it;
    prompts are sorted by that of "staged", or else of the last method.

    table    `sampling`, `by` (such as "bytes, counted"), `prompt`, `method`, `relative` (1 is plain
             decoding's)
    """
    check(table, "sampling by prompt method", "relative")
    table = table.assign(panel=table["sampling"] + ": " + table["by"])
    ranked = [_rank(own, name) for name, own in table.groupby("panel", sort=False)]
    by = {"series": "method", "panel": "panel", "note": "{prompt}"}
    rows = marks(pd.concat(ranked), "rank", "relative", **by)
    x, y = "rank of the prompt", "× as good as plain decoding (dotted)"
    chart, most = Chart(rows["panel"], wide=380, x=x, y=y), int(rows["x"].max())
    add_dots(chart, rows, looks(table["method"]), joined=1.2, size=8 if most <= 40 else 5)
    chart.axis("x", range=[0.5 - 0.02 * most, 0.5 + 1.02 * most])
    chart.axis("y", rangemode="tozero")
    return chart.titled(title, plain="y")


def _rank(rows: pd.DataFrame, sampling: str) -> pd.DataFrame:
    """The rows of one panel with the rank of each prompt, from the leading method's lowest up."""
    methods, prompts = names_of(rows["method"]), rows["prompt"].nunique()
    if len(rows) != prompts * len(methods):
        raise ValueError(
            f"every prompt needs one row per method: {sampling!r} has {prompts} prompts times"
            f" {len(methods)} methods but {len(rows)} rows"
        )
    lead = rows[rows["method"] == ("staged" if "staged" in methods else methods[-1])]
    rank = lead.set_index("prompt")["relative"].rank(method="first").astype(int)
    return rows.assign(rank=rows["prompt"].map(rank))
