"""A sheet on which one unit is one pixel, for pictures of trees and of text."""

import math
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from specdec_lib.core.tree.parents import children_of
from specdec_lib.show.figures.theme import DARK, INK, MONOSPACE, SCREEN, escape, tint

Spot = tuple[float, float]
Box = tuple[float, float, float, float]  # left, top, right, bottom
BENDS = ((0.0, 1.0), (0.076, 0.617), (0.293, 0.293), (0.617, 0.076), (1.0, 0.0))
THIN = {"color": INK, "width": 1.3, "simplify": False}


def sheet(traces: Sequence[go.Scatter], size: Spot, title: str) -> go.Figure:
    """A figure of the traces without axes, y downwards; the margins are added around it."""
    (width, height), keyed = size, any(trace.showlegend for trace in traces)
    top = 20 + (28 if title else 0) + (28 if keyed else 0)
    hidden = {"visible": False, "fixedrange": True}
    return go.Figure(list(traces)).update_layout(
        template=SCREEN,
        title={"text": escape(title)},
        width=width + 48,
        height=height + top + 24,
        margin={"t": top},
        showlegend=keyed,
        xaxis={**hidden, "range": [0, width]},
        yaxis={**hidden, "range": [height, 0]},
        dragmode=False,
        hovermode="closest",
        hoverdistance=40,
    )


def boxes_trace(boxes: Sequence[Box], colour: str, *, name: str = "") -> go.Scatter:
    """Boxes with rounded corners as one trace, filled with the colour's tint if it has a name."""
    fill = {"fill": "toself", "fillcolor": tint(colour)} if name else {}
    line = {"color": colour, "width": 1.3 if name else 3.2, "simplify": False}
    return path_trace([_outline(*box) for box in boxes], line, name=name).update(fill)


def path_trace(
    paths: Sequence[Sequence[Spot]], line: dict[str, object], *, name: str = ""
) -> go.Scatter:
    """Several paths as one trace."""
    points = [point for path in paths for point in (*path, (math.nan, math.nan))]
    xs, ys = np.round(np.array(points, dtype=float).reshape(-1, 2).T, 1)
    look = {"mode": "lines", "line": line, "hoverinfo": "skip"}
    return go.Scatter(x=xs, y=ys, name=name, showlegend=bool(name), **look)


def words_trace(
    places: Sequence[Spot],
    texts: Sequence[str],
    *,
    size: float = 13,
    hover: Sequence[str] = (),
    code: bool = True,
) -> go.Scatter:
    """Texts with their middles at these places: code is dark, in letters of equal width."""
    return go.Scatter(
        x=[x for x, _ in places],
        y=[y for _, y in places],
        mode="text",
        text=list(texts),
        textfont={"size": size} | ({"family": MONOSPACE, "color": DARK} if code else {}),
        hovertext=list(hover),
        hoverinfo="text" if hover else "skip",
        showlegend=False,
    )


def curve(parent: Box, child: Box) -> list[Spot]:
    """An S from one box's right side to another's left that ends level, so that a score can sit on
    its end.
    """
    start, end = (parent[2], (parent[1] + parent[3]) / 2), (child[0], (child[1] + child[3]) / 2)
    share = np.linspace(0, 1, 25)
    xs = start[0] + (end[0] - 30 - start[0]) * share
    ys = start[1] + (end[1] - start[1]) * share * share * (3 - 2 * share)
    return [*zip(xs, ys, strict=True), end]


def _outline(left: float, top: float, right: float, bottom: float) -> list[Spot]:
    """A closed box with rounded corners."""
    corner = min(4.0, (right - left) / 3)
    corners = ((left, top, 1, 1), (right, top, -1, 1), (right, bottom, -1, -1))
    points = [
        (x + inward_x * corner * along, y + inward_y * corner * across)
        for number, (x, y, inward_x, inward_y) in enumerate((*corners, (left, bottom, 1, -1)))
        for along, across in (BENDS if number % 2 == 0 else BENDS[::-1])
    ]
    return [*points, points[0]]


def leaf_rows(parents: Sequence[int]) -> list[float]:
    """A row per node: leaves one below the other, siblings in the order of their numbers, a parent
    midway between its first child and its last.
    """
    children, order, stack = children_of(parents), [], [0]
    while stack:
        order.append(stack.pop())
        stack.extend(reversed(children[order[-1]]))
    rows, leaves = [0.0] * len(parents), 0
    for node in order:
        if not children[node]:
            rows[node], leaves = float(leaves), leaves + 1
    for node in reversed(order):
        if below := children[node]:
            rows[node] = (rows[below[0]] + rows[below[-1]]) / 2
    return rows
