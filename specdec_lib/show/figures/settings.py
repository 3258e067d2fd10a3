"""SWI over the entries of the K matrix."""

from collections.abc import Sequence

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.lanes import headed
from specdec_lib.show.figures.marks import check, check_once, wrapped
from specdec_lib.show.figures.theme import DARK, SCREEN, SOURCES, escaped, tint

SHADES = [
    [0, tint(tint(SOURCES["draft"]))],
    [1, SOURCES["draft"]],
]  # the palest is not white: that is an empty cell
MOST_WRITTEN = 16  # columns of a surface whose cells still have room for their numbers
WHITE_TEXT = 0.7  # of the shades, from which on the numbers are white
CELL = 30  # pixels


def surface(table: pd.DataFrame, *, best: Sequence[int], across: str, down: str) -> go.Figure:
    """SWI over two entries of the K matrix, a cell per pair; a frame and the headline mark the
    optimum.

    table           a row per cell of the full grid: `k1`, `k2`, `swi` (NaN: an empty cell)
    best            the optimum's k1 and k2
    across, down    what k1 and k2 count, for the axes

    Raises ValueError if the table lacks a column, a row or a cell of the grid, has one twice, or
    `best` has no SWI in it.
    """
    check(table, ("k1", "k2", "swi"))
    check_once(table, ("k1", "k2"))
    grid = table.pivot(index="k2", columns="k1", values="swi").astype(float)
    if grid.size != len(table):
        raise ValueError(
            f"a surface needs every pair of its k1 and k2: {grid.shape[1]} times {grid.shape[0]},"
            f" got {len(table)} rows"
        )
    at = table[(table["k1"] == best[0]) & (table["k2"] == best[1])].dropna(subset=["swi"])
    if at.empty:
        raise ValueError(
            f"the optimum must be a cell of the surface with a value, got k1 = {best[0]}, k2 ="
            f" {best[1]}"
        )
    value = float(at["swi"].iloc[0])
    columns, rows = [f"{name}" for name in grid.columns], [f"{name}" for name in grid.index]
    figure = go.Figure(
        go.Heatmap(
            x=columns,
            y=rows,
            z=grid.to_numpy(),
            colorscale=SHADES,
            xgap=1,
            ygap=1,
            colorbar={"title": {"text": "SWI", "side": "top"}, "thickness": 14},
            hovertemplate="k1 = %{x}, k2 = %{y}: SWI %{z:.3f}<extra></extra>",
        )
    )
    if len(columns) <= MOST_WRITTEN:
        _write_cells(figure, grid)
    column, row = columns.index(f"{at['k1'].iloc[0]}"), rows.index(f"{at['k2'].iloc[0]}")
    frame = {"x0": column - 0.5, "x1": column + 0.5, "y0": row - 0.5, "y1": row + 0.5}
    figure.add_shape(type="rect", **frame, line={"color": SOURCES["target"], "width": 3})
    figure.update_layout(
        template=SCREEN,
        width=min(900, 190 + 42 * max(8, len(columns))),
        height=130 + CELL * max(5, len(rows)),
        margin={"t": 24},
    )
    figure.update_xaxes(title=escaped(across), type="category", showgrid=False)
    figure.update_yaxes(
        title=wrapped(down, max(24, 4 * len(rows))), type="category", showgrid=False
    )
    return headed(
        figure, f"SWI over K: {value:.3f} in the frame, at ({columns[column]}, {rows[row]})"
    )


def _write_cells(figure: go.Figure, grid: pd.DataFrame) -> None:
    """The numbers in the cells, white on the dark ones."""
    least, most = float(grid.min().min()), float(grid.max().max())
    for column, k1 in enumerate(grid.columns):
        for row, number in enumerate(grid[k1]):
            if number == number:
                dark = most > least and (number - least) / (most - least) > WHITE_TEXT
                font = {"color": "#FFFFFF" if dark else DARK, "size": 11}
                # by place: a name like "8" would be taken for the place 8
                figure.add_annotation(
                    x=column, y=row, text=f"{number:.2f}", showarrow=False, font=font
                )
