"""Charts of lines, over bands where there is an interval."""

import math

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.chart import PLAIN, Chart, fold, open_chart
from specdec_lib.show.figures.forms import add_dots, add_lines
from specdec_lib.show.figures.labels import short
from specdec_lib.show.figures.marks import check, groups, marks, names_of
from specdec_lib.show.figures.theme import DASHES, INK, PAPERS, SOURCES, SYMBOLS, Look, looks

PAPER = "paper (tokens per second)"
SECONDS = "low_seconds seconds high_seconds"
CHOSEN, ALLOWED, STAR = "at the chosen context", "what the machine would allow", "this pass"
PASS_LOOKS = {
    CHOSEN: Look(SOURCES["target"]),
    ALLOWED: Look(INK, "dot"),
    STAR: Look(SOURCES["target"], symbol="star"),
}


def position(table: pd.DataFrame) -> go.Figure:
    """How likely a draft is accepted up to and including a position: a line with a band per
    drafter, a panel per domain.

    table    `domain`, `drafter`, `position` from 1, `at_risk` (drafts that long), `rate` (NaN draws
             nothing), `low`, `high`
    """
    by = {"series": "drafter", "panel": "domain", "once": "domain drafter position"}
    note = "{at_risk:,.0f} drafts at risk"
    rows = marks(table, "position", "rate", ends="low rate high", note=note, **by)
    across, down = fold(rows["panel"].nunique())
    size, y = (min(900, 110 + 300 * across), 40 + 310 * down), "accepted up to here (probability)"
    chart = open_chart(rows["panel"], size=size, x="position in the draft", y=y, columns=across)
    add_lines(chart, rows)
    last = int(rows["x"].max())
    ticks = [1, *range(5, last + 1, 5)] if last > 12 else list(range(1, last + 1))
    chart.figure.update_xaxes(tickvals=ticks, range=[0.5, last + 0.5], showline=True)
    chart.figure.update_yaxes(range=[0, 1.02])
    return chart.titled("How much of a long draft is accepted, by drafter")


def sensitivity(table: pd.DataFrame) -> go.Figure:
    """What K00 changes: SWI ÷ that at K00 = 1, a line with a band per domain; the paper's tokens
    per second, ÷ theirs at 1, as diamonds.

    table    `domain`, `k00`, `ours`, `ours_low`, `ours_high` (SWI), `ours_relative`, `paper`
             (tokens per second), `paper_relative`; NaN where there is none
    """
    check(table, "domain k00", "ours_low ours ours_high ours_relative paper paper_relative")
    by = {"series": "domain", "ends": "ours_low ours ours_high", "note": "SWI {ours:.3f}"}
    rows = marks(table, "k00", "ours_relative", **by)
    scale = table["ours_relative"] / table["ours"]
    x, y = "K00, tokens wanted of the first drafter per round", "SWI ÷ that at K00 = 1"
    chart = open_chart(size=(760, 354), x=x, y=y)
    add_lines(chart, rows.assign(low=rows["low"] * scale, high=rows["high"] * scale), dots=8)
    theirs = table.dropna(subset=["paper_relative"]).drop_duplicates(["k00", "paper_relative"])
    if len(theirs):
        papers = marks(theirs, "k00", "paper_relative", note="{paper:.2f} tokens per second")
        add_dots(chart, papers.assign(series=PAPER), {PAPER: PAPERS[0]}, size=12)
    chart.figure.add_hline(y=1, **PLAIN)
    chart.figure.update_xaxes(tickvals=sorted(set(table["k00"])), showline=True)
    return chart.titled("What K00 changes, relative to K00 = 1")


def lenience(table: pd.DataFrame) -> go.Figure:
    """Lenience against speed and against length: SWI with a band on the left, tokens per round on
    the right, a line per domain.

    table    `domain`, `lenience`, `swi`, `swi_low`, `swi_high`, `tokens_per_round`
    """
    by = {"series": "domain", "once": "domain lenience"}
    length = marks(table, "lenience", "tokens_per_round", **by)
    swi = marks(table, "lenience", "swi", ends="swi_low swi swi_high", **by)
    panels = {"SWI (plain decoding is 1)": swi, "tokens per round": length}
    size, x = (860, 346), "lenience (1: none)"
    chart = open_chart(panels, size=size, x=x, shared_y=False, gap=0.09)
    for panel, rows in panels.items():
        add_lines(chart, rows.assign(panel=panel), dots=8)
    ticks = sorted(set(table["lenience"]))
    words = [f"{tick:g}" for tick in ticks]
    chart.figure.update_xaxes(type="log", tickvals=ticks, ticktext=words, showline=True)
    return chart.titled("Lenience at the inner reviews, against speed and against tokens per round")


def budget_curves(table: pd.DataFrame) -> go.Figure:
    """Tokens per round against the budget, on a scale where each doubling is one step; a line per
    shape of tree.

    table    `budget` (nodes without the root), `tokens_per_round`, `shape` (its name), `measured`
             (a dot, else part of the shape's line), `low` and `high` (an interval, or NaN)
    """
    check(table, "", "shape measured")
    ends = "low tokens_per_round high"
    rows = marks(table, "budget", "tokens_per_round", series="shape", ends=ends)
    styles, chart = looks(rows["series"]), _budget_chart(rows, "tokens per round")
    seen = rows["measured"].astype(bool)
    add_lines(chart, rows[~seen], styles)
    add_dots(chart, rows[seen], styles, size=10)
    return chart.titled(
        "Tokens per round of a tree of each size: lines are predicted, dots measured"
    )


def budget_speed_ups(table: pd.DataFrame) -> go.Figure:
    """Speed-up against the budget, a line per deepest guess allowed; a star marks the best of all,
    a dotted line plain decoding.

    table    `budget` (nodes without the root), `depth` (the deepest guess allowed), `speed_up`
    """
    rows = marks(table, "budget", "speed_up", once="budget depth").sort_values(["depth", "budget"])
    rows = rows.assign(series=rows["depth"].map("depth ≤ {}".format))
    chart = _budget_chart(rows, "speed-up over plain decoding (dotted)")
    add_lines(chart, rows)
    best = rows.loc[[rows["y"].idxmax()]]
    words = [f"{one.y:.2f} with {one.budget} guesses, {one.series}" for one in best.itertuples()]
    star = best.assign(series="the best", text=words)
    add_dots(chart, star, {"the best": Look(INK, symbol="star")}, size=15)
    chart.figure.add_hline(y=1, **PLAIN)
    return chart.titled("Which budget is fastest, for each deepest guess allowed")


def _budget_chart(rows: pd.DataFrame, y: str) -> Chart:
    if rows["x"].min() < 1:
        raise ValueError(f"a budget is at least 1 node, got {rows['x'].min()}")
    chart = open_chart(size=(760, 404), x="budget, in nodes without the root", y=y)
    chart.count_in_powers(rows["x"])
    ends = math.log10(rows["x"].min()) - 0.04, math.log10(rows["x"].max()) + 0.04
    chart.figure.update_xaxes(range=ends)
    return chart


def latency(table: pd.DataFrame) -> go.Figure:
    """Milliseconds of a pass against its rows, a panel per model, each with its own y axis, and a
    line per runtime with a band between the quartiles; the roofline dotted.

    table    `model`, `runtime`, `rows`, `context_tokens`, `seconds`, `low_seconds`, `high_seconds`,
             optionally `roofline_seconds`, drawn at the greatest context; where there are several
             contexts, the least and the greatest are drawn, as lines of their own
    """
    check(table, "model runtime rows context_tokens", SECONDS)
    contexts = sorted({table["context_tokens"].min(), table["context_tokens"].max()})
    table = table[table["context_tokens"].isin(contexts)]
    after = table["context_tokens"].map(", context {}".format) if len(contexts) > 1 else ""
    table = table.assign(series=table["runtime"].map(str) + after)
    rows, hues = _milliseconds(table, panel="model"), looks(table["runtime"])
    styles = {}
    for row in table.itertuples():
        hue, dash = hues[str(row.runtime)], DASHES[contexts.index(row.context_tokens)]
        styles[row.series] = Look(hue.colour, dash, hue.symbol)
    size, y = (130 + 260 * rows["panel"].nunique(), 324), "milliseconds of a pass"
    chart = open_chart(rows["panel"], size=size, x="rows of a pass", y=y, shared_y=False, gap=0.07)
    add_lines(chart, rows, styles, dots=7)
    if "roofline_seconds" in table:
        roofs = rows[rows["context_tokens"] == contexts[-1]].drop(columns=["low", "high"])
        named = "roofline, " + roofs["runtime"].map(str)
        dotted = {f"roofline, {name}": Look(look.colour, "dot") for name, look in hues.items()}
        add_lines(chart, roofs.assign(y=1e3 * roofs["roofline_seconds"], series=named), dotted)
    chart.count_in_powers(table["rows"])
    chart.figure.update_yaxes(rangemode="tozero")
    return chart.titled("How long a pass takes, by its rows")


def _milliseconds(table: pd.DataFrame, panel: str = "") -> pd.DataFrame:
    """Passes as marks, in milliseconds; low and high are their quartiles."""
    scaled = table.assign(**{name: 1e3 * table[name] for name in SECONDS.split()})
    return marks(scaled, "rows", "seconds", series="series", panel=panel, ends=SECONDS)


def pass_at(measured: pd.DataFrame, line: pd.DataFrame, *, rows: int, title: str = "") -> go.Figure:
    """Milliseconds of a pass against its rows: a thin line with dots per measured context, a thick
    one at the chosen context, a star at the pass.

    measured    of one model in one runtime: `rows`, `context_tokens`, `seconds`, `low_seconds`,
                `high_seconds`
    line        at the chosen context: `rows`, `seconds`, optionally `roofline_seconds`, drawn
                dotted
    rows        of the pass that the star marks; words beside it say its milliseconds, and how many
                times those of one row
    """
    check(measured, "rows context_tokens", SECONDS)
    check(line, "rows", "seconds")
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
    chart = open_chart(size=(780, 394), x="rows of the pass", y="milliseconds of a pass")
    add_lines(chart, _milliseconds(named), styles, dots=6, width=1)
    chosen = marks(line, "rows", 1e3 * line["seconds"]).sort_values("rows").assign(series=CHOSEN)
    add_lines(chart, chosen, styles, width=3)
    if "roofline_seconds" in line:
        add_lines(chart, chosen.assign(y=1e3 * chosen["roofline_seconds"], series=ALLOWED), styles)
    star = chosen[chosen["rows"] == rows]
    took, one = star["y"].iloc[0], chosen["y"].iloc[0]
    words = f"{short(took)} ms, {short(took / one)} × one row"
    add_dots(chart, star.assign(series=STAR, text=words), styles, size=17)
    place = "top left" if rows > 4 else "top right"
    chart.figure.data[-1].update(textposition=place)
    chart.figure.data[-1].textfont = {"size": 14, "color": SOURCES["target"]}
    chart.count_in_powers([1, *line["rows"]])
    chart.figure.update_yaxes(rangemode="tozero")
    return chart.titled(title or f"How long a pass of {rows} rows takes")


def relative_performance(table: pd.DataFrame) -> go.Figure:
    """Each prompt's relative performance per method, prompts sorted by that of "staged" (or else
    the last method); a panel per sampling.

    table    `sampling`, `prompt`, `method`, `relative` (1 is plain decoding's)
    """
    check(table, "sampling prompt method", "relative")
    ranked = pd.concat([_rank(own, sampling) for sampling, own in groups(table, "sampling")])
    by = {"series": "method", "panel": "sampling", "note": "{prompt}"}
    rows = marks(ranked, "rank", "relative", **by)
    size, y = (130 + 380 * rows["panel"].nunique(), 354), "performance ÷ plain decoding's (dotted)"
    chart, most = open_chart(rows["panel"], size=size, x="rank of the prompt", y=y), rows["x"].max()
    add_dots(chart, rows, looks(table["method"]), joined=1.2, size=8 if most <= 40 else 5)
    chart.figure.add_hline(y=1, **PLAIN)
    step = next(step for step in (1, 2, 5, 10, 20, 50, 100, most) if most <= 10 * step)
    ticks = [1, *range(max(2, step), most + 1, step)]
    chart.figure.update_xaxes(tickvals=ticks, range=[0.5 - 0.02 * most, 0.5 + 1.02 * most])
    chart.figure.update_yaxes(rangemode="tozero")
    return chart.titled("Performance on each prompt, against plain decoding")


def _rank(rows: pd.DataFrame, sampling: str) -> pd.DataFrame:
    """The rows of one panel with the rank of each prompt, from the leading method's lowest up."""
    methods, prompts = names_of(rows["method"]), rows["prompt"].nunique()
    if len(rows) != prompts * len(methods):
        raise ValueError(
            f"every prompt needs one row per method: {sampling!r} has {prompts} prompts times"
            f" {len(methods)} methods but {len(rows)} rows"
        )
    lead = rows[rows["method"] == ("staged" if "staged" in methods else methods[-1])]
    order = lead.sort_values("relative", kind="stable")["prompt"].tolist()
    return rows.assign(rank=rows["prompt"].map(order.index) + 1).sort_values("rank", kind="stable")
