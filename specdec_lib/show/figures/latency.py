"""Seconds: of a pass over rows, beside what the machine would allow, and of a round, by where they
go.
"""

import math

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.lanes import EMPTY, headed
from specdec_lib.show.figures.marks import (
    Look,
    check,
    check_once,
    faint,
    groups,
    looks,
    panels,
    short,
    wrapped,
)
from specdec_lib.show.figures.theme import SOURCES, escaped, tint

ROOF = "roofline"
PARTS = {
    "verify": SOURCES["target"],
    "draft passes": SOURCES["draft"],
    "choice and noise": SOURCES["bigram"],
    "KV moves": SOURCES["prompt"],
    "tree": SOURCES["n-gram"],
    "n-gram": SOURCES["generation"],
    "host": SOURCES["context"],
}
HATCHES = ("", "/", ".", "x", "-", "+", "\\")
WRITTEN = 0.07  # of the longest bar: a shorter piece has no room for its number


def latency(table: pd.DataFrame) -> go.Figure:
    """Milliseconds of a pass against its rows, a panel per model and a line per runtime with a band
    between the quartiles; the roofline dotted.

    table    a row per point: `model`, `runtime`, `rows`, `context_tokens`, `seconds`,
             `low_seconds`, `high_seconds`, optionally `roofline_seconds`, drawn at the greatest
             context; where there are several contexts, the least and the greatest are drawn, as
             lines of their own

    The y axes differ.  Raises ValueError if the table lacks a column or a row, has a point twice,
    or a band does not hold its line.
    """
    check(
        table,
        ("model", "runtime", "rows", "context_tokens", "seconds", "low_seconds", "high_seconds"),
    )
    check_once(table, ("model", "runtime", "rows", "context_tokens"))
    if (
        (table["low_seconds"] > table["seconds"]) | (table["seconds"] > table["high_seconds"])
    ).any():
        raise ValueError("low_seconds ≤ seconds ≤ high_seconds must hold in every row")
    ends = sorted({table["context_tokens"].min(), table["context_tokens"].max()})
    table = table[table["context_tokens"].isin(ends)]
    several = len(ends) > 1
    table = table.assign(
        series=[
            f"{row.runtime}, context {row.context_tokens}" if several else str(row.runtime)
            for row in table.itertuples()
        ]
    )
    models, styles = list(groups(table, "model")), _paired(table["series"], len(ends))
    figure = panels(
        [name for name, _ in models],
        width=min(900, 130 + 260 * len(models)),
        height=400,
        shared_y=False,
        gap=0.07,
    )
    for column, (_, rows) in enumerate(models, 1):
        for name, own in groups(rows, "series", along="rows"):
            for trace in _curve(own, name, styles[name], shown=column == 1):
                figure.add_trace(trace, row=1, col=column)
        for name, own in (
            groups(rows[rows["context_tokens"] == ends[-1]], "runtime", along="rows")
            if "roofline_seconds" in rows
            else ()
        ):
            look = styles[f"{name}, context {ends[-1]}" if several else name]
            words = f"{ROOF}, {name}" if table["runtime"].nunique() > 1 else ROOF
            figure.add_trace(_roof(own, words, look, shown=column == 1), row=1, col=column)
    ticks = [count for count in sorted(set(table["rows"])) if math.log2(count).is_integer()]
    figure.update_xaxes(
        title="rows of a pass", type="log", tickvals=ticks, ticktext=[f"{tick}" for tick in ticks]
    )
    if len(styles) > 2:  # the legend takes a second line
        figure.update_layout(
            height=figure.layout.height + 22, margin={"t": figure.layout.margin.t + 22}
        )
    figure.update_yaxes(rangemode="tozero")
    figure.update_yaxes(title="milliseconds of a pass", col=1)
    return figure


def _paired(series: pd.Series, contexts: int) -> dict[str, Look]:
    """A colour and a mark per runtime, a dash per context."""
    names = list(dict.fromkeys(series))
    found = looks(dict.fromkeys(name.rpartition(", context")[0] or name for name in names))
    dashes = ("solid", "dash")
    plain = {name: found[name.rpartition(", context")[0] or name] for name in names}
    return {
        name: Look(look.colour, dashes[number % contexts], look.symbol)
        for number, (name, look) in enumerate(plain.items())
    }


def _curve(rows: pd.DataFrame, name: str, look: Look, *, shown: bool) -> list[go.Scatter]:
    xs, lows, highs = (
        rows["rows"].tolist(),
        (1e3 * rows["low_seconds"]).tolist(),
        (1e3 * rows["high_seconds"]).tolist(),
    )
    veil = {
        "x": [*xs, *xs[::-1]],
        "y": [*lows, *highs[::-1]],
        "mode": "lines",
        "line": {"width": 0},
        "fill": "toself",
    }
    line = go.Scatter(
        x=xs,
        y=1e3 * rows["seconds"],
        mode="lines+markers",
        line=look.line,
        marker=look.marker(7),
        name=escaped(name),
        legendgroup=name,
        showlegend=shown,
        customdata=list(zip(lows, highs, strict=True)),
        hovertemplate="%{x} rows: %{y:.2f} ms (%{customdata[0]:.2f} to %{customdata[1]:.2f})<extra>%{fullData.name}</extra>",
    )
    return [
        go.Scatter(
            **veil,
            fillcolor=faint(look.colour),
            legendgroup=name,
            showlegend=False,
            hoverinfo="skip",
        ),
        line,
    ]


def _roof(rows: pd.DataFrame, name: str, look: Look, *, shown: bool) -> go.Scatter:
    line = {"color": look.colour, "dash": "dot", "width": 1.8}
    hover = "%{x} rows: %{y:.2f} ms at best<extra>%{fullData.name}</extra>"
    style = {
        "mode": "lines",
        "line": line,
        "name": escaped(name),
        "legendgroup": name,
        "showlegend": shown,
        "hovertemplate": hover,
    }
    return go.Scatter(x=rows["rows"], y=1e3 * rows["roofline_seconds"], **style)


def ledger(table: pd.DataFrame) -> go.Figure:
    """Where the milliseconds of a round go: a lying bar per draft, a piece per part, a panel per
    sampling; the share of the longer pieces in them.

    table    a row per piece: `draft`, `sampling`, `part`, `model` ("" where it is no model's),
             `round_seconds`, `share` of the wall time

    Pieces of one part are told apart by model only when hovered over.  Raises ValueError if the
    table lacks a column or a row, has a piece twice, or a part is another.
    """
    check(table, ("draft", "sampling", "part", "model", "round_seconds", "share"))
    table = table.fillna({"model": ""})
    check_once(table, ("draft", "sampling", "part", "model"))
    if strangers := sorted(set(table["part"]) - set(PARTS)):
        raise ValueError(
            f"a part of a round is one of {', '.join(PARTS)}, got {', '.join(strangers)}"
        )
    samplings, names = (
        list(groups(table, "sampling")),
        list(dict.fromkeys(map(str, table["draft"]))),
    )
    longest = float(table.groupby(["draft", "sampling"])["round_seconds"].sum().max())
    figure = panels(
        [name for name, _ in samplings],
        width=min(900, 260 + 330 * len(samplings)),
        height=172 + 46 * len(names),
        gap=0.04,
    )
    for column, (_, rows) in enumerate(samplings, 1):
        for number, (part, colour) in enumerate(PARTS.items()):
            own = rows[rows["part"] == part]
            if len(own):
                figure.add_trace(
                    _pieces(own, part, colour, HATCHES[number % len(HATCHES)], longest),
                    row=1,
                    col=column,
                )
    known: set[str] = set()
    for trace in figure.data:
        trace.showlegend = trace.name not in known
        known.add(trace.name)
    figure.update_layout(
        EMPTY | {"margin": {"t": 98}}, barmode="stack", bargap=0.3, legend={"traceorder": "normal"}
    )
    places = {
        "type": "category",
        "categoryorder": "array",
        "categoryarray": [wrapped(name, 26) for name in names[::-1]],
    }
    figure.update_yaxes(**places, showgrid=False)
    figure.update_xaxes(title="milliseconds of a round", range=[0, 1.03e3 * longest])
    return headed(figure, "Where the time of a round goes")


def _pieces(rows: pd.DataFrame, part: str, colour: str, hatch: str, longest: float) -> go.Bar:
    return go.Bar(
        x=1e3 * rows["round_seconds"],
        y=[wrapped(str(name), 26) for name in rows["draft"]],
        orientation="h",
        name=part,
        legendgroup=part,
        marker={
            "color": tint(colour),
            "line": {"color": colour, "width": 1.2},
            "pattern": {
                "shape": hatch,
                "fgcolor": colour,
                "bgcolor": tint(colour),
                "size": 6,
                "solidity": 0.25,
            },
        },
        text=[
            f"{row.share:.0%}" if row.round_seconds > WRITTEN * longest else ""
            for row in rows.itertuples()
        ],
        textposition="inside",
        insidetextanchor="middle",
        textangle=0,
        textfont={"color": "#1a1a1a", "size": 11},
        customdata=[(escaped(str(row.model)), short(100 * row.share)) for row in rows.itertuples()],
        hovertemplate="%{y}: %{x:.2f} ms, %{customdata[1]} %<extra>%{fullData.name} %{customdata[0]}</extra>",
    )
