"""Trees without their tokens: where the guesses of a budget go, how likely each is to be reached,
and what they gain.

The shade of a node, and the number in it, is the probability that the target takes the whole path
down to it.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.core.tree import Shape
from specdec_lib.show.figures.marks import Look, check, check_once, groups, looks
from specdec_lib.show.figures.theme import DARK, INK, SCREEN, SOURCES, canvas, escaped
from specdec_lib.theory import Rates, expected_tokens

STEP, ROW, NODE, HEAD, GAP = (
    44.0,
    28.0,
    25.0,
    44.0,
    28.0,
)  # pixels: a depth, a leaf, a node, the room for a name, between two shapes
CHARACTER = 7.6  # pixels of a name
PAGE = 900.0  # pixels that a line of shapes may fill
SHADES = [[0, "#F4F9FC"], [1, SOURCES["draft"]]]
DEEP = 0.55  # of the shades, from which on white is easier to read


class _Panel(NamedTuple):
    """One shape and where it stands: the left and upper end of its name."""

    name: str
    shape: Shape
    probabilities: list[float]
    left: float
    top: float


def slots(shapes: Mapping[str, Shape], rates: Rates) -> pd.DataFrame:
    """A row per node of each shape, for `shapes`: shape (its name), node, parent, depth, rank, and
    the probability of the path down to it.

    rates    by depth and rank, as `theory.expected_tokens` takes them; the probabilities of a shape
             add up to what that returns

    Raises ValueError if there is no shape or the rates are not as `theory.Rates` says.
    """
    if not shapes:
        raise ValueError("slots needs at least one shape, got none")
    vectors = [list(vector) for vector in rates]
    rows = []
    for name, shape in shapes.items():
        expected_tokens(shape, vectors)  # raises where the rates are wrong
        paths: list[float] = []
        for node, (parent, depth, rank) in enumerate(
            zip(shape.parents, shape.depths, shape.ranks, strict=True)
        ):
            vector = vectors[min(depth, len(vectors)) - 1]
            rate = vector[rank] if rank < len(vector) else 0.0
            paths.append(float(paths[parent] * rate) if node else 1.0)
            rows.append(
                {
                    "shape": name,
                    "node": node,
                    "parent": parent,
                    "depth": depth,
                    "rank": rank,
                    "probability": paths[-1],
                }
            )
    return pd.DataFrame(rows)


def shapes(table: pd.DataFrame, *, title: str = "") -> go.Figure:
    """Shapes from left to right, each under its name and its expected tokens per round; as many
    beside each other as a page is wide.

    table    a row per node: `shape` (its name), `node` (from 0, the root), `parent`, `probability`
             (of the path down to it), as `slots` makes it

    Raises ValueError if the table lacks a column or a row, has a node twice, or a shape's nodes are
    not those of a tree.
    """
    check(table, ("shape", "node", "parent", "probability"))
    check_once(table, ("shape", "node"))
    panels, width, height = _laid_out(table)
    figure = go.Figure()
    figure.add_trace(_edges(panels))
    figure.add_trace(_nodes(panels))
    figure.add_scatter(
        x=[panel.left for panel in panels],
        y=[panel.top + 10 for panel in panels],
        mode="text",
        text=[_headline(panel) for panel in panels],
        textposition="middle right",
        textfont={"size": 14},
        hoverinfo="skip",
    )
    top = 52 if title else 24
    return canvas(figure, width, height, title).update_layout(
        showlegend=False, height=height + top + 24, margin={"t": top}
    )


def speed_ups(table: pd.DataFrame) -> go.Figure:
    """Speed-up against the budget, a line per deepest guess allowed; a star marks the best of all,
    a dotted line plain decoding.

    table    a row per point: `budget` (nodes without the root), `depth` (the deepest guess
             allowed), `speed_up`

    Raises ValueError if the table lacks a column or a row, has a point twice, or a budget is below
    1.
    """
    check(table, ("budget", "depth", "speed_up"))
    check_once(table, ("budget", "depth"))
    if table["budget"].min() < 1:
        raise ValueError(f"a budget is at least 1 node, got {table['budget'].min()}")
    rows = table.sort_values(["depth", "budget"]).assign(
        series=lambda sorted_rows: sorted_rows["depth"].map("depth ≤ {}".format)
    )
    figure = go.Figure()
    for name, look in looks(rows["series"]).items():
        own = rows[rows["series"] == name]
        hover = "budget %{x}: %{y:.2f} times as fast<extra>%{fullData.name}</extra>"
        figure.add_scatter(
            x=own["budget"],
            y=own["speed_up"],
            mode="lines",
            line=look.line,
            name=name,
            hovertemplate=hover,
        )
    figure.add_trace(_star(rows.loc[rows["speed_up"].idxmax()]))
    figure.add_hline(y=1, line={"dash": "dot", "width": 1.5, "color": INK}, layer="below")
    figure.add_annotation(
        x=1,
        xref="paper",
        y=1,
        text="plain decoding",
        showarrow=False,
        xanchor="right",
        yanchor="bottom",
    )
    least, most = rows["budget"].min(), rows["budget"].max()
    ticks = [2**power for power in range(64) if least <= 2**power <= most]
    figure.update_layout(template=SCREEN, width=760, height=460, margin={"t": 56})
    figure.update_xaxes(
        title="budget, in nodes without the root",
        type="log",
        tickvals=ticks,
        ticktext=[f"{tick}" for tick in ticks],
    )
    figure.update_xaxes(range=[math.log10(least) - 0.04, math.log10(most) + 0.04])
    figure.update_yaxes(title="speed-up over plain decoding")
    return figure


def _star(best: pd.Series) -> go.Scatter:
    look = Look(INK, "solid", "star")
    return go.Scatter(
        x=[best["budget"]],
        y=[best["speed_up"]],
        mode="markers+text",
        marker=look.marker(15),
        text=[f"{best['speed_up']:.2f} with {best['budget']} guesses, {best['series']}"],
        textposition="top center",
        name="the best",
        hoverinfo="skip",
    )


def _headline(panel: _Panel) -> str:
    return f"<b>{escaped(panel.name)}</b>  {math.fsum(panel.probabilities):.2f} tokens"


def _laid_out(table: pd.DataFrame) -> tuple[list[_Panel], float, float]:
    """The shapes in their places, and the size of the sheet: a shape that does not fit beside the
    last one starts a new line.
    """
    panels: list[_Panel] = []
    left, top, below, right = 4.0, 4.0, 0.0, 0.0
    for name, rows in groups(table, "shape", along="node"):
        if rows["node"].tolist() != list(range(len(rows))):
            raise ValueError(
                f"nodes count from 0, the root, without a gap; {name} has {rows['node'].tolist()}"
            )
        panel = _Panel(
            name, Shape(tuple(rows["parent"].tolist())), rows["probability"].tolist(), left, top
        )
        words = CHARACTER * (len(name) + len("  2.00 tokens"))
        wide, high = (
            max(words, STEP * (panel.shape.depth + 1)),
            HEAD + ROW * max(1, panel.shape.leaves),
        )
        if panels and left + wide > PAGE:
            left, top, below = 4.0, top + below + GAP, 0.0
            panel = panel._replace(left=left, top=top)
        panels.append(panel)
        left, below, right = left + wide + GAP, max(below, high), max(right, left + wide)
    return panels, right + 4, top + below + 4


def _rows(shape: Shape) -> list[float]:
    """A row per node: leaves one below the other, a parent midway between its first child and its
    last.
    """
    places: list[tuple[int, ...]] = [()]
    for parent, rank in zip(shape.parents[1:], shape.ranks[1:], strict=True):
        places.append((*places[parent], rank))
    inner = set(shape.parents)
    leaves = sorted(
        (node for node in range(len(shape)) if node not in inner), key=places.__getitem__
    )
    rows = {node: float(row) for row, node in enumerate(leaves)}
    for node in reversed(range(len(shape))):
        if node in inner:
            below = [
                rows[child] for child in range(node + 1, len(shape)) if shape.parents[child] == node
            ]
            rows[node] = (min(below) + max(below)) / 2
    return [rows[node] for node in range(len(shape))]


def _places(panel: _Panel) -> list[tuple[float, float]]:
    """The middle of each node, in pixels."""
    down, across = panel.top + HEAD, panel.left + NODE / 2
    return [
        (across + STEP * depth, down + ROW * row)
        for depth, row in zip(panel.shape.depths, _rows(panel.shape), strict=True)
    ]


def _edges(panels: Sequence[_Panel]) -> go.Scatter:
    xs: list[float | None] = []
    ys: list[float | None] = []
    for panel in panels:
        places = _places(panel)
        for node, parent in enumerate(panel.shape.parents[1:], 1):
            xs += [places[parent][0], places[node][0], None]
            ys += [places[parent][1], places[node][1], None]
    return go.Scatter(x=xs, y=ys, mode="lines", line={"color": INK, "width": 1.3}, hoverinfo="skip")


def _nodes(panels: Sequence[_Panel]) -> go.Scatter:
    places = [place for panel in panels for place in _places(panel)]
    probabilities = [probability for panel in panels for probability in panel.probabilities]
    shades = [math.sqrt(probability) for probability in probabilities]  # small ones differ too
    hover = [
        f"{escaped(panel.name)}: depth {depth}, rank {rank}<br>taken with probability"
        f" {probability:.3g}"
        for panel in panels
        for depth, rank, probability in zip(
            panel.shape.depths, panel.shape.ranks, panel.probabilities, strict=True
        )
    ]
    rim = {"color": SOURCES["draft"], "width": 1.2}
    return go.Scatter(
        x=[x for x, _ in places],
        y=[y for _, y in places],
        mode="markers+text",
        marker={
            "size": NODE,
            "color": shades,
            "colorscale": SHADES,
            "cmin": 0,
            "cmax": 1,
            "line": rim,
            "opacity": 1,
        },
        text=[_number(probability) for probability in probabilities],
        textfont={"size": 10.5, "color": ["#FFFFFF" if shade > DEEP else DARK for shade in shades]},
        hovertext=hover,
        hoverinfo="text",
    )


def _number(probability: float) -> str:
    """Two digits without the leading 0."""
    return (
        "1"
        if probability > 0.995
        else f"{probability:.2f}".removeprefix("0")
        if probability >= 0.005
        else "0"
    )
