"""A sheet on which one unit is one pixel, for pictures of trees and of text."""

import math
from collections.abc import Iterable, Sequence

import numpy as np
import plotly.graph_objects as go

from specdec_lib.core.tree.shape import children_of
from specdec_lib.show.figures.theme import DARK, INK, MONOSPACE, SCREEN, escape, tint

Spot = tuple[float, float]
Box = tuple[float, float, float, float]  # left, top, right, bottom
THIN = {"color": INK, "width": 1.3}


def sheet(traces: Sequence[go.Scatter], size: Spot, title: str) -> go.Figure:
    """A figure of the traces without axes, y downwards; the margins are added around it."""
    (width, height), keyed = size, any(trace.showlegend for trace in traces)
    top = 20 + (28 if title else 0) + (28 if keyed else 0)
    hidden = {"visible": False, "fixedrange": True}
    axes = {"xaxis": {**hidden, "range": [0, width]}, "yaxis": {**hidden, "range": [height, 0]}}
    size = {"width": width + 48, "height": height + top + 24, "margin": {"t": top}}
    quiet = {"dragmode": False, "hovermode": "closest", "hoverdistance": 40, "showlegend": keyed}
    figure = go.Figure(list(traces), axes | size | quiet)
    return figure.update_layout(template=SCREEN, title={"text": escape(title)})


def boxes_trace(boxes: Iterable[Box], colour: str, *, name: str = "") -> go.Scatter:
    """Boxes as one trace, filled with the colour's tint if it has a name."""
    fill = {"fill": "toself", "fillcolor": tint(colour)} if name else {}
    line = {"color": colour, "width": 1.3 if name else 3.2}
    outlines = [
        [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)]
        for left, top, right, bottom in boxes
    ]
    return path_trace(outlines, line, name=name).update(fill)


def path_trace(
    paths: Sequence[Sequence[Spot]], line: dict[str, object], *, name: str = ""
) -> go.Scatter:
    """Several paths as one trace."""
    points = [point for path in paths for point in (*path, (math.nan, math.nan))]
    xs, ys = np.round(np.array(points, dtype=float).reshape(-1, 2).T, 1)
    look = {"mode": "lines", "line": line | {"simplify": False}, "hoverinfo": "skip"}
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
    font = {"size": size} | ({"family": MONOSPACE, "color": DARK} if code else {})
    said = {"hovertext": list(hover), "hoverinfo": "text" if hover else "skip"}
    place = {"x": [x for x, _ in places], "y": [y for _, y in places], "showlegend": False}
    return go.Scatter(mode="text", text=list(texts), textfont=font, **place, **said)


def edge(parent: Box, child: Box) -> list[Spot]:
    """A line from one box's right side to another's left that ends level, so that a score can sit
    on its end.
    """
    (_, top, start, bottom), (end, upper, _, lower) = parent, child
    y, level = (top + bottom) / 2, (upper + lower) / 2
    return [(start, y), (end - 38, level), (end, level)]


def leaf_rows(parents: Sequence[int]) -> list[float]:
    """A row per node: leaves one below the other, siblings in the order of their numbers, a parent
    midway between its first child and its last.
    """
    children, order, stack = children_of(parents), [], [0]
    while stack:
        order.append(stack.pop())
        stack.extend(reversed(children[order[-1]]))
    leaves = [node for node in order if not children[node]]
    rows = {node: float(row) for row, node in enumerate(leaves)}
    for node in reversed(order):
        if below := children[node]:
            rows[node] = (rows[below[0]] + rows[below[-1]]) / 2
    return [rows[node] for node in range(len(parents))]
