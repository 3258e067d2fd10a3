"""A picture of emitted text, in which each token has the colour of its source."""

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.marks import check
from specdec_lib.show.figures.sheet import boxes_trace, path_trace, sheet, words_trace
from specdec_lib.show.figures.theme import INK, colours, escape, visible

CHARACTER, LINE = 8.2, 26.0  # pixels
COLUMNS = 92  # characters before a line is broken
INSET = 8.0  # pixels left of the text


def origins(table: pd.DataFrame) -> go.Figure:
    """The emitted text stands in boxes coloured by the source of each token; a bar marks where a
    round starts, the legend says each source's share.

    table    a row per token in order: `token` (its text), `source`, `round`
    """
    check(table, "", "token source round")
    pieces, traces = _lay_out(table), []
    for source, colour in colours(table["source"]).items():
        count = int((table["source"] == source).sum())
        own = pieces[pieces["source"] == source]
        boxes = list(own[["left", "top", "right", "bottom"]].itertuples(index=False))
        share = f"{escape(source)} {count / len(table):.0%} ({count})"
        traces.append(boxes_trace(boxes, colour, name=share))
    first = pieces[pieces["round"] != pieces["round"].shift()]
    starts = [
        [(one.left - 0.6, one.top - 3), (one.left - 0.6, one.bottom + 3)]
        for one in first.itertuples()
    ]
    traces.append(path_trace(starts, {"color": INK, "width": 2.2}, name="start of a round"))
    hover = [
        f"{escape(visible(str(one.token)))}<br>{escape(one.source)}, round {one.round}"
        for one in pieces.itertuples()
    ]
    texts = [escape(text.strip()) for text in pieces["text"]]
    middles = list(pieces[["x", "y"]].itertuples(index=False))
    traces.append(words_trace(middles, texts, hover=hover))
    width, height = max(640.0, pieces["right"].max() + INSET), pieces["bottom"].max() + 7
    count = table["round"].nunique()
    title = f"{len(table)} tokens in {count} rounds: {len(table) / count:.2f} per round"
    return sheet(traces, (width, height), title)


def _lay_out(table: pd.DataFrame) -> pd.DataFrame:
    """A row per piece of a token that stands on one line: its text, its box in pixels, the middle
    of its letters, and the token's own columns.

    A newline is shown, then breaks the line; a token that would pass the right edge starts a new
    line.
    """
    pieces: list[dict[str, object]] = []
    line = column = 0
    for row in table[["token", "source", "round"]].to_dict("records"):
        for part in str(row["token"]).expandtabs(4).replace("\n", "⏎\n").splitlines(True) or [""]:
            shown = (mark if mark.isprintable() else "·" for mark in part.removesuffix("\n"))
            text = "".join(shown) or "∅"
            if column and column + len(text) > COLUMNS:
                line, column = line + 1, 0
            left, middle = INSET + column * CHARACTER, (line + 0.5) * LINE
            lead = len(text) - len(text.lstrip())
            letters = column + lead + len(text.strip()) / 2
            box = {"left": left + 0.6, "right": left + len(text) * CHARACTER - 0.6}
            box |= {"top": middle - 10, "bottom": middle + 10}
            pieces.append(row | box | {"text": text, "x": INSET + letters * CHARACTER, "y": middle})
            column += len(text)
            if part.endswith("\n"):
                line, column = line + 1, 0
    return pd.DataFrame(pieces)
