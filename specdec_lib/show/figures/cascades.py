"""What the knobs of a cascade do: EWIF at the printed k and at the best, acceptance by position,
K00, lenience.
"""

from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.lanes import (
    EMPTY,
    PAPERS,
    band,
    domain_looks,
    drafter_looks,
    headed,
    hollow,
    key,
)
from specdec_lib.show.figures.marks import (
    Look,
    check,
    check_once,
    groups,
    interval,
    looks,
    panels,
    place,
    wrapped,
)
from specdec_lib.show.figures.theme import INK, escaped

ASIDE = 0.29  # of the room of a set of drafters: from one of its three marks to the next
MARKS = {
    "paper": ("printed", hollow()),
    "ours": ("recomputed for the same k", looks(["draft"])["draft"].marker(9)),
    "best": (
        "at the best k, where another is better",
        looks(["target"])["target"].marker(14) | {"symbol": "star"},
    ),
}


def ewif(table: pd.DataFrame) -> go.Figure:
    """EWIF per set of drafters: the paper's printed value, ours for the same k, and the best k
    where that is better; a panel per data set.

    table    a row per set: `data`, `drafters`, `lengths` (the printed k, as text), `paper`, `ours`,
             `best`, `best_lengths`

    Raises ValueError if the table lacks a column or a row, or has two rows for one set.
    """
    check(table, ("data", "drafters", "lengths", "paper", "ours", "best", "best_lengths"))
    check_once(table, ("data", "drafters"))
    table = table.assign(best=table["best"].where(table["best"] > table["ours"] + 1e-9))
    data = list(groups(table, "data"))
    figure = panels([name for name, _ in data], width=min(900, 110 + 390 * len(data)), height=420)
    shown: set[str] = set()
    for number, (_, rows) in enumerate(data):
        where = place(number, len(data))
        for lane, who in enumerate(MARKS):
            if rows[who].notna().any():
                key(figure, shown, _values(rows, lane, who), where)
        ticks = [
            f"{wrapped(str(row.drafters), 14)}<br>k = {escaped(str(row.lengths))}"
            for row in rows.itertuples()
        ]
        frame = {
            "tickvals": list(range(len(rows))),
            "ticktext": ticks,
            "tickangle": 0,
            "range": [-0.55, len(rows) - 0.45],
        }
        figure.update_xaxes(
            **frame, showgrid=False, showline=True, title="drafters, with the printed k", **where
        )
    values = table[["paper", "ours", "best"]].astype(float)
    low, high = float(values.min().min()), float(values.max().max())
    room = 0.14 * ((high - low) or 1.0)
    figure.update_yaxes(range=[low - room, high + 2 * room])
    figure.update_yaxes(title="EWIF (plain decoding is 1)", col=1)
    figure.update_layout(showlegend=True)
    return headed(figure, "EWIF of the paper's Table 1: printed, recomputed, and at the best k")


def _values(rows: pd.DataFrame, lane: int, who: str) -> go.Scatter:
    """One of the three marks for every set of drafters, with its value over it."""
    rows = rows.assign(x=[at + ASIDE * (lane - 1) for at in range(len(rows))]).dropna(subset=[who])
    texts = [f"{value:.2f}" if who == "paper" else f"{value:.3f}" for value in rows[who]]
    if who == "best":
        texts = [
            f"{text}<br>k = {escaped(str(k))}"
            for text, k in zip(texts, rows["best_lengths"], strict=True)
        ]
    name, marker = MARKS[who]
    return go.Scatter(
        x=rows["x"],
        y=rows[who],
        mode="markers+text",
        marker=marker,
        name=name,
        legendgroup=name,
        text=texts,
        textposition="bottom center" if who == "best" else "top center",
        textfont={"size": 12},
        cliponaxis=False,
        hovertemplate="%{y:.3f}<extra>%{fullData.name}</extra>",
    )


def position(table: pd.DataFrame) -> go.Figure:
    """How likely a draft is accepted up to and including a position: a line with a band per
    drafter, a panel per domain.

    table    a row per point: `domain`, `drafter`, `position` from 1, `at_risk` (drafts that long),
             `rate`, `low`, `high`; a NaN rate draws nothing

    Raises ValueError if the table lacks a column or a row, has two rows for one point, or an
    interval does not hold its rate.
    """
    check(table, ("domain", "drafter", "position", "at_risk", "rate", "low", "high"))
    check_once(table, ("domain", "drafter", "position"))
    domains = list(groups(table, "domain"))
    styles = drafter_looks(table["drafter"])
    columns = 2 if len(domains) == 4 else min(3, len(domains))
    size = {
        "width": min(900, 110 + 300 * columns),
        "height": 110 + 310 * -(-len(domains) // columns),
    }
    figure = panels([name for name, _ in domains], **size, columns=columns)
    shown: set[str] = set()
    for number, (_, rows) in enumerate(domains):
        drawn = list(groups(rows.dropna(subset=["rate"]), "drafter", along="position"))
        for name, own in drawn:
            interval(own, "rate", styles[name])
            figure.add_trace(
                band(own, "position", styles[name], group=name), **place(number, columns)
            )
        for name, own in drawn:
            line = go.Scatter(
                x=own["position"],
                y=own["rate"],
                mode="lines",
                line=styles[name].line,
                name=escaped(name),
                legendgroup=name,
                customdata=own[["low", "high", "at_risk"]].to_numpy(),
                hovertemplate="position %{x}: %{y:.3f} (%{customdata[0]:.3f} to %{customdata[1]:.3f})<br>"
                "%{customdata[2]:,} drafts at risk<extra>%{fullData.name}</extra>",
            )
            key(figure, shown, line, place(number, columns))
    last = int(table["position"].max())
    ticks = [1, *range(5, last + 1, 5)] if last > 12 else list(range(1, last + 1))
    figure.update_xaxes(
        title="position in the draft", tickvals=ticks, range=[0.5, last + 0.5], showline=True
    )
    figure.update_yaxes(range=[0, 1.02])
    figure.update_yaxes(title="accepted up to here (probability)", col=1)
    figure.update_layout(showlegend=True)
    return headed(figure, "How much of a long draft is accepted, by drafter")


def sensitivity(table: pd.DataFrame) -> go.Figure:
    """What K00 changes: SWI ÷ that at K00 = 1, a line with a band per domain; the paper's tokens
    per second, ÷ theirs at 1, as diamonds.

    table    a row per point: `domain`, `k00`, `ours`, `ours_low`, `ours_high` (SWI),
             `ours_relative`, `paper` (tokens per second), `paper_relative`; NaN where there is none

    Raises ValueError if the table lacks a column or a row, has two rows for one point, or an
    interval does not hold its value.
    """
    check(
        table,
        (
            "domain",
            "k00",
            "ours",
            "ours_low",
            "ours_high",
            "ours_relative",
            "paper",
            "paper_relative",
        ),
    )
    check_once(table, ("domain", "k00"))
    scale = table["ours_relative"] / table["ours"]
    table = table.assign(
        relative_low=table["ours_low"] * scale, relative_high=table["ours_high"] * scale
    )
    styles = domain_looks(table["domain"])
    figure = go.Figure().update_layout(EMPTY, width=760, height=410)
    drawn = list(groups(table.dropna(subset=["ours_relative"]), "domain", along="k00"))
    for name, own in drawn:
        interval(own, "ours", styles[name], low="ours_low", high="ours_high")
        figure.add_trace(
            band(own, "k00", styles[name], low="relative_low", high="relative_high", group=name)
        )
    for name, own in drawn:
        figure.add_trace(
            _line(
                own,
                "k00",
                "ours_relative",
                styles[name],
                name,
                ("ours", "ours_low", "ours_high"),
                "SWI",
            )
        )
    theirs = table.dropna(subset=["paper_relative"]).drop_duplicates(["k00", "paper_relative"])
    if len(theirs):
        hover = "K00 = %{x}: %{y:.3f}<br>%{customdata:.2f} tokens per second<extra>%{fullData.name}</extra>"
        marks = {"x": theirs["k00"], "y": theirs["paper_relative"], "customdata": theirs["paper"]}
        figure.add_scatter(
            **marks,
            mode="markers",
            marker=hollow(size=12),
            name=f"{PAPERS} (tokens per second)",
            hovertemplate=hover,
        )
    figure.add_hline(y=1, line={"dash": "dot", "width": 1.5, "color": INK}, layer="below")
    figure.update_xaxes(
        title="K00, tokens asked of the first drafter per round",
        tickvals=sorted(set(table["k00"])),
        showline=True,
    )
    figure.update_yaxes(title="SWI ÷ that at K00 = 1")
    return headed(figure, "What K00 changes, relative to K00 = 1")


def lenience(table: pd.DataFrame) -> go.Figure:
    """Lenience against speed and against length: SWI with a band on the left, tokens per round on
    the right, a line per domain.

    table    a row per point: `domain`, `lenience`, `swi`, `swi_low`, `swi_high`, `tokens_per_round`

    Raises ValueError if the table lacks a column or a row, has two rows for one point, or an
    interval does not hold its value.
    """
    check(table, ("domain", "lenience", "swi", "swi_low", "swi_high", "tokens_per_round"))
    check_once(table, ("domain", "lenience"))
    styles = domain_looks(table["domain"])
    figure = panels(["SWI", "tokens per round"], width=860, height=420, shared_y=False, gap=0.12)
    shown: set[str] = set()
    drawn = list(groups(table, "domain", along="lenience"))
    for name, own in drawn:
        interval(own, "swi", styles[name], low="swi_low", high="swi_high")
        figure.add_trace(
            band(own, "lenience", styles[name], low="swi_low", high="swi_high", group=name),
            **place(0, 2),
        )
    for name, own in drawn:
        look = styles[name]
        key(
            figure,
            shown,
            _line(own, "lenience", "swi", look, name, ("swi", "swi_low", "swi_high"), "SWI"),
            place(0, 2),
        )
        key(figure, shown, _line(own, "lenience", "tokens_per_round", look, name), place(1, 2))
    ticks = sorted(set(table["lenience"]))
    figure.update_xaxes(
        title="lenience (1: none)",
        type="log",
        tickvals=ticks,
        ticktext=[f"{tick:g}" for tick in ticks],
        showline=True,
    )
    figure.update_yaxes(title="SWI (plain decoding is 1)", col=1)
    figure.update_yaxes(title="tokens per round", col=2)
    figure.update_layout(showlegend=True)
    return headed(
        figure, "Lenience at the inner reviews, against speed and against tokens per round"
    )


def _line(
    rows: pd.DataFrame,
    x: str,
    y: str,
    look: Look,
    name: str,
    told: Sequence[str] = (),
    unit: str = "",
) -> go.Scatter:
    """A line with dots; hovering tells a value and its interval besides."""
    more = (
        f"<br>{unit} %{{customdata[0]:.3f}} (%{{customdata[1]:.3f}} to %{{customdata[2]:.3f}})"
        if told
        else ""
    )
    return go.Scatter(
        x=rows[x],
        y=rows[y],
        mode="lines+markers",
        line=look.line,
        marker=look.marker(8),
        name=escaped(name),
        legendgroup=name,
        customdata=rows[list(told)].to_numpy() if told else None,
        hovertemplate=f"{x} %{{x:g}}: %{{y:.3f}}{more}<extra>%{{fullData.name}}</extra>",
    )
