"""Pictures of one token tree: which node follows which, and which sees which."""

from collections.abc import Sequence

import plotly.graph_objects as go

from specdec_lib.core.tree import TokenTree
from specdec_lib.show.figures import pictures
from specdec_lib.show.figures.pictures import Box, leaf_rows
from specdec_lib.show.figures.theme import INK, MONOSPACE, SCREEN, SOURCES, escape, looks, visible

EMITTED = "target"  # the source of the correction or bonus token
SEES = {"itself": "#0072B2", "an ancestor": "#56B4E9", "hidden": "rgba(128,128,128,0.14)"}
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
    """The tree from left to right: a box per node in its source's colour, and on the edge that
    leads to it the score of its path.

    labels    the text of each node's token, root first
    path      accepted nodes, from below the root on; drawn with thick edges and outlines
    bonus     the text of the correction or bonus token: the path's end, in the target's colour and
              with a star; None where there is no verdict
    Raises ValueError unless there is one label per node and `path` follows the edges.
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
    boxes = _boxes(tree, labels)
    traces = [*_edges_and_boxes(tree, boxes, path), *_words(tree, boxes, labels, guesses)]
    if bonus is not None:
        star = {"symbol": "star", "size": 13, "color": SOURCES["target"]}
        spot = {"x": [boxes[-1][0] - 12], "y": [boxes[-1][1]], "mode": "markers", "marker": star}
        traces.append(go.Scatter(**spot, showlegend=False, hoverinfo="skip"))
    width = max(8 + max(box[2] for box in boxes), LETTER * len(title))
    return pictures.sheet(traces, (width, max(box[3] for box in boxes) + 8), title)


def _boxes(tree: TokenTree, labels: Sequence[str]) -> list[Box]:
    """The box of each node; a depth is as wide as its longest label."""
    sizes = [CHARACTER * len(visible(label, LABEL)) + 14 for label in labels]
    left = [4.0]
    for depth in range(max(tree.depths)):
        own = (size for size, at in zip(sizes, tree.depths, strict=True) if at == depth)
        left.append(left[-1] + max(own) + GAP)
    places = zip(tree.depths, leaf_rows(tree.parents), sizes, strict=True)
    spots = [(left[depth], 6 + ROW * row, size) for depth, row, size in places]
    return [(start, top, start + size, top + 2 * HALF_BOX) for start, top, size in spots]


def _edges_and_boxes(
    tree: TokenTree, boxes: Sequence[Box], path: Sequence[int]
) -> list[go.Scatter]:
    """An edge ends level before its box, so that a score can sit on its end."""
    edges = []
    for node, parent in enumerate(tree.parents):
        (_, _, start, bottom), (end, _, _, lower) = boxes[parent], boxes[node]
        y, level = bottom - HALF_BOX, lower - HALF_BOX
        edges.append([(start, y), (end - 38, level), (end, level)])
    others = [edges[node] for node in range(1, len(tree)) if node not in path]
    traces = [pictures.path_trace(others, pictures.THIN)]
    if path:
        accepted, thick = [edges[node] for node in path], pictures.THIN | {"width": 5.0}
        traces.append(pictures.path_trace(accepted, thick, name="accepted path"))
    for source, look in looks(tree.sources).items():
        own = [box for box, name in zip(boxes, tree.sources, strict=True) if name == source]
        traces.append(pictures.boxes_trace(own, look.colour, name=escape(source)))
    if path:
        traces.append(pictures.boxes_trace([boxes[node] for node in (0, *path)], INK))
    return traces


def _words(
    tree: TokenTree, boxes: Sequence[Box], labels: Sequence[str], guesses: int
) -> list[go.Scatter]:
    """The labels in the boxes, and the scores of the first `guesses` nodes before them."""
    hover = []
    for node, label in enumerate(labels):
        place = f"at position {tree.position(node)}, depth {tree.depths[node]}"
        source, score = escape(tree.sources[node]), f"{tree.scores[node]:.3g}"
        said = f"token {tree.tokens[node]} {place}<br>guessed by {source}, score {score}"
        if tree.sources[node] == EMITTED:
            said = f"{place}<br>the target's own token: it was not guessed here"
        hover.append(f"{escape(visible(label))}<br>{said}")
    middles = [((left + right) / 2, bottom - HALF_BOX) for left, _, right, bottom in boxes]
    shown = [escape(visible(label, LABEL)) for label in labels]
    beside = [(left - 17, top + HALF_BOX - 9) for left, top, _, _ in boxes[1:guesses]]
    scores = [f"{score:.2f}" for score in tree.scores[1:guesses]]
    return [
        pictures.words_trace(middles, shown, hover=hover),
        pictures.words_trace(beside, scores, size=10.5, code=False),
    ]


def mask(tree: TokenTree, *, labels: Sequence[str], title: str = "") -> go.Figure:
    """The attention mask when the whole tree is read in one pass: the row's node sees the marked
    columns, and all of the context before the root. Without a title, it is how large the pass is.

    labels    the text of each node's token, root first
    Raises ValueError unless there is one label per node.
    """
    _check_labels(tree, labels)
    size, sees = len(tree), tree.ancestry().int().fill_diagonal_(2).tolist()
    shown = [escape(visible(label, LABEL)) for label in labels]
    names = [f"{label}  <b>{tree.position(node)}</b>" for node, label in enumerate(shown)]
    verbs = ("does not see", "sees", "sees")
    hover = [
        [f"{row} {verbs[seen]} {name}" for seen, name in zip(line, names, strict=True)]
        for row, line in zip(names, sees, strict=True)
    ]
    steps = enumerate(reversed(SEES.values()))
    scale = [[end / 3, colour] for step, colour in steps for end in (step, step + 1)]
    cells = {"z": sees, "zmin": 0, "zmax": 2, "colorscale": scale, "showscale": False}
    figure = go.Figure(go.Heatmap(**cells, xgap=2, ygap=2, text=hover, hoverinfo="text"))
    for name, colour in SEES.items():
        square = {"symbol": "square", "size": 12, "color": colour}
        figure.add_scatter(x=[None], y=[None], mode="markers", marker=square, name=name)
    cell = 22 if size > 12 else 28
    title = {"text": escape(title or f"{size} rows in one pass of the target")}
    around = {"width": max(440, cell * size + 190), "height": cell * size + 224}
    figure.update_layout(around, template=SCREEN, title=title, margin={"t": 80}, legend={"y": 1.01})
    ticks = {"tickvals": list(range(size)), "ticktext": names, "showgrid": False}
    ticks |= {"tickfont": {"family": MONOSPACE, "size": 11}, "constrain": "domain"}
    seen, looking = "node that is seen, with its position", "node that looks"
    figure.update_xaxes(**ticks, tickangle=-90, title=seen, range=[-0.5, size - 0.5])
    return figure.update_yaxes(**ticks, scaleanchor="x", title=looking, range=[size - 0.5, -0.5])


def _check_labels(tree: TokenTree, labels: Sequence[str]) -> None:
    if len(labels) != len(tree):
        raise ValueError(f"{len(tree)} nodes, root first, need as many labels, got {len(labels)}")
