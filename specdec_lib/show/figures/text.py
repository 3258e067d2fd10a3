"""A picture of emitted text, in which each token has the colour of its source."""

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.labels import escape, visible
from specdec_lib.show.figures.marks import check
from specdec_lib.show.figures.sheet import boxes_trace, path_trace, sheet, words_trace
from specdec_lib.show.figures.theme import INK, looks

CHARACTER, LINE = 8.2, 26.0  # pixels
COLUMNS = 92  # characters before a line is broken
INSET = 8.0  # pixels left of the text


def origins(table: pd.DataFrame, *, title: str = "") -> go.Figure:
    """The emitted text stands in boxes coloured by the source of each token; a bar marks where a
    round starts, the legend says each source's share.

    table    a row per token in order: `token` (its text), `source`, `round`
    title    what stands above it; without it, how many tokens a round has
    """
    check(table, "", "token source round")
    pieces, traces = _lay_out(table), []
    for source, look in looks(table["source"]).items():
        count = int((table["source"] == source).sum())
        own = pieces.loc[pieces["source"] == source, ["left", "top", "right", "bottom"]]
        share = f"{escape(source)} {count / len(table):.0%} ({count})"
        traces.append(boxes_trace(own.itertuples(index=False), look.colour, name=share))
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
    traces.append(words_trace([*zip(pieces["x"], pieces["y"], strict=True)], texts, hover=hover))
    width, height = max(640.0, pieces["right"].max() + INSET), pieces["bottom"].max() + 7
    count = table["round"].nunique()
    counts = f"{len(table)} tokens in {count} rounds: {len(table) / count:.2f} per round"
    return sheet(traces, (width, height), title or counts)


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
            middle = (line + 0.5) * LINE
            letters = column + len(text) - len(text.lstrip()) + len(text.strip()) / 2
            box = {"left": INSET + column * CHARACTER + 0.6, "top": middle - 10}
            column += len(text)
            box |= {"right": INSET + column * CHARACTER - 0.6, "bottom": middle + 10}
            pieces.append(row | box | {"text": text, "x": INSET + letters * CHARACTER, "y": middle})
            if part.endswith("\n"):
                line, column = line + 1, 0
    return pd.DataFrame(pieces)
