"""Charts over two quantities: cells with numbers in them, and the map of break-even."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.chart import Chart, open_chart
from specdec_lib.show.figures.forms import TWO_SIDED, add_cells, add_dots, frame_cell
from specdec_lib.show.figures.labels import PLACES, place_words, wrap
from specdec_lib.show.figures.marks import check, check_grid, marks, names_of
from specdec_lib.show.figures.theme import DARK, GAIN, INK, LOSS, Look, tint

PLOT = (560.0, 400.0)  # pixels of the map, about
OPAQUE = "rgba(255,255,255,0.94)"  # behind a name on the map, that no line runs through it
PAIR, HERE = "our pairs", "here"
MAP_LOOKS = {PAIR: Look(DARK, symbol="diamond"), HERE: Look("#E69F00", symbol="star")}
Spot = tuple[float, float]


def match_rates(table: pd.DataFrame) -> go.Figure:
    """P(match | rank, gap) as cells with the numbers in them: ranks from the top down, gaps from
    the left.

    table    `gap` (the bin's name, in order), `rank` from 0, `rate`; a missing cell stays empty
    """
    check(table, "gap rank", "rate")
    grid = table.pivot(index="rank", columns="gap", values="rate")[names_of(table["gap"])]
    grid.index = [f"rank {rank}" for rank in grid.index]
    x = "gap to the best guess in nats; for rank 0, its lead over the second"
    chart = open_chart(size=(760, 86 + 38 * len(grid)), x=x, y="rank of the guess")
    add_cells(chart, grid, name="rate", ends=(0, 1))
    chart.figure.update_yaxes(autorange="reversed")
    return chart.titled("How often a guess matches the target, by its rank and gap")


def surface(table: pd.DataFrame, *, best: Sequence[int], across: str, down: str) -> go.Figure:
    """SWI over two entries of the K matrix, a cell per pair; a frame and the headline mark the
    optimum.

    table           the full grid: `k1`, `k2`, `swi` (NaN: an empty cell)
    best            the optimum's k1 and k2
    across, down    what k1 and k2 count, for the axes

    Raises ValueError if the optimum is no cell with a value.
    """
    check_grid(table, "k1 k2", "swi")
    grid = table.pivot(index="k2", columns="k1", values="swi").astype(float)
    value = float(grid.get(best[0], pd.Series(dtype=float)).get(best[1], np.nan))
    if np.isnan(value):
        raise ValueError(
            f"the optimum must be a cell of the surface with a value, got k1 = {best[0]}, k2 ="
            f" {best[1]}"
        )
    size = (min(900, 190 + 42 * max(8, grid.shape[1])), 106 + 30 * max(5, grid.shape[0]))
    chart = open_chart(size=size, x=across, y=down)
    add_cells(chart, grid, name="SWI")
    frame_cell(chart, grid, best)
    return chart.titled(f"SWI over K: {value:.3f} in the frame, at ({best[0]}, {best[1]})")


def speed_surface(table: pd.DataFrame) -> go.Figure:
    """Speed-up over budget and deepest guess, a panel per width, as cells with their values; blue
    is faster than plain decoding, orange slower. A frame marks the best of all.

    table    the full grid: `budget` (nodes without the root), `depth` (the deepest guess allowed),
             `width` (children per node, at most), `speed_up`
    """
    check_grid(table, "budget depth width", "speed_up")
    grids = {
        f"width ≤ {width}" if width > 1 else "width 1": own.pivot(
            index="budget", columns="depth", values="speed_up"
        )
        for width, own in table.groupby("width")
    }
    size = (min(900, 120 + 260 * len(grids)), 94 + 34 * table["budget"].nunique())
    chart = open_chart(grids, size=size, x="deepest guess", y="budget, in nodes", gap=0.03)
    most = float((table["speed_up"] - 1).abs().max()) or 1.0
    look = {"name": "speed-up", "ends": (1 - most, 1 + most), "shades": TWO_SIDED}
    for panel, grid in grids.items():
        add_cells(chart, grid, panel=panel, scale=panel == list(grids)[-1], **look)
    best = table.loc[table["speed_up"].idxmax()]
    panel = list(grids)[sorted(set(table["width"])).index(best["width"])]
    frame_cell(chart, grids[panel], (best["depth"], best["budget"]), panel=panel)
    return chart.titled(
        f"Speed-up over plain decoding: {best['speed_up']:.2f} in the frame, budget"
        f" {best['budget']:g}, depth {best['depth']:g}, width {best['width']:g}"
    )


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
    check_grid(table, f"{x} {y}", "speed_up")
    dots = marks(points, x, y, note="{pair}").assign(series=PAIR)
    grid = table.pivot(index=y, columns=x, values="speed_up").astype(float)
    names = "acceptance rate of a guess", "seconds of a draft pass ÷ of a target pass"
    chart = open_chart(size=(780, 464), x=names[0], y=names[1])
    _add_levels(chart, grid)
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
