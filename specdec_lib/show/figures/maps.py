"""Where speculation pays: speed-up over acceptance and cost, and over the length of a chain."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.labels import PLACES, beside
from specdec_lib.show.figures.lanes import EMPTY, headed
from specdec_lib.show.figures.marks import check, check_once, short, wrapped
from specdec_lib.show.figures.theme import DARK, INK, SOURCES, tint

LOSS, GAIN = SOURCES["target"], SOURCES["draft"]
PLOT = (560.0, 400.0)  # pixels of the map, about
OPAQUE = "rgba(255,255,255,0.94)"  # behind a name on the map, that no line runs through it


def break_even(
    table: pd.DataFrame,
    points: pd.DataFrame,
    *,
    here: tuple[float, float] | None = None,
    title: str = "",
) -> go.Figure:
    """Speed-up over acceptance rate and what a draft pass costs, as levels; the thick line is where
    speculation stops paying.

    table     a row per cell of a full grid: `acceptance_rate`, `cost` (a draft pass ÷ a target
              pass), `speed_up`
    points    our pairs on the map: `pair` (its name), `acceptance_rate`, `cost`
    here      an acceptance rate and a cost that a star marks
    title     the headline, if another

    Raises ValueError if a table lacks a column or a row, or the grid a cell.
    """
    check(table, ("acceptance_rate", "cost", "speed_up"))
    check(points, ("pair", "acceptance_rate", "cost"))
    check_once(table, ("acceptance_rate", "cost"))
    grid = table.pivot(index="cost", columns="acceptance_rate", values="speed_up").astype(float)
    if grid.size != len(table):
        raise ValueError(
            f"a map has a cell per acceptance rate and cost: {grid.size}, got {len(table)} rows"
        )
    figure = _levels(grid)
    across, down = (
        (float(grid.columns.min()), float(grid.columns.max())),
        (float(grid.index.min()), float(grid.index.max())),
    )
    _add_pairs(figure, points, across, down, here)
    figure.update_layout(EMPTY, width=780, height=520)
    figure.update_xaxes(title="acceptance rate of a guess", range=across, showgrid=False)
    figure.update_yaxes(
        title="seconds of a draft pass ÷ of a target pass", range=down, showgrid=False
    )
    return headed(figure, title or "Speed-up of the best chain over acceptance rate and cost")


def _levels(grid: pd.DataFrame) -> go.Figure:
    """The map alone: thin lines every quarter from 1 on, and the thick one at 1."""
    shades = [[0, tint(LOSS)], [0.001, "#F4F9FC"], [1, GAIN]]
    most = max(1.25, float(np.nanmax(grid.to_numpy())))
    levels = {
        "start": 1.0,
        "end": most,
        "size": 0.25,
        "showlabels": True,
        "labelfont": {"size": 11, "color": DARK},
    }
    place = {"x": list(grid.columns), "y": list(grid.index), "z": grid.to_numpy()}
    figure = go.Figure(
        go.Contour(
            **place,
            zmin=1.0,
            zmax=most,
            colorscale=shades,
            contours=levels,
            line={"width": 0.7, "color": INK},
            colorbar={"title": {"text": "speed-up", "side": "top"}, "thickness": 14},
            hovertemplate="acceptance rate %{x:.2f}, cost %{y:.2f}: %{z:.2f} times as fast<extra></extra>",
        )
    )
    even = {"type": "constraint", "operation": "=", "value": 1.0, "showlabels": False}
    figure.add_contour(
        **place,
        contours=even,
        line={"width": 3.5, "color": LOSS},
        showscale=False,
        name="break-even",
        hoverinfo="skip",
    )
    figure.data[1].showlegend = True
    return figure


def _add_pairs(
    figure: go.Figure,
    points: pd.DataFrame,
    across: tuple[float, float],
    down: tuple[float, float],
    here: tuple[float, float] | None,
) -> None:
    """Our pairs as diamonds, each name beside its own on a map that reaches from `across` and
    `down` to their ends, and the star.
    """
    spots = [(row.acceptance_rate, row.cost) for row in points.itertuples()] + (
        [here] if here else []
    )
    pixels = [
        (
            PLOT[0] * (x - across[0]) / (across[1] - across[0]),
            PLOT[1] * (y - down[0]) / (down[1] - down[0]),
        )
        for x, y in spots
    ]
    texts = [wrapped(str(name), 24) for name in points["pair"]]
    hover = "%{text}<br>acceptance rate %{x:.3f}, cost %{y:.3f}<extra></extra>"
    rim = {"color": DARK, "line": {"color": "#FFFFFF", "width": 1.5}}
    places = {"x": points["acceptance_rate"], "y": points["cost"], "text": texts}
    figure.add_scatter(
        **places,
        mode="markers",
        marker=rim | {"symbol": "diamond", "size": 11},
        name="our pairs",
        hovertemplate=hover,
    )
    words = [*texts, "here"] if here else texts
    for (x, y), text, side in list(
        zip(spots, words, beside(pixels, words, size=PLOT), strict=True)
    )[: len(texts)]:
        right, up = PLACES[side]
        anchors = {
            "xanchor": ("center", "left", "right")[right],
            "yanchor": ("middle", "bottom", "top")[up],
            "xshift": 9 * right,
            "yshift": 9 * up,
        }
        ink = {"font": {"size": 12, "color": DARK}, "bgcolor": OPAQUE, "borderpad": 1}
        figure.add_annotation(x=x, y=y, text=text, showarrow=False, **anchors, **ink)
    if here:
        star = {
            "symbol": "star",
            "size": 19,
            "color": "#E69F00",
            "line": {"color": DARK, "width": 1.5},
        }
        figure.add_scatter(
            x=[here[0]],
            y=[here[1]],
            text=["here"],
            mode="markers",
            marker=star,
            name="here",
            hovertemplate=hover,
        )


def chain_lengths(table: pd.DataFrame, *, length: int, title: str = "") -> go.Figure:
    """Speed-up over how many guesses a chain has, as bars, those below plain decoding hatched; a
    darker rim marks the chosen length.

    table     a row per bar: `length` from 1, `speed_up`, `tokens_per_round`
    length    the chosen one

    Raises ValueError if the table lacks a column or a row, has a length twice, or lacks the chosen
    one.
    """
    check(table, ("length", "speed_up", "tokens_per_round"))
    check_once(table, ("length",))
    if length not in set(table["length"]):
        raise ValueError(f"the chosen length is one of {sorted(table['length'])}, got {length}")
    pays = table["speed_up"] > 1
    colours = [GAIN if gain else LOSS for gain in pays]
    chosen = table["length"] == length
    bars = go.Bar(
        x=table["length"],
        y=table["speed_up"],
        marker={
            "color": [tint(colour) for colour in colours],
            "line": {
                "color": [
                    INK if one else colour for one, colour in zip(chosen, colours, strict=True)
                ],
                "width": [4 if one else 1.2 for one in chosen],
            },
            "pattern": {
                "shape": ["" if gain else "/" for gain in pays],
                "fgcolor": colours,
                "size": 6,
                "solidity": 0.25,
            },
        },
        text=[short(value) for value in table["speed_up"]],
        textposition="outside",
        cliponaxis=False,
        customdata=table[["tokens_per_round"]].to_numpy(),
        hovertemplate="%{x} guesses: %{y:.3f} times as fast, %{customdata[0]:.2f} tokens per round<extra></extra>",
    )
    figure = go.Figure(bars).update_layout(
        EMPTY | {"margin": {"t": 24}, "showlegend": False}, width=780, height=250, bargap=0.3
    )
    figure.add_hline(y=1, line={"dash": "dot", "width": 1.5, "color": INK})
    figure.update_xaxes(title="guesses per round", tickvals=list(table["length"]), showgrid=False)
    figure.update_yaxes(title="speed-up", range=[0, 1.2 * max(1.0, float(table["speed_up"].max()))])
    return headed(figure, title) if title else figure
