"""The third form: cells (a heat map) with their values in them."""

from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.forms.chart import Chart
from specdec_lib.show.figures.theme import DARK, escape

SHADES = [[0, "#EAF4FA"], [1, "#5BA6D1"]]  # dark numbers are legible on all of them
TWO_SIDED = [[0, "#EA8A45"], [0.5, "#FFFFFF"], [1, "#5BA6D1"]]  # slower and faster
MOST_WITH_NUMBERS = 16  # columns of cells that still have room for their numbers


def add_cells(
    chart: Chart,
    grid: pd.DataFrame,
    *,
    name: str,
    ends: Sequence[float | None] = (None, None),
    shades: list[list[object]] = SHADES,
    panel: str = "",
    scale: bool = True,
) -> None:
    """Add a cell per value of the grid, its rows upwards and its columns to the right.

    name     of the quantity, over the scale of colours
    ends     of the colours; None for the least and the greatest value
    scale    whether the scale of colours stands beside the panels
    """
    values = grid.to_numpy(dtype=float)
    cells = go.Heatmap(
        x=[escape(column) for column in grid.columns],
        y=[escape(row) for row in grid.index],
        z=values,
        zmin=ends[0],
        zmax=ends[1],
        colorscale=shades,
        xgap=1,
        ygap=1,
        showscale=scale,
        colorbar={"title": {"text": name, "side": "top"}, "thickness": 14},
        hovertemplate=f"%{{y}}, %{{x}}: {name} %{{z:.3f}}<extra></extra>",
    )
    if grid.shape[1] <= MOST_WITH_NUMBERS:
        cells.text = [
            ["" if value != value else f"{value:.2f}" for value in line] for line in values
        ]
        cells.update(texttemplate="%{text}", textfont={"size": 11, "color": DARK})
    chart.add(cells, panel)
    for update in (chart.figure.update_xaxes, chart.figure.update_yaxes):
        update(type="category", showgrid=False)


def frame_cell(chart: Chart, column: int, row: int, *, panel: str = "") -> None:
    """Draw a frame around one cell, counted from the lower left."""
    box = {"x0": column - 0.5, "x1": column + 0.5, "y0": row - 0.5, "y1": row + 0.5}
    line = {"color": DARK, "width": 3}
    chart.figure.add_shape(type="rect", **box, line=line, **chart.panels[panel])
