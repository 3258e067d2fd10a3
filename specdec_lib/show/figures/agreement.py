"""What was expected against what came: confidence and acceptance rate, prediction and measurement."""

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.labels import beside
from specdec_lib.show.figures.marks import check, faint, groups, interval, looks
from specdec_lib.show.figures.theme import INK, SCREEN, escaped

WIDEST = 26  # pixels across the dot of the most tokens
MOST_LABELS = 14
NEAR = 0.05  # a prediction this close, as a share of itself, lies in the band
SIDE = 480.0  # pixels of a square plot, about


def calibration(table: pd.DataFrame) -> go.Figure:
    """Acceptance rate against the drafter's confidence, a dot with an interval per bin; the larger
    its area, the more tokens are in it.

    table    a row per bin: `confidence` (mean of the bin), `rate`, `low`, `high`, `at_risk` (tokens
             tried), `series`

    Raises ValueError if the table lacks a column or a row, or an interval does not hold its rate.
    """
    check(table, ("confidence", "rate", "low", "high", "at_risk", "series"))
    figure = go.Figure(
        go.Scatter(
            x=[0, 1],
            y=[0, 1],
            mode="lines",
            line={"dash": "dot", "color": INK, "width": 1.5},
            hoverinfo="skip",
        )
    )
    figure.data[0].name = "perfectly calibrated"
    area = {
        "sizemode": "area",
        "sizeref": 2 * max(1.0, float(table["at_risk"].max())) / WIDEST**2,
        "sizemin": 3,
    }
    styles = looks(table["series"])
    for name, rows in groups(table, "series", along="confidence"):
        look = styles[name]
        figure.add_scatter(
            x=rows["confidence"],
            y=rows["rate"],
            mode="lines+markers",
            line=look.line | {"width": 1},
            cliponaxis=False,
            marker=look.marker() | area | {"size": rows["at_risk"], "opacity": 0.75},
            error_y=interval(rows, "rate", look),
            name=escaped(name),
            customdata=rows[["low", "high", "at_risk"]].to_numpy(),
            hovertemplate="confidence %{x:.3f}: %{y:.3f} (%{customdata[0]:.3f} to %{customdata[1]:.3f})<br>"
            "%{customdata[2]:,} tokens at risk<extra>%{fullData.name}</extra>",
        )
    figure.update_layout(
        template=SCREEN,
        width=600,
        height=600,
        margin={"t": 56},
        showlegend=True,
        legend={"itemsizing": "constant"},
    )
    figure.update_xaxes(title="confidence of the draft", range=[-0.02, 1.02], constrain="domain")
    figure.update_yaxes(
        title="acceptance rate", range=[-0.02, 1.02], scaleanchor="x", constrain="domain"
    )
    return figure


def predicted(table: pd.DataFrame) -> go.Figure:
    """Measured values against predicted ones; on the line they agree, in the band they do to 5 %.

    Up to 14 dots have their name beside them.

    table    a row per dot: `name`, `predicted`, `measured`, `low` and `high` (interval of the
             measured), optionally `series`

    Raises ValueError if the table lacks a column or a row, or an interval does not hold its
    measured value.
    """
    check(table, ("name", "predicted", "measured", "low", "high"))
    if "series" not in table:
        table = table.assign(series="measured, with interval")
    table = table.assign(place=_places(table))
    low, high = _span(table)
    ends = [low, high, high, low]
    edges = [(1 - NEAR) * low, (1 - NEAR) * high, (1 + NEAR) * high, (1 + NEAR) * low]
    figure = go.Figure()
    figure.add_scatter(
        x=ends,
        y=edges,
        mode="lines",
        line={"width": 0},
        fill="toself",
        fillcolor=faint(INK),
        name="within 5 %",
        hoverinfo="skip",
    )
    line = {"dash": "dot", "color": INK, "width": 1.5}
    figure.add_scatter(
        x=[low, high], y=[low, high], mode="lines", line=line, name="as predicted", hoverinfo="skip"
    )
    styles = looks(table["series"])
    for name, rows in groups(table, "series"):
        names = [escaped(str(text)) for text in rows["name"]]
        figure.add_scatter(
            x=rows["predicted"],
            y=rows["measured"],
            mode="markers+text" if len(table) <= MOST_LABELS else "markers",
            marker=styles[name].marker(),
            error_y=interval(rows, "measured", styles[name]),
            name=escaped(name),
            text=names,
            textposition=list(rows["place"]),
            textfont={"size": 12},
            cliponaxis=False,
            hovertemplate="%{text}<br>predicted %{x:.3f}, measured %{y:.3f}<extra></extra>",
        )
    figure.update_layout(template=SCREEN, width=600, height=600, margin={"t": 56}, showlegend=True)
    figure.update_xaxes(title="predicted", range=[low, high], constrain="domain")
    figure.update_yaxes(title="measured", range=[low, high], scaleanchor="x", constrain="domain")
    return figure


def _span(table: pd.DataFrame) -> tuple[float, float]:
    """The ends of both axes: everything, with a little room."""
    values = table[["predicted", "measured", "low", "high"]].astype(float)
    low, high = float(values.min().min()), float(values.max().max())
    room = 0.08 * (high - low) or 0.1 * abs(high) or 1.0
    return low - room, high + room


def _places(table: pd.DataFrame) -> list[str]:
    """Where each name stands, clear of the dots, of their intervals and of the line."""
    if len(table) > MOST_LABELS:
        return ["middle right"] * len(table)
    low, high = _span(table)
    pixels = (
        (table[["predicted", "measured", "low", "high"]].astype(float) - low) / (high - low) * SIDE
    ).to_numpy()
    dots = [(float(x), float(y)) for x, y, *_ in pixels]
    bars = [(float(x) - 3, float(start), float(x) + 3, float(end)) for x, _, start, end in pixels]
    line = [(at - 4.0, at - 4.0, at + 4.0, at + 4.0) for at in range(0, int(SIDE), 8)]
    return beside(
        dots, [str(name) for name in table["name"]], size=(SIDE, SIDE), obstacles=[*bars, *line]
    )
