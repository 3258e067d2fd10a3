"""Figures of where speculation pays: over acceptance and cost, and over the length of a chain."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.chart import PLAIN, Chart, open_chart
from specdec_lib.show.figures.forms import add_bars, add_dots
from specdec_lib.show.figures.labels import PLACES, place_words, wrap
from specdec_lib.show.figures.marks import check, check_grid, marks
from specdec_lib.show.figures.theme import DARK, GAIN, INK, LOSS, Look, tint

PLOT = (560.0, 400.0)  # pixels of the map, about
OPAQUE = "rgba(255,255,255,0.94)"  # behind a name on the map, that no line runs through it
PAIR, HERE = "our pairs", "here"
MAP_LOOKS = {PAIR: Look(DARK, symbol="diamond"), HERE: Look("#E69F00", symbol="star")}
LENGTH_LOOKS = {
    "faster": Look(GAIN),
    "slower": Look(LOSS, hatch="/"),
    "faster, chosen": Look(GAIN, full=True),
    "slower, chosen": Look(LOSS, hatch="/", full=True),
}
Spot = tuple[float, float]


def break_even(
    table: pd.DataFrame, points: pd.DataFrame, *, here: Spot | None = None, title: str = ""
) -> go.Figure:
    """Speed-up over acceptance rate and what a draft pass costs, as levels; the thick line is where
    speculation stops paying.

    table     the full grid: `acceptance_rate`, `cost` (a draft pass ÷ a target pass), `speed_up`
    points    our pairs on the map: `pair` (its name), `acceptance_rate`, `cost`
    here      an acceptance rate and a cost that a star marks
    """
    x, y = "acceptance_rate", "cost"
    check(table, f"{x} {y}", "speed_up")
    check_grid(table, f"{x} {y}")
    check(points, "", f"pair {x} {y}")
    grid = table.pivot(index=y, columns=x, values="speed_up").astype(float)
    names = "acceptance rate of a guess", "seconds of a draft pass ÷ of a target pass"
    chart = open_chart(size=(780, 464), x=names[0], y=names[1])
    _add_levels(chart, grid)
    dots = marks(points.assign(note=points["pair"]), x, y).assign(series=PAIR)
    add_dots(chart, dots, MAP_LOOKS, size=11)
    ends = [(float(axis.min()), float(axis.max())) for axis in (grid.columns, grid.index)]
    _name_pairs(chart.figure, points, ends, [here] if here else [])
    if here:
        star = pd.DataFrame([here], columns=["x", "y"]).assign(series=HERE, panel="")
        add_dots(chart, star, MAP_LOOKS, size=19)
    chart.figure.update_xaxes(range=ends[0], showgrid=False)
    chart.figure.update_yaxes(range=ends[1], showgrid=False)
    return chart.titled(title or "Speed-up of the best chain over acceptance rate and cost")


def _add_levels(chart: Chart, grid: pd.DataFrame) -> None:
    """The map alone: thin lines every quarter from 1 on, and the thick one at 1."""
    most = max(1.25, float(np.nanmax(grid.to_numpy())))
    font = {"size": 11, "color": DARK}
    levels = {"start": 1.0, "end": most, "size": 0.25, "showlabels": True, "labelfont": font}
    place = {"x": list(grid.columns), "y": list(grid.index), "z": grid.to_numpy()}
    shades = go.Contour(
        **place,
        zmin=1.0,
        zmax=most,
        colorscale=[[0, tint(LOSS)], [0.001, "#F4F9FC"], [1, GAIN]],
        contours=levels,
        line={"width": 0.7, "color": INK},
        colorbar={"title": {"text": "speed-up", "side": "top"}, "thickness": 14},
        hovertemplate="rate %{x:.2f}, cost %{y:.2f}: %{z:.2f} times as fast<extra></extra>",
    )
    chart.add(shades)
    even = {"type": "constraint", "operation": "=", "value": 1.0, "showlabels": False}
    line = {"width": 3.5, "color": LOSS}
    look = {"showscale": False, "name": "break-even", "hoverinfo": "skip"}
    chart.add(go.Contour(**place, contours=even, line=line, **look))


def _name_pairs(
    figure: go.Figure, points: pd.DataFrame, ends: list[Spot], taken: list[Spot]
) -> None:
    """Each pair's name stands beside its mark, where it covers no other mark."""
    spots = [*zip(points["acceptance_rate"], points["cost"], strict=True), *taken]
    pixels = [
        tuple(
            side * (at - low) / (high - low)
            for side, at, (low, high) in zip(PLOT, spot, ends, strict=True)
        )
        for spot in spots
    ]
    texts = [*(wrap(name, 24) for name in points["pair"]), *[HERE] * len(taken)]
    sides = place_words(pixels, texts, size=PLOT)[: len(points)]
    look = {"showarrow": False, "font": {"size": 12, "color": DARK}, "bgcolor": OPAQUE}
    for (x, y), text, side in zip(spots, texts, sides, strict=False):
        right, up = PLACES[side]
        place = {"xshift": 9 * right, "yshift": 9 * up, "borderpad": 1}
        place["xanchor"] = ("center", "left", "right")[right]
        place["yanchor"] = ("middle", "bottom", "top")[up]
        figure.add_annotation(x=x, y=y, text=text, **look, **place)


def chain_lengths(table: pd.DataFrame, *, length: int, title: str = "") -> go.Figure:
    """Speed-up over how many guesses a chain has, as bars, those below plain decoding hatched; the
    chosen length in full colour.

    table     `length` from 1, `speed_up`, `tokens_per_round`
    length    the chosen one
    """
    check(table, "length", "speed_up tokens_per_round")
    if length not in set(table["length"]):
        raise ValueError(f"the chosen length is one of {sorted(table['length'])}, got {length}")
    verdicts = pd.Series(np.where(table["speed_up"] > 1, "faster", "slower"), table.index)
    said = table.assign(
        note=table["tokens_per_round"].map("{:.2f} tokens per round".format),
        look=verdicts + np.where(table["length"] == length, ", chosen", ""),
    )
    rows = marks(said, "length", "speed_up", text="speed_up")
    y = "speed-up over plain decoding (dotted)"
    chart = open_chart(size=(780, 226), x="guesses per round", y=y)
    add_bars(chart, rows, LENGTH_LOOKS, width=0.7)
    chart.figure.add_hline(y=1, **PLAIN)
    chart.figure.update_xaxes(tickvals=list(table["length"]), showgrid=False)
    chart.start_at_zero("y", rows, 1.2, least=1.0)
    return chart.titled(title or "Speed-up of a chain, by its length")
