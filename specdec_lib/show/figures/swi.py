"""SWI under several price lists: every set of drafters, every domain, and the paper beside them."""

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.lanes import PAPERS, domain_looks, headed, hollow, key, lying
from specdec_lib.show.figures.marks import check, check_once, groups, panels, place, wrapped
from specdec_lib.show.figures.theme import INK, escaped

DRAFTERS = (
    "middle",
    "draft",
    "Max-Gram",
    "middle + Max-Gram",
    "draft + Max-Gram",
    "middle + draft + Max-Gram",
)
COLUMNS = ("data", "prices", "method", "drafters", "paper", "ours", "ours_low", "ours_high")
LANE = 15.0  # pixels from one domain's dot to the next
ZERO = {"dash": "dot", "width": 1.5, "color": INK}


def swi(table: pd.DataFrame) -> go.Figure:
    """SWI of each set of drafters: a panel per price list, a row per set, in it a lane per domain
    (ours) and per data set of the paper.

    table    a row per dot: `data` (domain, or the paper's data set), `prices`, `method`,
             `drafters`, and `ours`, `ours_low`, `ours_high` or `paper`, NaN where there is none;
             rows whose method is "autoregressive" are the line at 1

    Raises ValueError if the table lacks a column or a row, has two rows for one dot, or an interval
    does not hold its value.
    """
    check(table, COLUMNS)
    table = table[table["method"] != "autoregressive"]
    check(table, COLUMNS)
    check_once(table, ("data", "prices", "method", "drafters"))
    sets = _sets(table)
    lanes = [name for name, rows in groups(table, "data") if rows["ours"].notna().any()]
    theirs = [name for name, rows in groups(table, "data") if rows["paper"].notna().any()]
    lanes += [name for name in theirs if name not in lanes]
    lists = list(groups(table, "prices"))
    row = LANE * (len(lanes) + 1.6)
    figure = panels(
        [f"prices: {name}" for name, _ in lists],
        width=min(900, 200 + 250 * len(lists)),
        height=round(150 + row * len(sets)),
    )
    shown: set[str] = set()
    for number, (_, rows) in enumerate(lists):
        for lane, name in enumerate(lanes):
            own = rows[rows["data"].map(str) == name]
            aside = (lane - (len(lanes) - 1) / 2) * LANE / row
            for trace in _lane(own, name, sets, aside, theirs):
                key(figure, shown, trace, place(number, len(lists)))
    texts = [f"{wrapped(drafters, 18)}<br><i>{escaped(method)}</i>" for method, drafters in sets]
    figure.add_vline(x=1, line=ZERO, layer="below")
    figure.update_xaxes(title="SWI (plain decoding is 1)", range=_span(table), showline=True)
    figure.update_yaxes(
        tickvals=list(range(len(sets))),
        ticktext=texts,
        range=[len(sets) - 0.5, -0.5],
        showgrid=False,
        showline=True,
    )
    figure.update_yaxes(title="drafters, and how they are used", col=1)
    for edge in range(1, len(sets)):
        figure.add_hline(
            y=edge - 0.5, line={"width": 1, "color": "rgba(128,128,128,0.35)"}, layer="below"
        )
    figure.update_layout(showlegend=True)
    return headed(
        figure, "SWI of each set of drafters, by price list: ours, and the paper's as hollow marks"
    )


def _sets(table: pd.DataFrame) -> list[tuple[str, str]]:
    """Method and drafters of each row, the known sets first in their own order."""
    found = list(
        dict.fromkeys(zip(table["method"].map(str), table["drafters"].map(str), strict=True))
    )
    return sorted(
        found, key=lambda pair: DRAFTERS.index(pair[1]) if pair[1] in DRAFTERS else len(DRAFTERS)
    )


def _lane(
    rows: pd.DataFrame, name: str, sets: list[tuple[str, str]], aside: float, theirs: list[str]
) -> list[go.Scatter]:
    """One domain's dots in one panel, and the paper's where it has some."""
    look, traces = domain_looks([name])[name], []
    for value, marker, called in (
        ("ours", look.marker(8), name),
        ("paper", hollow(theirs.index(name) if name in theirs else 0), f"{PAPERS}, {name}"),
    ):
        own = rows.dropna(subset=[value])
        heights = [
            sets.index((str(method), str(drafters))) + aside
            for method, drafters in zip(own["method"], own["drafters"], strict=True)
        ]
        traces += lying(own, value, heights, marker, look, name=called) if len(own) else []
    return traces


def _span(table: pd.DataFrame) -> list[float]:
    """The ends of the axes: 1 and every interval, with room for the words right of the dots."""
    values = table[["ours", "ours_low", "ours_high", "paper"]].astype(float)
    low, high = min(1.0, float(values.min().min())), max(1.0, float(values.max().max()))
    return [low - 0.08 * ((high - low) or 1.0), high + 0.28 * ((high - low) or 1.0)]
