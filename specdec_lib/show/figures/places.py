"""One pass among the measured ones: what it takes at so many rows after so much context, beside
what the machine would allow.
"""

import math

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.lanes import EMPTY, band, headed
from specdec_lib.show.figures.marks import (
    DASHES,
    SYMBOLS,
    Look,
    check,
    check_once,
    groups,
    interval,
    short,
)
from specdec_lib.show.figures.theme import DARK, INK, SOURCES

CHOSEN = Look(SOURCES["target"], "solid", "star")
RIGHT = 4  # rows: further right, words stand left of the star


def pass_at(measured: pd.DataFrame, line: pd.DataFrame, *, rows: int, title: str = "") -> go.Figure:
    """Milliseconds of a pass against its rows: a thin line with dots per measured context, a thick
    one at the chosen context, a star at the pass.

    measured    of one model in one runtime: `rows`, `context_tokens`, `seconds`, `low_seconds`,
                `high_seconds`
    line        at the chosen context: `rows`, `seconds`, optionally `roofline_seconds`, drawn
                dotted
    rows        of the pass that the star marks; words beside it say its milliseconds, and how many
                times those of one row

    Raises ValueError if a table lacks a column or a row, has a point twice, a band does not hold
    its line, or the line has no such pass.
    """
    check(measured, ("rows", "context_tokens", "seconds", "low_seconds", "high_seconds"))
    check_once(measured, ("rows", "context_tokens"))
    check(line, ("rows", "seconds"))
    check_once(line, ("rows",))
    if rows not in set(line["rows"]):
        raise ValueError(
            f"the line has passes of {line['rows'].min()} to {line['rows'].max()} rows, got {rows}"
        )
    named = measured.assign(
        context=[f"context {context}" for context in measured["context_tokens"]]
    )
    named = named.sort_values("context_tokens", kind="stable")
    named[["seconds", "low_seconds", "high_seconds"]] *= 1e3
    figure = go.Figure()
    for number, (name, own) in enumerate(groups(named, "context", along="rows")):
        look = Look(INK, DASHES[number % len(DASHES)], SYMBOLS[number % len(SYMBOLS)])
        interval(own, "seconds", look, low="low_seconds", high="high_seconds")
        figure.add_trace(
            band(own, "rows", look, low="low_seconds", high="high_seconds", group=name)
        )
        thin = {
            "mode": "lines+markers",
            "line": look.line | {"width": 1},
            "marker": look.marker(6),
            "name": name,
            "legendgroup": name,
        }
        figure.add_scatter(
            x=own["rows"],
            y=own["seconds"],
            **thin,
            hovertemplate="%{x} rows: %{y:.2f} ms<extra>%{fullData.name}</extra>",
        )
    _add_chosen(figure, line.sort_values("rows", kind="stable"), rows)
    ticks = [2**power for power in range(1 + int(math.log2(max(1, line["rows"].max()))))]
    figure.update_layout(
        EMPTY | {"margin": {"t": 78}}, width=780, height=450
    )  # the legend takes two lines
    figure.update_xaxes(
        title="rows of the pass", type="log", tickvals=ticks, ticktext=[f"{tick}" for tick in ticks]
    )
    figure.update_yaxes(title="milliseconds of a pass", rangemode="tozero")
    return headed(figure, title) if title else figure


def _add_chosen(figure: go.Figure, line: pd.DataFrame, rows: int) -> None:
    """The thick line, its roofline and the star."""
    thick = {"mode": "lines", "line": CHOSEN.line | {"width": 3}, "name": "at the chosen context"}
    figure.add_scatter(
        x=line["rows"],
        y=1e3 * line["seconds"],
        **thick,
        hovertemplate="%{x} rows: %{y:.2f} ms<extra>%{fullData.name}</extra>",
    )
    if "roofline_seconds" in line:
        dotted = {
            "mode": "lines",
            "line": {"color": INK, "dash": "dot", "width": 2},
            "name": "what the machine would allow",
        }
        figure.add_scatter(
            x=line["rows"],
            y=1e3 * line["roofline_seconds"],
            **dotted,
            hovertemplate="%{x} rows: %{y:.2f} ms at best<extra></extra>",
        )
    one, spot = (
        1e3 * float(line["seconds"].iloc[0]),
        1e3 * float(line["seconds"][line["rows"] == rows].iloc[0]),
    )
    star = CHOSEN.marker(17) | {"line": {"color": DARK, "width": 1}}
    words = f"{short(spot)} ms, {short(spot / one)} × one row"
    told = {
        "text": [words],
        "textposition": "top left" if rows > RIGHT else "top right",
        "cliponaxis": False,
        "textfont": {"size": 14, "color": CHOSEN.colour},
    }
    figure.add_scatter(
        x=[rows],
        y=[spot],
        mode="markers+text",
        marker=star,
        name="this pass",
        **told,
        hoverinfo="skip",
    )
