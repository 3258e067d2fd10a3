"""Pictures on a sheet, on which one unit is one pixel: trees without their tokens, and text whose
tokens show their source.
"""

import math
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from specdec_lib.core.tree import Shape
from specdec_lib.core.tree.shape import children_of
from specdec_lib.show.figures import theme
from specdec_lib.show.figures.marks import check
from specdec_lib.show.figures.theme import DARK, GAIN, INK, escape, looks, tint, visible

Spot = tuple[float, float]
Box = tuple[float, float, float, float]  # left, top, right, bottom
THIN = {"color": INK, "width": 1.3}
SHADES = [[0, "#F4F9FC"], [1, GAIN]]
DEEP = 0.55  # of the shades, from which on white is easier to read
STEP, LEAF, NODE, HEAD, APART = 44.0, 28.0, 25.0, 44.0, 28.0  # pixels
PAGE = 900.0  # pixels that a line of shapes may fill
CHARACTER, LINE = 8.2, 26.0  # pixels
COLUMNS = 92  # characters before a line is broken
INSET = 8.0  # pixels left of the text


def shapes(table: pd.DataFrame, *, title: str) -> go.Figure:
    """Each `shape` of a tree, from left to right, under its name and its expected tokens per round;
    the shade of a `node`, and the number in it, is the `probability` that its whole path is
    accepted; as `slots` has them.
    """
    check(table, "shape node", "parent probability")
    heads, names, edges, places, values, hover = [], [], [], [], [], []
    left, top, below, right = 4.0, 4.0, 0.0, 0.0
    table = table.sort_values("node", kind="stable")
    for name, rows in table.groupby("shape", sort=False):
        shape, own = Shape(tuple(rows["parent"].tolist())), rows["probability"].tolist()
        wide = max(7.6 * len(f"{name}  2.00 tokens"), STEP * (shape.depth + 1))
        if heads and left + wide > PAGE:
            left, top, below = 4.0, top + below + APART, 0.0
        heads.append((left, top + 10))
        names.append(f"<b>{escape(name)}</b>  {sum(own):.2f} tokens")
        x, y = left + NODE / 2, top + HEAD
        down = zip(shape.depths, leaf_rows(shape.parents), strict=True)
        spots = [(x + STEP * depth, y + LEAF * row) for depth, row in down]
        edges += [[spots[parent], spots[node]] for node, parent in enumerate(shape.parents) if node]
        hover += [
            f"{escape(name)}: depth {depth}, rank {rank}<br>accepted with probability {value:.3g}"
            for depth, rank, value in zip(shape.depths, shape.ranks, own, strict=True)
        ]
        places, values = places + spots, values + own
        below = max(below, HEAD + LEAF * max(1, shape.leaves))
        left, right = left + wide + APART, max(right, left + wide)
    words = words_trace(heads, names, size=14, code=False).update(textposition="middle right")
    traces = [path_trace(edges, THIN), _nodes(places, values, hover), words]
    return sheet(traces, (right + 4, top + below + 4), title)


def _nodes(places: list[Spot], values: list[float], hover: list[str]) -> go.Scatter:
    shades = [value**0.5 for value in values]  # small ones differ too
    marker = {"size": NODE, "color": shades, "colorscale": SHADES, "cmin": 0, "cmax": 1}
    marker |= {"line": {"color": GAIN, "width": 1.2}, "opacity": 1}
    numbers = [
        "1" if value > 0.995 else f"{value:.2f}".removeprefix("0") if value >= 0.005 else "0"
        for value in values
    ]
    trace = words_trace(places, numbers, size=10.5, hover=hover, code=False)
    ink = ["#FFFFFF" if shade > DEEP else DARK for shade in shades]
    return trace.update(mode="markers+text", marker=marker, textfont={"color": ink})


def origins(table: pd.DataFrame, *, title: str = "") -> go.Figure:
    """The emitted text, a `token` after the other, in boxes coloured by the `source` of each; a bar
    marks where a `round` starts, the legend says each source's share. Without a title, it is how
    many tokens a round has.
    """
    check(table, "", "token source round")
    pieces, traces = _lay_out(table), []
    for source, look in looks(table["source"]).items():
        count = int((table["source"] == source).sum())
        own = pieces.loc[pieces["source"] == source, ["left", "top", "right", "bottom"]]
        share = f"{escape(source)} {count / len(table):.0%} ({count})"
        traces.append(boxes_trace(own.itertuples(index=False), look.colour, name=share))
    first = pieces[pieces["round"] != pieces["round"].shift()]
    bars = zip(first["left"] - 0.6, first["top"] - 3, first["bottom"] + 3, strict=True)
    starts = [[(left, top), (left, bottom)] for left, top, bottom in bars]
    traces.append(path_trace(starts, {"color": INK, "width": 2.2}, name="start of a round"))
    hover = [
        f"{escape(visible(str(one.token)))}<br>{escape(one.source)}, round {one.round}"
        for one in pieces.itertuples()
    ]
    texts = [escape(text.strip()) for text in pieces["text"]]
    traces.append(words_trace([*zip(pieces["x"], pieces["y"], strict=True)], texts, hover=hover))
    width, height = max(640.0, pieces["right"].max() + INSET), pieces["bottom"].max() + 7
    count = table["round"].nunique()
    counts = f"{len(table)} tokens in {count} rounds: {len(table) / count:.2f} per round"
    return sheet(traces, (width, height), title or counts)


def _lay_out(table: pd.DataFrame) -> pd.DataFrame:
    """The tokens in pieces of one line each: text, box and middle of the letters, in pixels. A
    newline is shown, then breaks the line.
    """
    pieces: list[dict[str, object]] = []
    line = column = 0
    for row in table[["token", "source", "round"]].to_dict("records"):
        for part in str(row["token"]).expandtabs(4).replace("\n", "⏎\n").splitlines(True) or [""]:
            shown = (mark if mark.isprintable() else "·" for mark in part.removesuffix("\n"))
            text = "".join(shown) or "∅"
            if column and column + len(text) > COLUMNS:
                line, column = line + 1, 0
            middle = (line + 0.5) * LINE
            letters = column + len(text) - len(text.lstrip()) + len(text.strip()) / 2
            box = {"left": INSET + column * CHARACTER + 0.6, "top": middle - 10}
            column += len(text)
            box |= {"right": INSET + column * CHARACTER - 0.6, "bottom": middle + 10}
            pieces.append(row | box | {"text": text, "x": INSET + letters * CHARACTER, "y": middle})
            if part.endswith("\n"):
                line, column = line + 1, 0
    return pd.DataFrame(pieces)


def sheet(traces: Sequence[go.Scatter], size: Spot, title: str) -> go.Figure:
    """A figure of the traces without axes, y downwards; the margins are added around it."""
    (width, height), keyed = size, any(trace.showlegend for trace in traces)
    top = 20 + (28 if title else 0) + (28 if keyed else 0)
    hidden = {"visible": False, "fixedrange": True}
    axes = {"xaxis": {**hidden, "range": [0, width]}, "yaxis": {**hidden, "range": [height, 0]}}
    size = {"width": width + 48, "height": height + top + 24, "margin": {"t": top}}
    quiet = {"dragmode": False, "hovermode": "closest", "hoverdistance": 40, "showlegend": keyed}
    figure = go.Figure(list(traces), axes | size | quiet)
    return figure.update_layout(template=theme.SCREEN, title={"text": escape(title)})


def boxes_trace(boxes: Iterable[Box], colour: str, *, name: str = "") -> go.Scatter:
    """Boxes as one trace, filled with the colour's tint if it has a name."""
    fill = {"fill": "toself", "fillcolor": tint(colour)} if name else {}
    line = {"color": colour, "width": 1.3 if name else 3.2}
    corners = [
        [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)]
        for left, top, right, bottom in boxes
    ]
    return path_trace(corners, line, name=name).update(fill)


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
    font = {"size": size} | ({"family": theme.MONOSPACE, "color": DARK} if code else {})
    said = {"hovertext": list(hover), "hoverinfo": "text" if hover else "skip"}
    place = {"x": [x for x, _ in places], "y": [y for _, y in places], "showlegend": False}
    return go.Scatter(mode="text", text=list(texts), textfont=font, **place, **said)


def leaf_rows(parents: Sequence[int]) -> list[float]:
    """A row per node: leaves one below the other, siblings in the order of their numbers, a parent
    midway between its first child and its last.
    """
    children, rows, leaves, stack = children_of(parents), [0.0] * len(parents), 0, [0]
    while stack:
        if below := children[node := stack.pop()]:
            stack.extend(reversed(below))
        else:
            rows[node], leaves = float(leaves), leaves + 1
    for node in reversed(range(len(parents))):
        if below := children[node]:
            rows[node] = (rows[below[0]] + rows[below[-1]]) / 2
    return rows
