"""The match table as a picture, and acceptance rates of several kinds side by side."""

from itertools import pairwise

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.core.tree import MatchTable
from specdec_lib.show.figures.marks import check, interval, looks, short, tops
from specdec_lib.show.figures.theme import DARK, SCREEN, escaped

PALE_TO_DARK = [[0, "#FFFFFF"], [1, "#0072B2"]]
WHITE_TEXT = 0.7  # from this rate on the numbers are white


def gap_table(match: MatchTable) -> pd.DataFrame:
    """A match table as rows: gap (the bin's name), rank, rate.

    Raises ValueError if it does not look at gaps.
    """
    if not match.edges:
        raise ValueError(f"match table {match.name!r} does not look at gaps")
    names = [f"{low:g}–{high:g}" for low, high in pairwise((0.0, *match.edges))] + [
        f"{match.edges[-1]:g} and more"
    ]
    rows = [
        (name, rank, rate)
        for name, rates in zip(names, match.binned, strict=True)
        for rank, rate in enumerate(rates)
    ]
    return pd.DataFrame(rows, columns=["gap", "rank", "rate"])


def gaps(table: pd.DataFrame) -> go.Figure:
    """P(match | rank, gap) as a grid with the numbers in it: ranks from the top down, gaps from the
    left.

    table    a row per cell: `gap` (the bin's name, in order), `rank` from 0, `rate`; a missing cell
             stays empty

    Raises ValueError if the table lacks a column or a row, or a cell is there twice.
    """
    check(table, ("gap", "rank", "rate"))
    if table.duplicated(["gap", "rank"]).any():
        raise ValueError("this figure needs at most one row per gap and rank, got several")
    names = list(dict.fromkeys(table["gap"]))
    grid = table.pivot(index="rank", columns="gap", values="rate")[names]
    figure = go.Figure(
        go.Heatmap(
            x=[escaped(name) for name in names],
            y=[f"rank {rank}" for rank in grid.index],
            z=grid.to_numpy(),
            zmin=0,
            zmax=1,
            colorscale=PALE_TO_DARK,
            xgap=2,
            ygap=2,
            colorbar={"title": {"text": "rate", "side": "top"}, "thickness": 14},
            hovertemplate="%{y}, gap %{x} nats: %{z:.3f}<extra></extra>",
        )
    )
    for row in table.dropna(subset=["rate"]).itertuples():
        colour = "#FFFFFF" if row.rate >= WHITE_TEXT else DARK
        text = f"{row.rate:.2f}" if row.rate >= 0.005 else "0"
        figure.add_annotation(
            x=escaped(row.gap),
            y=f"rank {row.rank}",
            text=text,
            showarrow=False,
            font={"color": colour, "size": 12},
        )
    figure.update_layout(template=SCREEN, width=760, height=110 + 38 * len(grid), margin={"t": 24})
    figure.update_xaxes(
        title="gap to the best guess in nats; for rank 0, its lead over the second",
        type="category",
        showgrid=False,
    )
    figure.update_yaxes(autorange="reversed", showgrid=False)
    return figure


def kinds(table: pd.DataFrame, *, x_title: str) -> go.Figure:
    """Acceptance rates as dots with intervals and their values, a place on the axis per kind and a
    dot per series.

    table    a row per dot: `kind`, `rate`, `low`, `high`, `at_risk` (tokens tried), `series`; a NaN
             rate draws nothing

    Raises ValueError if the table lacks a column or a row, or an interval does not hold its rate.
    """
    check(table, ("kind", "rate", "low", "high", "at_risk", "series"))
    names = list(dict.fromkeys(map(str, table["kind"])))
    figure, styles = go.Figure(), looks(table["series"])
    for number, (name, look) in enumerate(styles.items()):
        rows = table[table["series"].map(str) == name].dropna(subset=["rate"])
        places = [
            names.index(str(kind)) + (number - (len(styles) - 1) / 2) * 0.6 / len(styles)
            for kind in rows["kind"]
        ]
        figure.add_scatter(
            x=places,
            y=rows["rate"],
            mode="markers",
            marker=look.marker(11),
            error_y=interval(rows, "rate", look),
            name=escaped(name),
            customdata=rows[["low", "high", "at_risk"]].to_numpy(),
            hovertemplate="%{y:.3f} (%{customdata[0]:.3f} to %{customdata[1]:.3f})<br>"
            "%{customdata[2]:,} tokens at risk<extra>%{fullData.name}</extra>",
        )
        for place, rate, top in zip(places, rows["rate"], tops(rows, "rate"), strict=True):
            figure.add_annotation(
                x=place,
                y=top,
                text=short(rate),
                showarrow=False,
                yanchor="bottom",
                yshift=4,
                font={"size": 12},
            )
    figure.update_layout(template=SCREEN, width=760, height=440, margin={"t": 56}, showlegend=True)
    ticks = {"tickvals": list(range(len(names))), "ticktext": [escaped(name) for name in names]}
    figure.update_xaxes(
        title=escaped(x_title),
        range=[-0.6, len(names) - 0.4],
        showgrid=False,
        showline=True,
        **ticks,
    )
    figure.update_yaxes(title="acceptance rate", range=[0, 1.08])
    return figure
