"""Pictures on a sheet, on which one unit is one pixel: trees without their tokens, and text whose
tokens show their source.
"""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from specdec_lib.core.decode import Generation
from specdec_lib.core.tree import Shape
from specdec_lib.core.tree.shape import children_of
from specdec_lib.show.figures import theme
from specdec_lib.show.figures.marks import check
from specdec_lib.show.figures.theme import DARK, GAIN, INK, escape, looks, tint, visible
from specdec_lib.theory import Rates
from specdec_lib.theory.trees import path_probabilities

Spot = tuple[float, float]
THIN = {"color": INK, "width": 1.3}
SHADES = [[0, "#F4F9FC"], [1, GAIN]]
DEEP = 0.55  # of the shades, from which on white is easier to read
STEP, LEAF, NODE, HEAD, APART = 44.0, 28.0, 25.0, 44.0, 28.0  # pixels
PAGE = 900.0  # pixels that a line of shapes may fill
CHARACTER, LINE = 8.2, 26.0  # pixels
COLUMNS = 92  # characters before a line is broken
INSET = 8.0  # pixels left of the text


def slots(shapes: Mapping[str, Shape], rates: Rates) -> pd.DataFrame:
    """A row per node of each shape, for `shapes`, with the probability of the path down to it,
    given the rates by depth and rank. Those of a shape add up to its `theory.expected_tokens`.
    """
    rows = []
    for name, shape in shapes.items():
        chances = path_probabilities(shape, rates)
        places = zip(shape.parents, shape.depths, shape.ranks, chances, strict=True)
        rows += [(name, node, *place) for node, place in enumerate(places)]
    columns = ["shape", "node", "parent", "depth", "rank", "probability"]
    return pd.DataFrame(rows, columns=columns)


def shapes(table: pd.DataFrame, *, title: str) -> go.Figure:
    """Each `shape` of a tree, as of `slots`, with its expected tokens per round; in a `node`, and
    as its shade, is the `probability` that its whole path is accepted.
    """
    check(table, "shape node", "parent depth rank probability")
    heads, edges, found = {}, [], []
    left, top, below, right = 4.0, 4.0, 0.0, 0.0
    table = table.sort_values("node", kind="stable")
    for name, rows in table.groupby("shape", sort=False):
        wide = max(7.6 * len(f"{name}  2.00 tokens"), STEP * (rows["depth"].max() + 1))
        if heads and left + wide > PAGE:
            left, top, below = 4.0, top + below + APART, 0.0
        heads[left, top + 10] = f"<b>{escape(name)}</b>  {rows['probability'].sum():.2f} tokens"
        lines = np.array(leaf_rows(rows["parent"].tolist()))
        own = rows.assign(x=left + NODE / 2 + STEP * rows["depth"], y=top + HEAD + LEAF * lines)
        spots = [*zip(own["x"], own["y"], strict=True)]
        edges += [[spots[row.parent], spots[row.node]] for row in own.itertuples() if row.node]
        found.append(own)
        below = max(below, HEAD + LEAF * (lines.max() + 1))
        left, right = left + wide + APART, max(right, left + wide)
    words = words_trace([*heads], [*heads.values()], size=14)
    words.update(textposition="middle right")
    traces = [path_trace(edges, THIN), _nodes(pd.concat(found)), words]
    return sheet(traces, (right + 4, top + below + 4), title)


def _nodes(table: pd.DataFrame) -> go.Scatter:
    shades = (table["probability"] ** 0.5).tolist()  # small ones differ too
    marker = {"size": NODE, "color": shades, "colorscale": SHADES, "cmin": 0, "cmax": 1}
    marker |= {"line": {"color": GAIN, "width": 1.2}, "opacity": 1}
    numbers = table["probability"].map("{:.2f}".format).str.removeprefix("0")
    numbers = numbers.replace({".00": "0", "1.00": "1"}).tolist()
    hover = [
        f"{escape(row.shape)}: depth {row.depth}, rank {row.rank}"
        f"<br>accepted with probability {row.probability:.3g}"
        for row in table.itertuples()
    ]
    places = [*zip(table["x"], table["y"], strict=True)]
    trace = words_trace(places, numbers, size=10.5, hover=hover)
    ink = ["#FFFFFF" if shade > DEEP else DARK for shade in shades]
    return trace.update(mode="markers+text", marker=marker, textfont={"color": ink})


def emitted_tokens(generation: Generation, *, text: Callable[[int], str]) -> pd.DataFrame:
    """A row per generated token: its text, who guessed it, and in which round."""
    rows = [
        (text(token), source, number)
        for number, played in enumerate(generation.rounds)
        for token, source in zip(played.emitted, played.sources, strict=True)
    ]
    return pd.DataFrame(rows, columns=["token", "source", "round"])


def origins(table: pd.DataFrame, *, title: str = "") -> go.Figure:
    """The emitted text in boxes coloured by each token's `source`; a bar marks where a `round`
    starts. Without a title, it is how many tokens a round has.
    """
    check(table, "", "token source round")
    pieces, traces = _lay_out(table), []
    for source, look in looks(table["source"]).items():
        count = int((table["source"] == source).sum())
        share = f"{escape(source)} {count / len(table):.0%} ({count})"
        traces.append(boxes_trace(pieces[pieces["source"] == source], look.colour, name=share))
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
    """The tokens in pieces of one line each, with box and middle. A newline is shown."""
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
    paths: Sequence[Sequence[Spot]], line: dict[str, object], *, name: str = ""
) -> go.Scatter:
    """Several paths as one trace."""
    points = [point for path in paths for point in (*path, (math.nan, math.nan))]
    xs, ys = np.round(np.array(points, dtype=float).reshape(-1, 2).T, 1)
    look = {"mode": "lines", "line": line | {"simplify": False}, "hoverinfo": "skip"}
    return go.Scatter(x=xs, y=ys, name=name, showlegend=bool(name), **look)


def words_trace(
    places: Sequence[Spot], texts: Sequence[str], *, size: float = 0, hover: Sequence[str] = ()
) -> go.Scatter:
    """Texts with their middles at these places: of a size, or else tokens, dark and monospaced."""
    tokens = {"size": 13, "family": theme.MONOSPACE, "color": DARK}
    font = {"size": size} if size else tokens
    said = {"hovertext": list(hover), "hoverinfo": "text" if hover else "skip"}
    place = {"x": [x for x, _ in places], "y": [y for _, y in places], "showlegend": False}
    return go.Scatter(mode="text", text=list(texts), textfont=font, **place, **said)


def leaf_rows(parents: Sequence[int]) -> list[float]:
    """A row per node: leaves below each other, a parent midway between first and last child."""
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
