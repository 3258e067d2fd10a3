"""Pictures of trees and texts on a sheet, on which one unit is one pixel."""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.colors import sample_colorscale

from specdec_lib.core.tree.shape import children_of
from specdec_lib.show.figures import theme
from specdec_lib.show.figures.chart import check, named_rows
from specdec_lib.show.figures.theme import DARK, GAIN, INK, escape, looks, tint, visible, wrap

Spot = tuple[float, float]
THIN = {"color": INK, "width": 1.3}
SHADES = [[0, "#F4F9FC"], [1, GAIN]]
DEEP = 0.55  # of the shades, from which on white is easier to read
# pixels
STEP = 44.0
LEAF = 28.0
NODE = 25.0
LEVEL = 18.0  # left of a node, where the edge to it bends
HEAD = 44.0
APART = 28.0
PAGE = 900.0  # pixels that a line of shapes may fill
# pixels
CHARACTER = 8.2
LINE = 26.0
COLUMNS = 92  # characters before a line is broken
INSET = 8.0  # pixels left of the text
SURVIVAL_BINS = 5  # shades of a text by how likely a guess survives
# pixels, of the tokens of one proposal
WIDE_BOX = 40.0
BETWEEN_BOXES = 10.0
HEADLINE_LETTER = 8.4
# pixels of a legend's entry: its key, and a letter of its name
KEY = 40.0
LETTER = 6.6
LOST = "✗"  # the verdict from which on tokens do not count


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
        for row in named_rows(own[own["node"] > 0]):  # level before its node, clear of the others
            end = spots[row.node]
            edges.append([spots[row.parent], (end[0] - LEVEL, end[1]), end])
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
    table = table.assign(text=numbers.replace({".00": "<.01", "1.00": "1"}), hover=said)
    ink = ["#FFFFFF" if shade > DEEP else DARK for shade in shades]
    sizes = [9 if text.startswith("<") else 10.5 for text in table["text"]]
    look = {"mode": "markers+text", "marker": marker, "textfont": {"color": ink, "size": sizes}}
    return words_trace(table, 10.5).update(look)


def origins(table: pd.DataFrame, *, title: str = "") -> go.Figure:
    """The emitted text, a token after the other, in boxes coloured by who guessed each; a bar marks
    where a round starts, the legend says each source's share.

    table    a row per token, in the order of the text: `token` (its text), `source` (who guessed
             it; "target" for its own) and `round` (any number that changes where a round begins)
    title    without one, it is how many tokens a round has
    """
    check(table, "", "token source round")
    pieces = text_pieces(table)
    traces = []
    for source, look in looks(table["source"]).items():
        count = int((table["source"] == source).sum())
        share = f"{escape(source)} {count / len(table):.0%} ({count})"
        boxes = boxes_trace(pieces[pieces["source"] == source], look.colour, name=share)
        traces.append(boxes.update(line={"width": 0}))  # outlines of neighbours would overlap
    first = pieces[pieces["round"] != pieces["round"].shift()]
    bars = zip(first["left"] - 0.6, first["top"] - 1, first["bottom"] + 1, strict=True)
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


def text_pieces(table: pd.DataFrame) -> pd.DataFrame:
    """The tokens in pieces of one line each, with box and middle. A newline is shown, and so are
    spaces that are all of a piece.
    """
    pieces: list[dict[Any, Any]] = []
    line = column = 0
    for row in table.to_dict("records"):
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


def shaded_text(table: pd.DataFrame, *, title: str) -> go.Figure:
    """A text, a token after the other, each in a box that is the darker the likelier a guess
    is accepted there; what a copy from the text before would guess is underlined.

    table    a row per token, in the order of the text: `token` (its text), `chance` (that a guess
             is accepted there, 0 to 1) and `copied` (whether a copy guessed it)
    """
    check(table, "", "token chance copied")
    pieces = text_pieces(table)
    shade = np.minimum((pieces["chance"] * SURVIVAL_BINS).astype(int), SURVIVAL_BINS - 1)
    colours = sample_colorscale([[0, "#EEF5FA"], [1, "#5BA6D1"]], SURVIVAL_BINS)
    traces = []
    for number, colour in enumerate(colours):
        low, high = number / SURVIVAL_BINS, (number + 1) / SURVIVAL_BINS
        boxes = boxes_trace(pieces[shade == number], INK, name=f"{low:.1f} to {high:.1f}")
        traces.append(boxes.update(fillcolor=colour, line={"width": 0.5}))
    copied = pieces[pieces["copied"].astype(bool)]
    lines = zip(copied["left"], copied["right"], copied["bottom"], strict=True)
    under = [[(left + 2, low + 2), (right - 2, low + 2)] for left, right, low in lines]
    line = {"color": theme.SOURCES["prompt"], "width": 3}
    traces.append(path_trace(under, line, name="a copy would guess it"))
    said = "{token}<br>a guess is accepted with probability {chance:.2f}"
    named = pieces.assign(token=pieces["token"].map(str).map(visible).map(escape))
    pieces["hover"] = [said.format_map(row) for row in named.to_dict("records")]
    traces.append(words_trace(pieces.assign(text=pieces["text"].str.strip().map(escape))))
    size = max(640.0, pieces["right"].max() + INSET), pieces["bottom"].max() + 9
    return sheet(traces, size, title)


def cascade(tokens: pd.DataFrame, brackets: pd.DataFrame, *, title: str) -> go.Figure:
    """One proposal of a cascade: its tokens in boxes, coloured by who guessed each, with the
    target's verdict above, and below them a bracket per part: who handed it up, by which entry
    of K. Boxes from the first "✗" on are hollow: they do not count.

    tokens      a row per token, in order: `token` (its text), `source` (who guessed it) and
                `verdict` (what stands above it)
    brackets    a row per bracket: `first` and `last` (the tokens that it spans, from 0), `level`
                (0: what the target is handed, 1: what its reviewer is handed, …) and `said` (its
                words)
    """
    check(tokens, "", "token source verdict")
    check(brackets, "", "first last level said")
    shown = [visible(str(one)) for one in tokens["token"]]
    wide = np.array([max(WIDE_BOX, CHARACTER * len(one) + 14) for one in shown])
    left = INSET + np.cumsum(wide + BETWEEN_BOXES) - wide - BETWEEN_BOXES
    own = tokens.assign(left=left, right=left + wide, top=LINE, bottom=2 * LINE, y=1.5 * LINE)
    own = own.assign(x=left + wide / 2, text=[*map(escape, shown)])
    own["counts"] = np.logical_and.accumulate(own["verdict"] != LOST)
    traces = []
    for source, look in looks(own["source"]).items():
        some = own[own["source"] == source]
        traces.append(boxes_trace(some[some["counts"]], look.colour, name=escape(source)))
        lost = boxes_trace(some[~some["counts"]], look.colour)
        traces.append(lost.update(line={"width": 1.3, "dash": "dot"}))
    over = own.assign(text=own["verdict"].map(escape), y=LINE / 2)
    traces += [words_trace(own), words_trace(over, 13)]
    ends = own.reset_index(drop=True)
    paths = []
    words = []
    for one in named_rows(brackets):
        start, stop = ends["left"][one.first], ends["right"][one.last]
        height = 2 * LINE + 14 + 46 * one.level
        paths.append([(start, height - 8), (start, height), (stop, height), (stop, height - 8)])
        text = wrap(one.said, max(12, int((stop - start) / 6.4)))
        lines = text.count("<br>") + 1
        words.append({"x": (start + stop) / 2, "y": height + 8 * lines + 2, "text": text})
    traces += [path_trace(paths, {"color": INK, "width": 2}), words_trace(pd.DataFrame(words), 12)]
    wide = max(HEADLINE_LETTER * len(title), float(own["right"].max()) + INSET)
    size = wide, max(one["y"] for one in words) + LINE / 2
    return sheet(traces, size, title)


def sheet(traces: Sequence[go.Scatter], size: Spot, title: str) -> go.Figure:
    """A figure of the traces without axes, y downwards; the margins are added around it."""
    width, height = size
    keyed = any(trace.showlegend for trace in traces)
    top = 20 + (28 if title else 0) + 28 * _legend_rows(traces, width)
    hidden = {"visible": False, "fixedrange": True}
    axes = {"xaxis": {**hidden, "range": [0, width]}, "yaxis": {**hidden, "range": [height, 0]}}
    around = {"width": width + 48, "height": height + top + 24, "margin": {"t": top}}
    quiet = {"dragmode": False, "hovermode": "closest", "hoverdistance": 40, "showlegend": keyed}
    figure = go.Figure(list(traces), {**axes, **around, **quiet})
    return figure.update_layout(template=theme.SCREEN, title={"text": escape(title)})


def _legend_rows(traces: Sequence[go.Scatter], width: float) -> int:
    """How many rows plotly breaks the legend into: columns as wide as the longest entry."""
    entries = [KEY + LETTER * len(str(trace.name)) for trace in traces if trace.showlegend]
    if sum(entries) <= width:
        return min(1, len(entries))
    return math.ceil(len(entries) / max(1, int(width / max(entries))))


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
