"""One round in pictures: its tree of guesses, which node sees which, and what decides a step."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from specdec_lib.core.tree import TokenTree
from specdec_lib.show.figures import pictures
from specdec_lib.show.figures.chart import named_rows
from specdec_lib.show.figures.pictures import Spot, leaf_rows
from specdec_lib.show.figures.theme import INK, MONOSPACE, SCREEN, SOURCES, escape, looks, visible
from specdec_lib.show.tables import check_path, nodes

EMITTED = "target"  # the source of the correction or bonus token
FREE = "the target's own token"  # its name in the legend
SEES = {"itself": "#0072B2", "an ancestor": "#56B4E9", "hidden": "rgba(128,128,128,0.14)"}
LABEL = 12  # characters
# pixels
CHARACTER = 8.0
HALF_BOX = 11.0
ROW = 31.0
GAP = 78.0
LETTER = 8.4  # pixels of a title's
# pixels: of a step, of its candidate, of what is around
WIDTH = 760
LINE = 26
AROUND = 150
CHOSEN = SOURCES["target"]
GUESSED = SOURCES["draft"]
FONT = {"family": MONOSPACE, "size": 12}
NUMBER = {"symbol": "line-ns-open", "size": 17, "color": CHOSEN, "line_width": 3}
Picture = tuple[list[go.Bar | go.Scatter], list[str], dict[str, object]]


def tree(
    tree: TokenTree,
    *,
    labels: Sequence[str],
    path: Sequence[int] = (),
    bonus: str | None = None,
    title: str = "",
) -> go.Figure:
    """The tree of a round from left to right: a box per node in its source's colour, and on the
    edge to it the score of its path, as wide as the longest label of each depth asks.

    labels    the text of each node's token, root first
    path      accepted nodes, from below the root on; they have thick edges and outlines
    bonus     the text of the correction or bonus token, drawn at the path's end with a star; None
              where there is no verdict

    Raises ValueError unless there is one label per node and the path follows the edges.
    """
    check_path(tree, path)
    guesses = len(tree)
    last = path[-1] if path else 0
    if bonus is not None:
        tree = tree.grown([0], [last], source=EMITTED, scores=[tree.scores[last]])
        labels = (*labels, bonus)
        path = (*path, guesses)
    table = with_boxes(nodes(tree, labels=labels, path=path))
    traces = [*_edges_and_boxes(table), *_words(table.assign(number=tree.tokens), guesses)]
    if bonus is not None:
        star = {"symbol": "star", "size": 13, "color": SOURCES["target"]}
        spot = {"x": [table["left"].iloc[-1] - 12], "y": [table["top"].iloc[-1]]}
        look = {"mode": "markers", "marker": star, "showlegend": False, "hoverinfo": "skip"}
        traces.append(go.Scatter(**spot, **look))
    width = max(8 + table["right"].max(), LETTER * len(title))
    return pictures.sheet(traces, (width, table["bottom"].max() + 8), title)


def with_boxes(table: pd.DataFrame, *, left: float = 4.0) -> pd.DataFrame:
    """The nodes of a tree, each with a box in pixels; a depth is as wide as its longest label.

    table    a row per node, root first: `token` (its text), `depth` and `parent`
    left     of the root's box
    """
    table = table.assign(shown=[visible(label, LABEL) for label in table["token"]])
    size = CHARACTER * table["shown"].str.len() + 14
    widest = size.groupby(table["depth"]).max() + GAP
    starts = table["depth"].map(left + widest.cumsum() - widest)
    top = 6 + ROW * np.array(leaf_rows(table["parent"].tolist()))
    box = {"left": starts, "top": top, "right": starts + size, "bottom": top + 2 * HALF_BOX}
    return table.assign(**box, middle=top + HALF_BOX)


def _edges_and_boxes(table: pd.DataFrame) -> list[go.Scatter]:
    """An edge ends level before its box, so that a score can sit on its end."""
    paths: dict[bool, list[list[Spot]]] = {False: [], True: []}  # by whether the node is accepted
    for node in named_rows(table[1:]):
        parent = table.iloc[node.parent]
        end = [(node.left - 38, node.middle), (node.left, node.middle)]
        paths[node.accepted].append([(parent["right"], parent["middle"]), *end])
    traces = [pictures.path_trace(paths[False], pictures.THIN)]
    if paths[True]:
        thick = pictures.THIN | {"width": 5.0}
        traces.append(pictures.path_trace(paths[True], thick, name="accepted path"))
    for source, look in looks(table["source"]).items():
        own = table[table["source"] == source]
        called = FREE if source == EMITTED else source
        traces.append(pictures.boxes_trace(own, look.colour, name=escape(called)))
    if paths[True]:
        walked = table[table["accepted"] | (table["node"] == 0)]
        traces.append(pictures.boxes_trace(walked, INK))
    return traces


def _words(table: pd.DataFrame, guesses: int) -> list[go.Scatter]:
    """The labels in the boxes, and the scores of the first `guesses` nodes before them."""
    hover = []
    for node in named_rows(table):
        place = f"at position {node.position}, depth {node.depth}"
        source = escape(node.source)
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
    """The attention mask of one pass over a tree: the row's node sees the marked columns (itself
    and its ancestors), and the context before the root, which is not drawn.

    labels    the text of each node's token, root first
    title     without one, it is how large the pass is

    Raises ValueError unless there is one label per node.
    """
    size = len(tree)
    sees = tree.ancestry().int().fill_diagonal_(2).tolist()
    names = [
        f"{escape(visible(node.token, LABEL))}  <b>{node.position}</b>"
        for node in named_rows(nodes(tree, labels=labels))
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
    headline = {"text": escape(title or f"{size} rows in one pass of the target")}
    around = {"width": max(440, cell * size + 190), "height": cell * size + 224}
    figure.update_layout(
        around, template=SCREEN, title=headline, margin={"t": 80}, legend={"y": 1.01}
    )
    ticks = {"tickvals": list(range(size)), "ticktext": names, "showgrid": False}
    ticks |= {"tickfont": {"family": MONOSPACE, "size": 11}, "constrain": "domain"}
    seen = "node that is seen, with its position"
    looking = "node that looks"
    figure.update_xaxes(**ticks, tickangle=-90, title=seen, range=[-0.5, size - 0.5])
    return figure.update_yaxes(**ticks, scaleanchor="x", title=looking, range=[size - 0.5, -0.5])


def step(table: pd.DataFrame, *, title: str) -> go.Figure:
    """The candidates of one step of a round and the random number that decided between them.

    table    of a `show.steps.Step`: a row per candidate with its `text`, and the columns of one of
             these: `wanted`, `offered`, `left`, `probability`, `uniform`, `kept` (a coin: what the
             target wants and the draft offered before, what is left after it, and the number that
             falls below the probability of being kept, or not); `log_probability`, `noise`, `sum`
             (a choice, in nats; the largest sum wins); `low`, `high`, `uniform` (a draw: the
             token's part of [0, 1), and the number); or only `score` (of the path, 0 to 1, of a
             draft that tells no more). Where they are known, also `chosen`, `child` (its number,
             0 for none), `after` (the text before a guess) and `score`

    Raises ValueError if the table has no row, or the columns of none of these.
    """
    draw = _drawing_of(table)
    usual = {"chosen": False, "child": 0}
    table = pd.DataFrame(usual, table.index).assign(
        **{str(name): own for name, own in table.items()}
    )
    guessed = table["child"].astype(bool) | ("after" in table)
    table["colour"] = np.select([table["chosen"], guessed], [CHOSEN, GUESSED], INK)
    traces, words, axis = draw(table)
    names = ["the coin"] * (draw is _draw_coin) + [_name(row) for row in table.to_dict("records")]
    figure = go.Figure(traces)
    where = {"x": 0.66, "xref": "paper", "xanchor": "left", "yref": "y", "showarrow": False}
    for place, text in enumerate(words):
        figure.add_annotation(text=text, y=place, font=FONT, **where)
    size = {"width": WIDTH, "height": LINE * len(names) + AROUND, "margin": {"t": 84}}
    look = {"template": SCREEN, "barmode": "overlay", "dragmode": False}
    figure.update_layout(size, title={"text": escape(title)}, **look)
    ticks = {"tickvals": list(range(len(names))), "ticktext": names, "tickfont": FONT}
    look = {"range": [len(names) - 0.5, -0.5], "showgrid": False, "fixedrange": True}
    figure.update_yaxes(ticks | look, title="candidate")
    return figure.update_xaxes(axis, domain=[0, 0.64], fixedrange=True)


def _drawing_of(table: pd.DataFrame) -> Callable[[pd.DataFrame], Picture]:
    """The picture of one step that the table has the columns for."""
    for columns, draw in NEEDS.items():
        if len(table) and {"text", *columns.split()} <= set(table):
            return draw
    raise ValueError(
        "a step is drawn from a row per candidate with the columns text and one of"
        f" {list(NEEDS)}, got {len(table)} rows of {list(table)}"
    )


def _name(row: Mapping[Any, Any]) -> str:
    """A candidate in words: bold where chosen, with the number of the guess that holds it."""
    name = escape(visible(str(row["text"]), 16))
    after = f"{escape(visible(str(row['after']), 16))} → " if "after" in row else ""
    child = f"  child {row['child']}" if row["child"] else ""
    return f"{after}<b>{name}</b>{child}" if row["chosen"] else f"{after}{name}{child}"


def _dots(xs: pd.Series, name: str, **marker: object) -> go.Scatter:
    return go.Scatter(x=list(xs), y=[*range(len(xs))], mode="markers", marker=marker, name=name)


def _bars(xs: pd.Series, name: str, first: int = 0, **look: object) -> go.Bar:
    places = list(range(first, first + len(xs)))
    return go.Bar(x=list(xs), y=places, orientation="h", name=name).update(look)


def _draw_sums(table: pd.DataFrame) -> Picture:
    """From each log-probability, the noise leads to the sum; the largest sum wins."""
    starts = table["log_probability"]
    sums = table["sum"]
    won = table["chosen"]
    look = {"color": list(table["colour"])}
    circle = look | {"symbol": "circle-open", "size": 9, "line": {"width": 2}}
    kinds = look | {"symbol": np.where(won, "star", "diamond"), "size": np.where(won, 15, 10)}
    thin = {"base": list(starts), "width": 0.07, "hoverinfo": "skip", "marker": {"color": INK}}
    traces: list[go.Bar | go.Scatter] = [_bars(table["noise"], "noise", **thin)]
    traces.append(_dots(starts, "log-probability", **circle))
    traces.append(_dots(sums, "sum: the largest wins", **kinds))
    said = "{log_probability:.2f} + {noise:.2f} = {sum:.2f}"
    said += "   score {score:.2f}" * ("score" in table)
    words = [said.format_map(row).replace("+ -", "- ") for row in table.to_dict("records")]
    both = pd.concat([starts, sums])
    finite = both[np.isfinite(both)]
    least, most = (finite.min(), finite.max()) if len(finite) else (-1.0, 0.0)
    apart = 0.05 * (most - least + 1)
    axis = {"title": "nats", "range": [least - apart, most + apart]}
    return traces, [word.replace("-", "−") for word in words], axis


def _draw_parts(table: pd.DataFrame) -> Picture:
    """Each candidate's part of [0, 1), and the number that falls into one."""
    look = {"marker": {"color": list(table["colour"])}, "base": list(table["low"])}
    traces: list[go.Bar | go.Scatter] = [_bars(table["high"] - table["low"], "part", **look)]
    traces.append(_dots(table["uniform"], "the number", **NUMBER))
    drawn = table["chosen"] | ("after" in table)
    words = table["low"].map("{:.3f}".format) + " to " + table["high"].map("{:.3f}".format)
    words += table["uniform"].map("   number {:.3f}".format).where(drawn, "")
    title = "a number in [0, 1) draws the token on whose part it falls"
    return traces, list(words), {"title": title, "range": [0, 1]}


def _draw_coin(table: pd.DataFrame) -> Picture:
    """On top the coin, the number against the part that keeps the child; then the distributions."""
    first = table.iloc[:1]
    kept, limit, uniform = first[["kept", "probability", "uniform"]].iloc[0]
    shown = [("wanted", CHOSEN, ""), ("offered", GUESSED, "/"), ("left", SOURCES["n-gram"], "x")]
    shown = shown[: 2 if kept else 3]
    coin = {"marker": {"color": INK}, "width": 0.8, "offset": -0.4}
    traces: list[go.Bar | go.Scatter] = [_bars(first["probability"], "kept below", **coin)]
    traces.append(_dots(first["uniform"], "the number", **NUMBER))
    for number, (name, colour, hatch) in enumerate(shown):
        marker = {"color": colour, "pattern": {"shape": hatch}}
        wide = 0.8 / len(shown)
        look = {"marker": marker, "width": wide, "offset": -0.4 + number * wide}
        traces.append(_bars(table[name], name, 1, **look))
    words = [f"{uniform:.3f} {'<' if kept else '≥'} {limit:.3f}: {'kept' if kept else 'rejected'}"]
    said = "{wanted:.3f}, {offered:.3f}" + " → {left:.3f}" * (not kept)
    words += [said.format_map(row) for row in table.to_dict("records")]
    return traces, words, {"title": "probability", "range": [0, 1]}


def _draw_scores(table: pd.DataFrame) -> Picture:
    """The score of each guess's path."""
    bars = _bars(table["score"], "score", marker={"color": GUESSED}, showlegend=False)
    axis = {"title": "score of the path", "range": [0, 1]}
    return [bars], [f"{score:.2f}" for score in table["score"]], axis


NEEDS = {  # the columns of a step's table, and what is drawn of them
    "wanted offered left probability uniform kept": _draw_coin,
    "log_probability noise sum": _draw_sums,
    "low high uniform": _draw_parts,
    "score": _draw_scores,
}
