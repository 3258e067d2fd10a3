"""Pictures of trees and texts on a sheet, on which one unit is one pixel."""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from specdec_lib.core.tree.shape import children_of
from specdec_lib.show.figures import theme
from specdec_lib.show.figures.chart import check, named_rows
from specdec_lib.show.figures.theme import DARK, GAIN, INK, escape, looks, tint, visible

Spot = tuple[float, float]
THIN = {"color": INK, "width": 1.3}
SHADES = [[0, "#F4F9FC"], [1, GAIN]]
DEEP = 0.55  # of the shades, from which on white is easier to read
# pixels
STEP = 44.0
LEAF = 28.0
NODE = 25.0
HEAD = 44.0
APART = 28.0
PAGE = 900.0  # pixels that a line of shapes may fill
# pixels
CHARACTER = 8.2
LINE = 26.0
COLUMNS = 92  # characters before a line is broken
INSET = 8.0  # pixels left of the text


def shapes(table: pd.DataFrame, *, title: str) -> go.Figure:
    """Shapes of trees, from left to right, each under its name and its expected tokens per round: a
    disc per node, darker the more likely its whole path is accepted, with that probability in it.

    table    as `tables.shape_nodes` gives it: a row per node with `shape` (the tree's name), `node`
             (from 0, the root), `parent`, `depth`, `rank` (among its siblings, from 0) and
             `probability` (that the path down to it is accepted, 0 to 1)
    """
    check(table, "shape node", "parent depth rank probability")
    heads = []
    edges = []
    found = []
    left = 4.0
    top = 4.0
    below = 0.0
    right = 0.0
    table = table.sort_values("node", kind="stable")
    for name, rows in table.groupby("shape", sort=False):
        wide = max(7.6 * len(f"{name}  2.00 tokens"), STEP * (rows["depth"].max() + 1))
        if heads and left + wide > PAGE:
            left = 4.0
            top = top + below + APART
            below = 0.0
        text = f"<b>{escape(name)}</b>  {rows['probability'].sum():.2f} tokens"
        heads.append({"x": left, "y": top + 10, "text": text})
        lines = np.array(leaf_rows(rows["parent"].tolist()))
        own = rows.assign(x=left + NODE / 2 + STEP * rows["depth"], y=top + HEAD + LEAF * lines)
        spots = [*zip(own["x"], own["y"], strict=True)]
        edges += [[spots[row.parent], spots[row.node]] for row in named_rows(own) if row.node]
        found.append(own)
        below = max(below, HEAD + LEAF * (lines.max() + 1))
        left, right = left + wide + APART, max(right, left + wide)
    words = words_trace(pd.DataFrame(heads), 14).update(textposition="middle right")
    traces = [path_trace(edges, THIN), _nodes(pd.concat(found)), words]
    return sheet(traces, (right + 4, top + below + 4), title)


def _nodes(table: pd.DataFrame) -> go.Scatter:
    shades = (table["probability"] ** 0.5).tolist()  # small ones differ too
    marker = {"size": NODE, "color": shades, "colorscale": SHADES, "cmin": 0, "cmax": 1}
    marker |= {"line": {"color": GAIN, "width": 1.2}, "opacity": 1}
    numbers = table["probability"].map("{:.2f}".format).str.removeprefix("0")
    hover = "{shape}: depth {depth}, rank {rank}<br>accepted with probability {probability:.3g}"
    named = table.assign(shape=table["shape"].map(escape)).to_dict("records")
    said = [hover.format_map(row) for row in named]
    table = table.assign(text=numbers.replace({".00": "0", "1.00": "1"}), hover=said)
    ink = ["#FFFFFF" if shade > DEEP else DARK for shade in shades]
    look = {"mode": "markers+text", "marker": marker, "textfont": {"color": ink}}
    return words_trace(table, 10.5).update(look)


def origins(table: pd.DataFrame, *, title: str = "") -> go.Figure:
    """The emitted text, a token after the other, in boxes coloured by who guessed each; a bar marks
    where a round starts, the legend says each source's share.

    table    a row per token, in the order of the text: `token` (its text), `source` (who guessed
             it; "target" for its own) and `round` (any number that changes where a round begins)
    title    without one, it is how many tokens a round has
    """
    check(table, "", "token source round")
    pieces = _lay_out(table)
    traces = []
    for source, look in looks(table["source"]).items():
        count = int((table["source"] == source).sum())
        share = f"{escape(source)} {count / len(table):.0%} ({count})"
        traces.append(boxes_trace(pieces[pieces["source"] == source], look.colour, name=share))
    first = pieces[pieces["round"] != pieces["round"].shift()]
    bars = zip(first["left"] - 0.6, first["top"] - 3, first["bottom"] + 3, strict=True)
    starts = [[(left, top), (left, bottom)] for left, top, bottom in bars]
    traces.append(path_trace(starts, {"color": INK, "width": 2.2}, name="start of a round"))
    pieces["hover"] = [
        f"{escape(visible(str(one.token)))}<br>{escape(one.source)}, round {one.round}"
        for one in pieces.itertuples()
    ]
    traces.append(words_trace(pieces.assign(text=pieces["text"].str.strip().map(escape))))
    width = max(640.0, pieces["right"].max() + INSET)
    height = pieces["bottom"].max() + 7
    count = table["round"].nunique()
    counts = f"{len(table)} tokens in {count} rounds: {len(table) / count:.2f} per round"
    return sheet(traces, (width, height), title or counts)


def _lay_out(table: pd.DataFrame) -> pd.DataFrame:
    """The tokens in pieces of one line each, with box and middle. A newline is shown, and so are
    spaces that are all of a piece.
    """
    pieces: list[dict[Any, Any]] = []
    line = column = 0
    for row in table[["token", "source", "round"]].to_dict("records"):
        for part in str(row["token"]).expandtabs(4).replace("\n", "⏎\n").splitlines(True) or [""]:
            shown = (mark if mark.isprintable() else "·" for mark in part.removesuffix("\n"))
            text = "".join(shown) or "∅"
            text = text if text.strip() else "␣" * len(text)
            if column and column + len(text) > COLUMNS:
                line = line + 1
                column = 0
            middle = (line + 0.5) * LINE
            letters = column + len(text) - len(text.lstrip()) + len(text.strip()) / 2
            box = {"left": INSET + column * CHARACTER + 0.6, "top": middle - 10}
            column += len(text)
            box |= {"right": INSET + column * CHARACTER - 0.6, "bottom": middle + 10}
            pieces.append(row | box | {"text": text, "x": INSET + letters * CHARACTER, "y": middle})
            if part.endswith("\n"):
                line = line + 1
                column = 0
    return pd.DataFrame(pieces)


def sheet(traces: Sequence[go.Scatter], size: Spot, title: str) -> go.Figure:
    """A figure of the traces without axes, y downwards; the margins are added around it."""
    width, height = size
    keyed = any(trace.showlegend for trace in traces)
    top = 20 + (28 if title else 0) + (28 if keyed else 0)
    hidden = {"visible": False, "fixedrange": True}
    axes = {"xaxis": {**hidden, "range": [0, width]}, "yaxis": {**hidden, "range": [height, 0]}}
    around = {"width": width + 48, "height": height + top + 24, "margin": {"t": top}}
    quiet = {"dragmode": False, "hovermode": "closest", "hoverdistance": 40, "showlegend": keyed}
    figure = go.Figure(list(traces), {**axes, **around, **quiet})
    return figure.update_layout(template=theme.SCREEN, title={"text": escape(title)})


def boxes_trace(boxes: pd.DataFrame, colour: str, *, name: str = "") -> go.Scatter:
    """Boxes, `left` to `right` and `top` to `bottom`, as one trace; with a name they are filled."""
    fill = {"fill": "toself", "fillcolor": tint(colour)} if name else {}
    line = {"color": colour, "width": 1.3 if name else 3.2}
    corners = [
        [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)]
        for left, top, right, bottom in boxes[["left", "top", "right", "bottom"]].to_numpy()
    ]
    return path_trace(corners, line, name=name).update(fill)


def path_trace(
    paths: Sequence[Sequence[Spot]], line: Mapping[str, Any], *, name: str = ""
) -> go.Scatter:
    """Several paths as one trace."""
    points = [point for path in paths for point in (*path, (math.nan, math.nan))]
    xs, ys = np.round(np.array(points, dtype=float).reshape(-1, 2).T, 1)
    look = {"mode": "lines", "line": {**line, "simplify": False}, "hoverinfo": "skip"}
    return go.Scatter(x=xs, y=ys, name=name, showlegend=bool(name), **look)


def words_trace(rows: pd.DataFrame, size: float = 0) -> go.Scatter:
    """Each `text`, its middle at `x` and `y`: of a size, or else tokens, dark and monospaced."""
    font = {"size": size} if size else {"size": 13, "family": theme.MONOSPACE, "color": DARK}
    hover = list(rows.get("hover", []))
    said = {"hovertext": hover, "hoverinfo": "text" if hover else "skip", "showlegend": False}
    place = {name: list(rows[name]) for name in ("x", "y", "text")}
    return go.Scatter(mode="text", **place, textfont=font, **said)


def leaf_rows(parents: Sequence[int]) -> list[float]:
    """A row per node: leaves below each other, a parent midway between first and last child."""
    children = children_of(parents)
    rows = [0.0] * len(parents)
    leaves = itertools.count()

    def place(node: int) -> float:
        below = [place(child) for child in children[node]]
        rows[node] = (below[0] + below[-1]) / 2 if below else float(next(leaves))
        return rows[node]

    place(0)
    return rows
