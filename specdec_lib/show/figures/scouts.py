"""A draft's pass in which the guesses of its scout ride along."""

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures import pictures
from specdec_lib.show.figures.chart import check, named_rows
from specdec_lib.show.figures.rounds import with_boxes
from specdec_lib.show.figures.theme import INK, SOURCES, escape, visible

ROLES = {  # of a node, and its name in the legend
    "own": "the draft's own row",
    "taken": "scout's guess, taken",
    "wasted": "scout's guess, wasted",
    "chosen": "draft's choice, not read yet",
}
SIGNS = {"taken": "✓", "wasted": "✗"}
CONTEXT = 44  # characters of the context that are shown
# pixels
LEAST_WIDE = 880.0
CONTEXT_GAP = 22.0
SIGN = 16.0  # left of a box, to the middle of its sign


def scout_pass(table: pd.DataFrame, *, context: str) -> go.Figure:
    """One pass of a draft whose scout's guesses ride along, from left to right: filled boxes are
    rows of the pass, the draft's own and the scout's; edges of the draft's tree are solid, those to
    wasted rows dotted. Hollow boxes are the draft's other choices: what follows them takes another
    pass.

    table      as `tables.scout_rows` gives it: a row per node with `node` (from 0, the root),
               `parent`, `depth`, `token` (its text) and `role` (one of `ROLES`)
    context    the text before the root, of which the end is shown

    Raises ValueError for another role.
    """
    check(table, "node", "parent depth token role")
    others = table["role"][~table["role"].isin(list(ROLES))]
    if len(others):
        raise ValueError(f"a node of a pass is one of {list(ROLES)}, got {others.iloc[0]!r}")
    before = "…" + visible(context)[-CONTEXT:]
    wide = 8.0 * len(before) + 14
    own = with_boxes(table, left=4.0 + wide + CONTEXT_GAP)
    root = own.iloc[0]
    box = pd.DataFrame({"left": [4.0], "right": [4.0 + wide]})
    box = box.assign(top=root["top"], bottom=root["bottom"], text=escape(before))
    box = box.assign(x=4.0 + wide / 2, y=root["middle"])
    joint = [[(4.0 + wide, root["middle"]), (root["left"], root["middle"])]]
    traces = [pictures.path_trace(joint, pictures.THIN), *_edges(own)]
    traces.append(pictures.boxes_trace(box, INK, name="context"))
    for role, called in ROLES.items():
        some = own[own["role"] == role]
        if len(some):
            traces.append(_boxes(some, role, called))
    middle = (own["left"] + own["right"]) / 2
    words = own.assign(x=middle, y=own["middle"], text=own["shown"].map(escape))
    signs = own.assign(x=own["left"] - SIGN, y=own["middle"] - 10, text=own["role"].map(SIGNS))
    signs = signs.dropna(subset="text")
    traces += [pictures.words_trace(one) for one in (box, words, signs)]
    size = (max(LEAST_WIDE, 8 + own["right"].max()), own["bottom"].max() + 8)
    counts = own["role"].value_counts().reindex(list(ROLES), fill_value=0)
    guessed = counts["taken"] + counts["wasted"]
    headline = (
        f"One pass of the draft, {1 + guessed} rows: its own and {guessed} guesses of the scout,"
        f" {counts['taken']} of them taken"
    )
    return pictures.sheet(traces, size, headline)


def _edges(own: pd.DataFrame) -> list[go.Scatter]:
    """An edge ends level before its box, so that a sign can sit on its end."""
    paths: dict[bool, list[list[pictures.Spot]]] = {False: [], True: []}  # by whether it is wasted
    for node in named_rows(own[1:]):
        parent = own.iloc[node.parent]
        start = (parent["right"], parent["middle"])
        bend = (node.left - 2 * SIGN, node.middle)
        paths[node.role == "wasted"].append([start, bend, (node.left, node.middle)])
    solid = pictures.path_trace(paths[False], {"color": INK, "width": 2.4})
    return [solid, pictures.path_trace(paths[True], {**pictures.THIN, "dash": "dot"})]


def _boxes(some: pd.DataFrame, role: str, called: str) -> go.Scatter:
    """Filled where the row is in the pass; a thick outline where the draft's tree has it too."""
    source = "n-gram" if role in SIGNS else "draft"
    boxes = pictures.boxes_trace(some, SOURCES[source], name=called)
    if role == "taken":
        boxes.update(line={"width": 3.2})
    if role == "wasted":
        boxes.update(line={"dash": "dot"})
    if role == "chosen":
        boxes.update(fillcolor="rgba(0,0,0,0)", line={"dash": "dot", "width": 1.8})
    return boxes
