"""One token tree: tables of its nodes; pictures of which follows which, and which sees which."""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from jaxtyping import Float
from torch import Tensor

from specdec_lib.core.chance import Chance
from specdec_lib.core.trace import Choice
from specdec_lib.core.tree import TokenTree
from specdec_lib.core.verify import look_up
from specdec_lib.show.figures import pictures
from specdec_lib.show.figures.pictures import leaf_rows
from specdec_lib.show.figures.theme import INK, MONOSPACE, SCREEN, SOURCES, escape, looks, visible

EMITTED = "target"  # the source of the correction or bonus token
SEES = {"itself": "#0072B2", "an ancestor": "#56B4E9", "hidden": "rgba(128,128,128,0.14)"}
LABEL = 12  # characters
CHARACTER, HALF_BOX, ROW, GAP = 8.0, 11.0, 31.0, 78.0  # pixels
LETTER = 8.4  # pixels of a title's


def nodes(tree: TokenTree, *, labels: Sequence[str], path: Sequence[int] = ()) -> pd.DataFrame:
    """A row per node: its place, token, source and score, and whether it was accepted.

    labels    the text of each node's token, root first; ValueError unless there is one per node
    """
    if len(labels) != len(tree):
        raise ValueError(f"{len(tree)} nodes, root first, need as many labels, got {len(labels)}")
    places = {"parent": tree.parents, "depth": tree.depths}
    places["position"] = [tree.position(node) for node in range(len(tree))]
    guesses = {"token": labels, "source": tree.sources, "score": tree.scores}
    accepted = [node in path for node in range(len(tree))]
    return pd.DataFrame({"node": range(len(tree)), **places, **guesses, "accepted": accepted})


def walk(
    tree: TokenTree,
    target_logits: Float[Tensor, "nodes vocab"],
    chance: Chance,
    *,
    text: Callable[[int], str],
) -> pd.DataFrame:
    """A row per node `look_up` comes to: the target's choice there, and which child holds it."""
    choices: list[Choice] = []
    look_up(tree, target_logits, chance, trace=choices.append)
    rows = []
    for node, token, child in choices:
        children = tree.children(node)
        held = "none: emitted as correction or bonus" if child is None else children.index(child)
        probability = float(chance.sampler.probs(target_logits[node])[token])
        row = {"at": text(tree.tokens[node]), "position": tree.position(node) + 1}
        row |= {"target's choice": text(token), "probability": probability}
        rows.append(row | {"guesses": len(children), "child": held})
    return pd.DataFrame(rows)


def tree(
    tree: TokenTree,
    *,
    labels: Sequence[str],
    path: Sequence[int] = (),
    bonus: str | None = None,
    title: str = "",
) -> go.Figure:
    """The tree from left to right: a box per node, and on the edge to it the score of its path.

    labels, path    as of `nodes`; accepted nodes have thick edges and outlines
    bonus           the text of the correction or bonus token; None where there is no verdict
    """
    guesses, last = len(tree), path[-1] if path else 0
    if bonus is not None:
        tree = tree.grown([0], [last], source=EMITTED, scores=[tree.scores[last]])
        labels, path = (*labels, bonus), (*path, guesses)
    table = _with_boxes(nodes(tree, labels=labels, path=path))
    traces = [*_edges_and_boxes(table), *_words(table.assign(number=tree.tokens), guesses)]
    if bonus is not None:
        star = {"symbol": "star", "size": 13, "color": SOURCES["target"]}
        spot = {"x": [table["left"].iloc[-1] - 12], "y": [table["top"].iloc[-1]]}
        look = {"mode": "markers", "marker": star, "showlegend": False, "hoverinfo": "skip"}
        traces.append(go.Scatter(**spot, **look))
    width = max(8 + table["right"].max(), LETTER * len(title))
    return pictures.sheet(traces, (width, table["bottom"].max() + 8), title)


def _with_boxes(table: pd.DataFrame) -> pd.DataFrame:
    """The nodes with their boxes, in pixels; a depth is as wide as its longest label."""
    table["shown"] = [visible(label, LABEL) for label in table["token"]]
    size = CHARACTER * table["shown"].str.len() + 14
    widest = size.groupby(table["depth"]).max() + GAP
    left = table["depth"].map(4.0 + widest.cumsum() - widest)
    top = 6 + ROW * np.array(leaf_rows(table["parent"].tolist()))
    box = {"left": left, "top": top, "right": left + size, "bottom": top + 2 * HALF_BOX}
    return table.assign(**box, middle=top + HALF_BOX)


def _edges_and_boxes(table: pd.DataFrame) -> list[go.Scatter]:
    """An edge ends level before its box, so that a score can sit on its end."""
    below, thick = table[1:], pictures.THIN | {"width": 5.0}
    starts = table.loc[below["parent"], ["right", "middle"]].to_numpy()
    edges = [
        [tuple(start), (node.left - 38, node.middle), (node.left, node.middle)]
        for node, start in zip(below.itertuples(), starts, strict=True)
    ]
    edges = pd.Series(edges, below.index, dtype=object)
    traces = [pictures.path_trace(edges[~below["accepted"]], pictures.THIN)]
    if table["accepted"].any():
        accepted = edges[below["accepted"]]
        traces.append(pictures.path_trace(accepted, thick, name="accepted path"))
    for source, look in looks(table["source"]).items():
        own = table[table["source"] == source]
        traces.append(pictures.boxes_trace(own, look.colour, name=escape(source)))
    if table["accepted"].any():
        walked = table[table["accepted"] | (table["node"] == 0)]
        traces.append(pictures.boxes_trace(walked, INK))
    return traces


def _words(table: pd.DataFrame, guesses: int) -> list[go.Scatter]:
    """The labels in the boxes, and the scores of the first `guesses` nodes before them."""
    hover = []
    for node in table.itertuples():
        place, source = f"at position {node.position}, depth {node.depth}", escape(node.source)
        said = f"token {node.number} {place}<br>guessed by {source}, score {node.score:.3g}"
        if node.source == EMITTED:
            said = f"{place}<br>the target's own token: it was not guessed here"
        hover.append(f"{escape(visible(node.token))}<br>{said}")
    place = {"x": (table["left"] + table["right"]) / 2, "y": table["middle"]}
    labels = table.assign(**place, text=table["shown"].map(escape), hover=hover)
    place = {"x": table["left"] - 17, "y": table["middle"] - 9}
    scores = table.assign(**place, text=table["score"].map("{:.2f}".format))[1:guesses]
    return [pictures.words_trace(labels), pictures.words_trace(scores, 10.5)]


def mask(tree: TokenTree, *, labels: Sequence[str], title: str = "") -> go.Figure:
    """The attention mask of one pass: the row's node sees the marked columns, and the context
    before the root. Without a title, it is how large the pass is; `labels` are as of `nodes`.
    """
    size, sees = len(tree), tree.ancestry().int().fill_diagonal_(2).tolist()
    names = [
        f"{escape(visible(node.token, LABEL))}  <b>{node.position}</b>"
        for node in nodes(tree, labels=labels).itertuples()
    ]
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
