"""Figures of the cascade: by position, K00, lenience, the K matrix and sets of drafters."""

from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.chart import PLAIN, fold, open_chart
from specdec_lib.show.figures.forms import add_cells, add_dots, add_lines, frame_cell
from specdec_lib.show.figures.labels import wrap
from specdec_lib.show.figures.marks import check, check_grid, lanes, marks, names_of
from specdec_lib.show.figures.theme import PAPERS, SOURCES, Look, escape, looks

PAPER = "paper (tokens per second)"
PRINTED, AGAIN, BEST = (
    "printed",
    "recomputed for the same k",
    "at the best k, where another is better",
)
EWIF_LOOKS = {
    PRINTED: PAPERS[0],
    AGAIN: Look(SOURCES["draft"]),
    BEST: Look(SOURCES["target"], symbol="star"),
}
DRAFTERS = (
    "middle",
    "draft",
    "Max-Gram",
    "middle + Max-Gram",
    "draft + Max-Gram",
    "middle + draft + Max-Gram",
)
LANE = 15.0  # pixels from one domain's dot to the next
THIN = {"width": 1, "color": "rgba(128,128,128,0.35)"}


def position(table: pd.DataFrame) -> go.Figure:
    """How likely a draft is accepted up to and including a position: a line with a band per
    drafter, a panel per domain.

    table    `domain`, `drafter`, `position` from 1, `at_risk` (drafts that long), `rate` (NaN draws
             nothing), `low`, `high`
    """
    check(table, "domain drafter position", "at_risk rate low high")
    noted = table.assign(note=[f"{count:,.0f} drafts at risk" for count in table["at_risk"]])
    by = {"series": "drafter", "panel": "domain"}
    rows = marks(noted, "position", "rate", ends="low rate high", **by)
    domains, last = names_of(rows["panel"]), int(rows["x"].max())
    across, down = fold(len(domains))
    size, y = (min(900, 110 + 300 * across), 40 + 310 * down), "accepted up to here (probability)"
    chart = open_chart(domains, size=size, x="position in the draft", y=y, columns=across)
    add_lines(chart, rows)
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
    noted = table.assign(note=table["ours"].map("SWI {:.3f}".format))
    ends = "ours_low ours ours_high"
    rows = marks(noted, "k00", "ours_relative", series="domain", ends=ends)
    scale = table["ours_relative"] / table["ours"]
    rows = rows.assign(low=rows["low"] * scale, high=rows["high"] * scale)
    x, y = "K00, tokens wanted of the first drafter per round", "SWI ÷ that at K00 = 1"
    chart = open_chart(size=(760, 354), x=x, y=y)
    add_lines(chart, rows, dots=8)
    theirs = table.dropna(subset=["paper_relative"]).drop_duplicates(["k00", "paper_relative"])
    if len(theirs):
        said = theirs.assign(note=theirs["paper"].map("{:.2f} tokens per second".format))
        papers = marks(said, "k00", "paper_relative").assign(series=PAPER)
        add_dots(chart, papers, {PAPER: PAPERS[0]}, size=12)
    chart.figure.add_hline(y=1, **PLAIN)
    chart.figure.update_xaxes(tickvals=sorted(set(table["k00"])), showline=True)
    return chart.titled("What K00 changes, relative to K00 = 1")


def lenience(table: pd.DataFrame) -> go.Figure:
    """Lenience against speed and against length: SWI with a band on the left, tokens per round on
    the right, a line per domain.

    table    `domain`, `lenience`, `swi`, `swi_low`, `swi_high`, `tokens_per_round`
    """
    check(table, "domain lenience", "swi_low swi swi_high tokens_per_round")
    speed, length = "SWI (plain decoding is 1)", "tokens per round"
    left = marks(table, "lenience", "swi", series="domain", ends="swi_low swi swi_high")
    right = marks(table, "lenience", "tokens_per_round", series="domain")
    size, x = (860, 346), "lenience (1: none)"
    chart = open_chart((speed, length), size=size, x=x, shared_y=False, gap=0.09)
    for panel, rows in ((speed, left), (length, right)):
        add_lines(chart, rows.assign(panel=panel), dots=8)
    ticks = sorted(set(table["lenience"]))
    words = [f"{tick:g}" for tick in ticks]
    chart.figure.update_xaxes(type="log", tickvals=ticks, ticktext=words, showline=True)
    return chart.titled("Lenience at the inner reviews, against speed and against tokens per round")


def surface(table: pd.DataFrame, *, best: Sequence[int], across: str, down: str) -> go.Figure:
    """SWI over two entries of the K matrix, a cell per pair; a frame and the headline mark the
    optimum.

    table           the full grid: `k1`, `k2`, `swi` (NaN: an empty cell)
    best            the optimum's k1 and k2
    across, down    what k1 and k2 count, for the axes
    """
    check(table, "k1 k2", "swi")
    check_grid(table, "k1 k2")
    at = table[(table["k1"] == best[0]) & (table["k2"] == best[1])].dropna(subset=["swi"])
    if at.empty:
        raise ValueError(
            f"the optimum must be a cell of the surface with a value, got k1 = {best[0]}, k2 ="
            f" {best[1]}"
        )
    grid = table.pivot(index="k2", columns="k1", values="swi").astype(float)
    size = (min(900, 190 + 42 * max(8, grid.shape[1])), 106 + 30 * max(5, grid.shape[0]))
    chart = open_chart(size=size, x=across, y=down)
    add_cells(chart, grid, name="SWI")
    frame_cell(chart, grid, best)
    value = float(at["swi"].iloc[0])
    return chart.titled(f"SWI over K: {value:.3f} in the frame, at ({best[0]}, {best[1]})")


def ewif_by_drafters(table: pd.DataFrame) -> go.Figure:
    """EWIF per set of drafters: the paper's printed value, ours for the same k, and the best k
    where that is better; a panel per data set.

    table    `data`, `drafters`, `lengths` (the printed k, as text), `paper`, `ours`, `best`,
             `best_lengths`
    """
    check(table, "data drafters", "lengths paper ours best best_lengths")
    rows = _ewif_marks(table)
    panels, sets = names_of(rows["panel"]), names_of(table["drafters"])
    size, y = (110 + 390 * len(panels), 346), "EWIF (plain decoding is 1)"
    chart = open_chart(panels, size=size, x="drafters, with the printed k", y=y)
    add_dots(chart, rows, EWIF_LOOKS, size=10)
    chart.name_places("x", sets, longest=14)
    star = {"mode": "markers+text", "name": BEST}
    chart.figure.update_traces(textposition="bottom center", selector=star)
    for data in panels:
        lengths = table[table["data"].map(str) == data].set_index("drafters")["lengths"]
        ticks = [f"{wrap(name, 14)}<br>k = {escape(lengths.get(name, '–'))}" for name in sets]
        chart.figure.update_xaxes(ticktext=ticks, **chart.panels[data])
    low, high = float(rows["y"].min()), float(rows["y"].max())
    room = 0.14 * ((high - low) or 1.0)
    chart.figure.update_yaxes(range=[low - room, high + 2 * room])
    return chart.titled("EWIF of the paper's Table 1: printed, recomputed, and at the best k")


def _ewif_marks(table: pd.DataFrame) -> pd.DataFrame:
    """Three marks per set of drafters; the third only where another k is better."""
    better = table["best"] > table["ours"] + 1e-9
    place, texts = lanes(table["drafters"]), table["best"].map("{:.3f}<br>k = ".format)
    parts = (
        (PRINTED, "paper", -0.29, table["paper"].map("{:.2f}".format), table["paper"].notna()),
        (AGAIN, "ours", 0.0, table["ours"].map("{:.3f}".format), table["ours"].notna()),
        (BEST, "best", 0.29, texts + table["best_lengths"].map(escape), better),
    )
    found = [
        marks(table, place + aside, value, panel="data").assign(series=name, text=words)[shown]
        for name, value, aside, words, shown in parts
    ]
    return pd.concat(found, ignore_index=True)


def swi_by_drafters(table: pd.DataFrame) -> go.Figure:
    """SWI of each set of drafters: a panel per price list, a row per set, in it a lane per domain
    (ours) and per data set of the paper.

    table    `data` (domain, or the paper's data set), `prices`, `method`, `drafters`, and `ours`,
             `ours_low`, `ours_high` or `paper`, NaN where there is none; rows whose method is
             "autoregressive" are the line at 1
    """
    keys, values = "data prices method drafters", "ours_low ours ours_high paper"
    check(table, "", f"{keys} {values}")
    table = table[table["method"] != "autoregressive"]
    check(table, keys, values)
    rows = _swi_marks(table)
    sets, named = names_of(rows["set"]), names_of(rows["series"])
    lists = [f"prices: {name}" for name in names_of(table["prices"])]
    size = (min(900, 200 + 250 * len(lists)), 80 + LANE * (len(named) + 1.6) * len(sets))
    x, y = "SWI (plain decoding is 1, dotted)", "drafters, and how they are used"
    chart = open_chart(lists, size=size, x=x, y=y)
    theirs = [name for name in named if name.startswith("paper, ")]
    styles = looks(name for name in named if name not in theirs)
    add_dots(chart, rows, styles | dict(zip(theirs, PAPERS, strict=False)), lying=True, size=8)
    chart.figure.add_vline(x=1, **PLAIN)
    values = rows[["x", "low", "high"]].astype(float)
    low, high = min(1.0, float(values.min().min())), max(1.0, float(values.max().max()))
    room = (high - low) or 1.0
    chart.figure.update_xaxes(range=[low - 0.08 * room, high + 0.28 * room], showline=True)
    chart.name_places("y", sets, longest=20)
    for edge in range(1, len(sets)):
        chart.figure.add_hline(y=edge - 0.5, line=THIN, layer="below")
    return chart.titled("SWI of each set of drafters, by price list; the paper's marks are hollow")


def _swi_marks(table: pd.DataFrame) -> pd.DataFrame:
    """Our mark and the paper's of each row; known sets of drafters come first, in their order."""
    order = {name: number for number, name in enumerate(DRAFTERS)}
    table = table.assign(
        rank=[order.get(name, len(order)) for name in table["drafters"]],
        set=table["drafters"] + ", " + table["method"],
        list="prices: " + table["prices"].map(str),
        theirs="paper, " + table["data"].map(str),
    )
    ends = "ours_low ours ours_high"
    ours = marks(table, "ours", 0, series="data", panel="list", ends=ends, text="ours")
    paper = marks(table, "paper", 0, series="theirs", panel="list", text="paper")
    rows = pd.concat([part.dropna(subset=["x"]) for part in (ours, paper)], ignore_index=True)
    every = names_of(rows["series"])
    rows = rows.sort_values("rank", kind="stable")
    return rows.assign(y=lanes(rows["set"], rows["series"], order=every))
