"""Pictures of one token tree: who follows whom, and who sees whom."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import plotly.graph_objects as go

from specdec_lib.core.tree import NO_PARENT, TokenTree
from specdec_lib.show.figures.theme import (
    DARK,
    INK,
    MONOSPACE,
    SCREEN,
    SOURCES,
    canvas,
    colours,
    escaped,
    outlines,
    tint,
    visible,
)

EMITTED = "target"  # the correction or bonus token
ITSELF, ANCESTOR, HIDDEN = "#0072B2", "#56B4E9", "rgba(128,128,128,0.14)"
LABEL = 12  # characters
CHARACTER, HALF_BOX, ROW, GAP = 8.0, 11.0, 31.0, 78.0  # pixels
LETTER = 8.4  # pixels of a title's


def tree(
    tree: TokenTree,
    *,
    labels: Sequence[str],
    path: Sequence[int] = (),
    bonus: str | None = None,
    title: str = "",
) -> go.Figure:
    """The tree drawn from left to right: a box per node in its source's colour, its score on the
    edge that leads to it.

    labels    the text of each node's token, root first
    path      accepted nodes, from below the root on; drawn with thick edges and outlines
    bonus     the text of the correction or bonus token: the path's end, in the target's colour and
              with a star; None where there is no verdict

    Raises ValueError unless there is one label per node and `path` starts below the root and
    follows the edges.
    """
    _check_labels(tree, labels)
    for parent, node in zip((0, *path), path, strict=False):
        if not 0 < node < len(tree) or tree.parents[node] != parent:
            raise ValueError(f"a path follows the tree's edges from the root on, got {tuple(path)}")
    guesses = len(tree)
    if bonus is not None:
        last = path[-1] if path else 0
        tree = tree.grown([0], [last], source=EMITTED, scores=[tree.scores[last]])
        labels, path = (*labels, bonus), (*path, guesses)
    shown = [visible(label, LABEL) for label in labels]
    boxes = _boxes(tree, shown)
    figure = go.Figure()
    followed = set(path)
    figure.add_trace(
        _edges(
            tree,
            boxes,
            [node for node in range(1, len(tree)) if node not in followed],
            width=1.3,
            name="",
        )
    )
    if path:
        figure.add_trace(_edges(tree, boxes, path, width=5.0, name="accepted path"))
    for source, colour in colours(tree.sources).items():
        nodes = [node for node in range(len(tree)) if tree.sources[node] == source]
        fill = {
            "fill": "toself",
            "fillcolor": tint(colour),
            "line": {"color": colour, "width": 1.3, "simplify": False},
        }
        figure.add_scatter(
            **outlines([boxes[node] for node in nodes]),
            mode="lines",
            name=escaped(source),
            hoverinfo="skip",
            **fill,
        )
    if path:
        thick = {"color": INK, "width": 3.2, "simplify": False}
        figure.add_scatter(
            **outlines([boxes[node] for node in (0, *path)]),
            mode="lines",
            line=thick,
            showlegend=False,
            hoverinfo="skip",
        )
    figure.add_trace(_words(tree, boxes, shown, labels))
    figure.add_trace(_scores(tree, boxes, guesses))
    if bonus is not None:
        left, top, _, _ = boxes[-1]
        star = {"symbol": "star", "size": 13, "color": SOURCES["target"]}
        figure.add_scatter(
            x=[left - 12], y=[top], mode="markers", marker=star, showlegend=False, hoverinfo="skip"
        )
    return canvas(
        figure,
        max(8 + max(box[2] for box in boxes), LETTER * len(title)),
        max(box[3] for box in boxes) + 8,
        title,
    )


def mask(tree: TokenTree, *, labels: Sequence[str], title: str = "") -> go.Figure:
    """Who sees whom when the whole tree is read in one pass: the row's node sees the marked
    columns, and all of the context before the root.

    labels    the text of each node's token, root first
    title     what to say above it; without it, how large the pass is

    Raises ValueError unless there is one label per node.
    """
    _check_labels(tree, labels)
    size = len(tree)
    sees = tree.ancestry().int().tolist()
    sees = [
        [2 if row == column else seen for column, seen in enumerate(line)]
        for row, line in enumerate(sees)
    ]
    names = [
        f"{escaped(visible(label, LABEL))}  <b>{tree.position(node)}</b>"
        for node, label in enumerate(labels)
    ]
    words = ("does not see", "sees", "sees")
    hover = [
        [f"{names[row]} {words[seen]} {names[column]}" for column, seen in enumerate(line)]
        for row, line in enumerate(sees)
    ]
    steps = zip((0, 1 / 3, 2 / 3), (1 / 3, 2 / 3, 1), (HIDDEN, ANCESTOR, ITSELF), strict=True)
    scale = [[end, colour] for low, high, colour in steps for end in (low, high)]
    figure = go.Figure(
        go.Heatmap(
            z=sees,
            zmin=0,
            zmax=2,
            colorscale=scale,
            showscale=False,
            xgap=2,
            ygap=2,
            text=hover,
            hoverinfo="text",
        )
    )
    for name, colour in (("itself", ITSELF), ("an ancestor", ANCESTOR), ("hidden", HIDDEN)):
        figure.add_scatter(
            x=[None],
            y=[None],
            mode="markers",
            marker={"symbol": "square", "size": 12, "color": colour},
            name=name,
        )
    cell = 22 if size > 12 else 28
    ticks = {
        "tickvals": list(range(size)),
        "ticktext": names,
        "tickfont": {"family": MONOSPACE, "size": 11},
    }
    ticks |= {"showgrid": False, "constrain": "domain"}
    said = title or f"{size} rows in one pass of the target"
    look = {
        "width": max(440, cell * size + 190),
        "height": cell * size + 224,
        "margin": {"t": 80},
        "legend": {"y": 1.01},
    }
    figure.update_layout(template=SCREEN, title={"text": escaped(said)}, **look)
    figure.update_xaxes(
        **ticks,
        side="bottom",
        tickangle=-90,
        title="node that is seen, with its position",
        range=[-0.5, size - 0.5],
    )
    figure.update_yaxes(**ticks, scaleanchor="x", title="node that looks", range=[size - 0.5, -0.5])
    return figure


def _check_labels(tree: TokenTree, labels: Sequence[str]) -> None:
    if len(labels) != len(tree):
        raise ValueError(
            f"{len(tree)} nodes, the root among them, need as many labels, got {len(labels)}"
        )


def _rows(tree: TokenTree) -> list[float]:
    """A row per node: leaves one below the other in drawing order, a parent midway between its
    first child and its last.
    """
    rows = [0.0] * len(tree)
    leaves = 0.0
    order, stack = [], [0]
    while stack:
        order.append(stack.pop())
        stack.extend(reversed(tree.children(order[-1])))
    for node in order:
        if not tree.children(node):
            rows[node] = leaves
            leaves += 1
    for node in reversed(order):
        if children := tree.children(node):
            rows[node] = (rows[children[0]] + rows[children[-1]]) / 2
    return rows


def _boxes(tree: TokenTree, shown: Sequence[str]) -> list[tuple[float, float, float, float]]:
    """Left, top, right and bottom of each node's box; a depth is as wide as its longest label."""
    left = [4.0]
    for depth in range(max(tree.depths)):
        widest = max(len(shown[node]) for node in range(len(tree)) if tree.depths[node] == depth)
        left.append(left[-1] + CHARACTER * widest + 14 + GAP)
    boxes = []
    for row, depth, text in zip(_rows(tree), tree.depths, shown, strict=True):
        middle = HALF_BOX + 6 + ROW * row
        boxes.append(
            (
                left[depth],
                middle - HALF_BOX,
                left[depth] + CHARACTER * len(text) + 14,
                middle + HALF_BOX,
            )
        )
    return boxes


def _curve(start: tuple[float, float], end: tuple[float, float]) -> Iterator[tuple[float, float]]:
    """From one box's right side to another's left: an S that ends level, so that a score can sit on
    its end.
    """
    level = end[0] - 30
    for at in range(25):
        share = at / 24
        yield (
            start[0] + (level - start[0]) * share,
            start[1] + (end[1] - start[1]) * share * share * (3 - 2 * share),
        )
    yield end


def _edges(
    tree: TokenTree,
    boxes: Sequence[tuple[float, float, float, float]],
    nodes: Sequence[int],
    *,
    width: float,
    name: str,
) -> go.Scatter:
    xs: list[float] = []
    ys: list[float] = []
    for node in nodes:
        if (parent := tree.parents[node]) == NO_PARENT:
            continue
        _, top, right, bottom = boxes[parent]
        for x, y in _curve(
            (right, (top + bottom) / 2), (boxes[node][0], (boxes[node][1] + boxes[node][3]) / 2)
        ):
            xs.append(x)
            ys.append(y)
        xs.append(math.nan)
        ys.append(math.nan)
    return go.Scatter(
        x=np.round(xs, 1),
        y=np.round(ys, 1),
        mode="lines",
        line={"color": INK, "width": width, "simplify": False},
        name=name,
        showlegend=bool(name),
        hoverinfo="skip",
    )


def _words(
    tree: TokenTree,
    boxes: Sequence[tuple[float, float, float, float]],
    shown: Sequence[str],
    labels: Sequence[str],
) -> go.Scatter:
    hover = [_told(tree, node, labels[node]) for node in range(len(tree))]
    return go.Scatter(
        x=[(box[0] + box[2]) / 2 for box in boxes],
        y=[(box[1] + box[3]) / 2 for box in boxes],
        mode="text",
        text=[escaped(text) for text in shown],
        textfont={"family": MONOSPACE, "size": 13, "color": DARK},
        hovertext=hover,
        hoverinfo="text",
        showlegend=False,
    )


def _told(tree: TokenTree, node: int, label: str) -> str:
    """What a pointer over a node says."""
    shown, place = (
        escaped(visible(label)),
        f"at position {tree.position(node)}, depth {tree.depths[node]}",
    )
    if tree.sources[node] == EMITTED:
        return f"{shown}<br>{place}<br>the target's own token: it was not guessed here"
    return f"{shown}<br>token {tree.tokens[node]} {place}<br>guessed by {escaped(tree.sources[node])}, score {tree.scores[node]:.3g}"


def _scores(
    tree: TokenTree, boxes: Sequence[tuple[float, float, float, float]], end: int
) -> go.Scatter:
    return go.Scatter(
        x=[box[0] - 17 for box in boxes[1:end]],
        y=[(box[1] + box[3]) / 2 - 9 for box in boxes[1:end]],
        mode="text",
        text=[f"{score:.2f}" for score in tree.scores[1:end]],
        textfont={"size": 10.5},
        hoverinfo="skip",
        showlegend=False,
    )
