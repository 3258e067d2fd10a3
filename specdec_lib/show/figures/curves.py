"""Lines over what was varied: tokens per round over the budget, acceptance rates over depth, rank
or tokens.
"""

import math

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.marks import Look, check, faint, groups, interval, looks
from specdec_lib.show.figures.theme import INK, SCREEN, escaped

MOST_TICKS = 12


def budget_curves(table: pd.DataFrame) -> go.Figure:
    """Tokens per round against the budget, on a scale where each doubling is one step; a line per
    shape of tree.

    table    a row per point: `budget` (nodes without the root), `tokens_per_round`, `shape` (its
             name), and optional `low` and `high` (a band), `measured` (True: a dot with its
             interval; False: a prediction, on the line); without `measured` lines have dots

    Raises ValueError if the table lacks a column or a row, a budget is below 1, or an interval does
    not hold its value.
    """
    check(table, ("budget", "tokens_per_round", "shape"))
    if table["budget"].min() < 1:
        raise ValueError(f"a budget is at least 1 node, got {table['budget'].min()}")
    figure = go.Figure()
    styles = looks(table["shape"])
    told = "measured" in table
    for name, rows in groups(table, "shape", along="budget"):
        seen = rows["measured"].astype(bool) if told else pd.Series(False, index=rows.index)
        look = styles[name]
        _band(figure, rows[~seen], name, look)
        _curve(figure, rows[~seen], name, look, mode="lines" if told else "lines+markers")
        _curve(figure, rows[seen], name, look, mode="markers")
    for name in styles:
        _key(figure, name, styles[name], "lines+markers", name)
    if told and table["measured"].nunique() > 1:
        plain = Look(INK, "solid", "circle-open")
        _key(figure, "predicted", plain, "lines")
        _key(figure, "measured", plain, "markers")
    budgets = sorted(set(table["budget"]))
    ticks = (
        budgets
        if len(budgets) <= MOST_TICKS
        else [2**power for power in range(64) if budgets[0] <= 2**power <= budgets[-1]]
    )
    figure.update_layout(
        template=SCREEN, width=760, height=460, margin={"t": 56}, legend={"traceorder": "normal"}
    )
    figure.update_xaxes(
        title="budget, in nodes without the root",
        type="log",
        tickvals=ticks,
        ticktext=[f"{tick:g}" for tick in ticks],
    )
    figure.update_xaxes(range=[math.log10(budgets[0]) - 0.04, math.log10(budgets[-1]) + 0.04])
    figure.update_yaxes(title="tokens per round")
    return figure


def acceptance(table: pd.DataFrame, *, x: str, x_title: str, log_x: bool = False) -> go.Figure:
    """Acceptance rates as dots with intervals, joined by a line per series; a NaN rate draws
    nothing.

    table    a row per dot: the column that `x` names, `rate`, `low` and `high` (ends of the
             interval), `at_risk` (tokens tried), `series`
    log_x    whether equal factors of `x` are equally far apart

    Raises ValueError if the table lacks a column or a row, an interval does not hold its rate, or
    `x` is not above 0 and `log_x` is set.
    """
    check(table, (x, "rate", "low", "high", "at_risk", "series"))
    if log_x and not table[x].min() > 0:
        raise ValueError(f"a logarithmic axis shows {x} above 0, got {table[x].min()}")
    figure = go.Figure()
    styles = looks(table["series"])
    for name, rows in groups(table, "series", along=x):
        look = styles[name]
        figure.add_scatter(
            x=rows[x],
            y=rows["rate"],
            mode="lines+markers",
            name=escaped(name),
            line=look.line,
            marker=look.marker(),
            error_y=interval(rows, "rate", look),
            customdata=rows[["low", "high", "at_risk"]].to_numpy(),
            hovertemplate="%{x}: %{y:.3f} (%{customdata[0]:.3f} to %{customdata[1]:.3f})<br>"
            "%{customdata[2]:,} tokens at risk<extra>%{fullData.name}</extra>",
        )
    figure.update_layout(template=SCREEN, width=760, height=440, margin={"t": 56}, showlegend=True)
    figure.update_xaxes(title=escaped(x_title), type="log" if log_x else "linear", showline=True)
    values = sorted(set(table[x]))
    if (
        not log_x
        and len(values) <= 2 * MOST_TICKS
        and all(float(value).is_integer() for value in values)
    ):
        figure.update_xaxes(tickvals=values)
    figure.update_yaxes(title="acceptance rate", range=[0, 1.02])
    return figure


def _curve(figure: go.Figure, rows: pd.DataFrame, name: str, look: Look, *, mode: str) -> None:
    if rows.empty:
        return
    bars = mode == "markers" and {"low", "high"} <= set(rows.columns)
    figure.add_scatter(
        x=rows["budget"],
        y=rows["tokens_per_round"],
        mode=mode,
        line=look.line,
        marker=look.marker(10 if mode == "markers" else 7),
        error_y=interval(rows, "tokens_per_round", look) if bars else None,
        name=escaped(name),
        legendgroup=name,
        showlegend=False,
        hovertemplate="budget %{x}: %{y:.2f} tokens per round<extra>%{fullData.name}</extra>",
    )


def _band(figure: go.Figure, rows: pd.DataFrame, name: str, look: Look) -> None:
    if not {"low", "high"} <= set(rows.columns):
        return
    interval(rows, "tokens_per_round", look)
    rows = rows.dropna(subset=["low", "high"])
    if len(rows):
        xs, lows, highs = (rows[column].tolist() for column in ("budget", "low", "high"))
        edge = {"x": [*xs, *xs[::-1]], "y": [*lows, *highs[::-1]], "line": {"width": 0}}
        fill = {"fill": "toself", "fillcolor": faint(look.colour)}
        figure.add_scatter(
            **edge, **fill, mode="lines", legendgroup=name, showlegend=False, hoverinfo="skip"
        )


def _key(figure: go.Figure, name: str, look: Look, mode: str, group: str | None = None) -> None:
    """An entry of the legend that draws nothing."""
    figure.add_scatter(
        x=[None],
        y=[None],
        mode=mode,
        line=look.line,
        marker=look.marker(),
        name=escaped(name),
        legendgroup=group,
    )
