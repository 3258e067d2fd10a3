"""Figures that compare sets of drafters: EWIF as the paper computes it, and SWI by price list."""

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.forms.chart import PLAIN, open_chart
from specdec_lib.show.figures.forms.dots import add_dots
from specdec_lib.show.figures.labels import wrap
from specdec_lib.show.figures.marks import check, check_interval, lanes, marks, names_of, shorts
from specdec_lib.show.figures.theme import PAPERS, SOURCES, Look, escape, looks

EWIF_LOOKS = {
    "printed": PAPERS[0],
    "recomputed for the same k": Look(SOURCES["draft"]),
    "at the best k, where another is better": Look(SOURCES["target"], symbol="star"),
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


def ewif(table: pd.DataFrame) -> go.Figure:
    """EWIF per set of drafters: the paper's printed value, ours for the same k, and the best k
    where that is better; a panel per data set.

    table    a row per set: `data`, `drafters`, `lengths` (the printed k, as text), `paper`, `ours`,
             `best`, `best_lengths`
    """
    columns = ("data", "drafters", "lengths", "paper", "ours", "best", "best_lengths")
    check(table, columns, once=("data", "drafters"))
    rows = _ewif_marks(table)
    panels, sets = names_of(rows["panel"]), names_of(table["drafters"])
    size = (110 + 390 * len(panels), 346)
    chart = open_chart(
        panels, size=size, x="drafters, with the printed k", y="EWIF (plain decoding is 1)"
    )
    add_dots(chart, rows, EWIF_LOOKS, size=10)
    chart.name_places("x", sets, longest=14)
    star = {"mode": "markers+text", "name": list(EWIF_LOOKS)[-1]}
    chart.figure.update_traces(textposition="bottom center", selector=star)
    for data in panels:
        lengths = table[table["data"].map(str) == data].set_index("drafters")["lengths"]
        ticks = [f"{wrap(name, 14)}<br>k = {escape(lengths.get(name, '–'))}" for name in sets]
        chart.figure.update_xaxes(ticktext=ticks, **chart.panels[data])
    low, high = float(rows["y"].min()), float(rows["y"].max())
    room = 0.14 * ((high - low) or 1.0)
    chart.update_axes("y", {"range": [low - room, high + 2 * room]})
    return chart.titled("EWIF of the paper's Table 1: printed, recomputed, and at the best k")


def _ewif_marks(table: pd.DataFrame) -> pd.DataFrame:
    """Three marks per set of drafters; the third only where another k is better."""
    better = table["best"] > table["ours"] + 1e-9
    best = [
        f"{value:.3f}<br>k = {escape(k)}"
        for value, k in zip(table["best"], table["best_lengths"], strict=True)
    ]
    places, parts = pd.Series(lanes(table["drafters"]), table.index), []
    for number, (name, column, texts) in enumerate(
        zip(
            EWIF_LOOKS,
            ("paper", "ours", "best"),
            (table["paper"].map("{:.2f}".format), table["ours"].map("{:.3f}".format), best),
            strict=True,
        )
    ):
        own = table.assign(who=name, place=places + 0.29 * (number - 1), value=table[column])
        parts.append(own.assign(text=texts)[better if column == "best" else own["value"].notna()])
    rows = pd.concat(parts, ignore_index=True)
    return marks(rows, x="place", y="value", series="who", panel="data")


def swi(table: pd.DataFrame) -> go.Figure:
    """SWI of each set of drafters: a panel per price list, a row per set, in it a lane per domain
    (ours) and per data set of the paper.

    table    a row per dot: `data` (domain, or the paper's data set), `prices`, `method`,
             `drafters`, and `ours`, `ours_low`, `ours_high` or `paper`, NaN where there is none;
             rows whose method is "autoregressive" are the line at 1
    """
    keys = ("data", "prices", "method", "drafters")
    columns = (*keys, "paper", "ours", "ours_low", "ours_high")
    check(table, columns)
    table = table[table["method"] != "autoregressive"]
    check(table, columns, once=keys)
    check_interval(table, "ours", ("ours_low", "ours_high"))
    rows = _swi_marks(table)
    sets, lists = names_of(rows["set"]), names_of(table["prices"])
    count = rows["series"].nunique()
    size = (min(900, 200 + 250 * len(lists)), 80 + LANE * (count + 1.6) * len(sets))
    chart = open_chart(
        [f"prices: {name}" for name in lists],
        size=size,
        x="SWI (plain decoding is 1, dotted)",
        y="drafters, and how they are used",
    )
    theirs = [name for name in names_of(rows["series"]) if name.startswith("paper, ")]
    styles = looks(name for name in names_of(rows["series"]) if name not in theirs)
    add_dots(chart, rows, styles | dict(zip(theirs, PAPERS, strict=False)), lying=True, size=8)
    chart.figure.add_vline(x=1, **PLAIN)
    values = rows[["x", "low", "high"]].astype(float)
    low, high = min(1.0, float(values.min().min())), max(1.0, float(values.max().max()))
    room = (high - low) or 1.0
    chart.update_axes("x", {"range": [low - 0.08 * room, high + 0.28 * room], "showline": True})
    chart.name_places("y", sets, longest=20)
    for edge in range(1, len(sets)):
        thin = {"width": 1, "color": "rgba(128,128,128,0.35)"}
        chart.figure.add_hline(y=edge - 0.5, line=thin, layer="below")
    return chart.titled("SWI of each set of drafters, by price list; the paper's marks are hollow")


def _swi_marks(table: pd.DataFrame) -> pd.DataFrame:
    """Our mark and the paper's of each row; known sets of drafters come first, in their order."""
    order = {name: number for number, name in enumerate(DRAFTERS)}
    ranks = table["drafters"].map(lambda name: order.get(name, len(order)))
    parts = [
        table.assign(who=table["data"].map(str), value=table["ours"], rank=ranks),
        table.assign(
            who="paper, " + table["data"].map(str),
            value=table["paper"],
            rank=ranks,
            ours_low=float("nan"),
            ours_high=float("nan"),
        ),
    ]
    rows = pd.concat([part.dropna(subset=["value"]) for part in parts], ignore_index=True)
    lane_order = names_of(rows["who"])
    rows = rows.sort_values("rank", kind="stable")
    rows = rows.assign(
        set=rows["drafters"] + ", " + rows["method"], list="prices: " + rows["prices"].map(str)
    )
    rows = rows.assign(place=lanes(rows["set"], rows["who"], order=lane_order))
    rows = rows.assign(text=shorts(rows["value"]))
    return marks(
        rows,
        x="value",
        y="place",
        series="who",
        panel="list",
        ends=("ours_low", "ours_high"),
        value="value",
    )
