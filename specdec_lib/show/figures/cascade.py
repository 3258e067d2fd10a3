"""Figures of the cascade: acceptance by position, K00, lenience and the K matrix."""

from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.forms.cells import add_cells, frame_cell
from specdec_lib.show.figures.forms.chart import PLAIN, open_chart
from specdec_lib.show.figures.forms.dots import add_dots
from specdec_lib.show.figures.forms.lines import add_lines
from specdec_lib.show.figures.marks import check, check_grid, marks, names_of
from specdec_lib.show.figures.theme import PAPERS, looks


def position(table: pd.DataFrame) -> go.Figure:
    """How likely a draft is accepted up to and including a position: a line with a band per
    drafter, a panel per domain.

    table    a row per point: `domain`, `drafter`, `position` from 1, `at_risk` (drafts that long),
             `rate`, `low`, `high`; a NaN rate draws nothing
    """
    check(table, ("at_risk", "rate"), once=("domain", "drafter", "position"))
    rows = marks(
        table.assign(note=[f"{count:,.0f} drafts at risk" for count in table["at_risk"]]),
        x="position",
        y="rate",
        series="drafter",
        panel="domain",
        ends=("low", "high"),
    )
    domains, last = names_of(rows["panel"]), int(rows["x"].max())
    columns = 2 if len(domains) == 4 else min(3, len(domains))
    size = (min(900, 110 + 300 * columns), 40 + 310 * -(-len(domains) // columns))
    chart = open_chart(
        domains,
        size=size,
        x="position in the draft",
        y="accepted up to here (probability)",
        columns=columns,
    )
    add_lines(chart, rows, looks(table["drafter"]))
    ticks = [1, *range(5, last + 1, 5)] if last > 12 else list(range(1, last + 1))
    chart.update_axes("x", {"tickvals": ticks, "range": [0.5, last + 0.5], "showline": True})
    chart.update_axes("y", {"range": [0, 1.02]})
    return chart.titled("How much of a long draft is accepted, by drafter")


def sensitivity(table: pd.DataFrame) -> go.Figure:
    """What K00 changes: SWI ÷ that at K00 = 1, a line with a band per domain; the paper's tokens
    per second, ÷ theirs at 1, as diamonds.

    table    a row per point: `domain`, `k00`, `ours`, `ours_low`, `ours_high` (SWI),
             `ours_relative`, `paper` (tokens per second), `paper_relative`; NaN where there is none
    """
    columns = ("ours", "ours_low", "ours_high", "ours_relative", "paper", "paper_relative")
    check(table, ("domain", "k00", *columns), once=("domain", "k00"))
    scale = table["ours_relative"] / table["ours"]
    rows = marks(
        table.assign(note=table["ours"].map("SWI {:.3f}".format)),
        x="k00",
        y="ours_relative",
        series="domain",
        ends=("ours_low", "ours_high"),
        value="ours",
    )
    rows = rows.assign(low=rows["low"] * scale, high=rows["high"] * scale)
    theirs = table.dropna(subset=["paper_relative"]).drop_duplicates(["k00", "paper_relative"])
    chart = open_chart(
        size=(760, 354),
        x="K00, tokens wanted of the first drafter per round",
        y="SWI ÷ that at K00 = 1",
    )
    add_lines(chart, rows, looks(table["domain"]), dots=8)
    if len(theirs):
        said = theirs.assign(
            who="paper (tokens per second)",
            note=theirs["paper"].map("{:.2f} tokens per second".format),
        )
        papers = marks(said, x="k00", y="paper_relative", series="who")
        add_dots(chart, papers, {"paper (tokens per second)": PAPERS[0]}, size=12)
    chart.figure.add_hline(y=1, **PLAIN)
    chart.update_axes("x", {"tickvals": sorted(set(table["k00"])), "showline": True})
    return chart.titled("What K00 changes, relative to K00 = 1")


def lenience(table: pd.DataFrame) -> go.Figure:
    """Lenience against speed and against length: SWI with a band on the left, tokens per round on
    the right, a line per domain.

    table    a row per point: `domain`, `lenience`, `swi`, `swi_low`, `swi_high`, `tokens_per_round`
    """
    check(table, ("tokens_per_round",), once=("domain", "lenience"))
    speed, length = "SWI (plain decoding is 1)", "tokens per round"
    left = marks(
        table.assign(what=speed),
        x="lenience",
        y="swi",
        series="domain",
        panel="what",
        ends=("swi_low", "swi_high"),
    )
    right = marks(
        table.assign(what=length), x="lenience", y="tokens_per_round", series="domain", panel="what"
    )
    chart = open_chart(
        (speed, length), size=(860, 346), x="lenience (1: none)", y="", shared_y=False, gap=0.09
    )
    for rows in (left, right):
        add_lines(chart, rows, looks(table["domain"]), dots=8)
    ticks = sorted(set(table["lenience"]))
    words = [f"{tick:g}" for tick in ticks]
    look = {"type": "log", "tickvals": ticks, "ticktext": words, "showline": True}
    chart.update_axes("x", look)
    return chart.titled("Lenience at the inner reviews, against speed and against tokens per round")


def surface(table: pd.DataFrame, *, best: Sequence[int], across: str, down: str) -> go.Figure:
    """SWI over two entries of the K matrix, a cell per pair; a frame and the headline mark the
    optimum.

    table           a row per cell of the full grid: `k1`, `k2`, `swi` (NaN: an empty cell)
    best            the optimum's k1 and k2
    across, down    what k1 and k2 count, for the axes
    """
    check(table, ("k1", "k2", "swi"), once=("k1", "k2"))
    check_grid(table, ("k1", "k2"))
    at = table[(table["k1"] == best[0]) & (table["k2"] == best[1])].dropna(subset=["swi"])
    if at.empty:
        raise ValueError(
            f"the optimum must be a cell of the surface with a value, got k1 = {best[0]}, k2 ="
            f" {best[1]}"
        )
    grid = table.pivot(index="k2", columns="k1", values="swi").astype(float)
    size = (190 + 42 * max(8, grid.shape[1]), 106 + 30 * max(5, grid.shape[0]))
    chart = open_chart(size=(min(900, size[0]), size[1]), x=across, y=down)
    add_cells(chart, grid, name="SWI")
    frame_cell(chart, list(grid.columns).index(best[0]), list(grid.index).index(best[1]))
    value = float(at["swi"].iloc[0])
    return chart.titled(f"SWI over K: {value:.3f} in the frame, at ({best[0]}, {best[1]})")
