"""Figures of what a round emits: distributions side by side, and the text with its sources."""

from dataclasses import dataclass, replace

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.forms.bars import add_bars
from specdec_lib.show.figures.forms.chart import open_chart
from specdec_lib.show.figures.forms.sheet import Box, boxes_trace, path_trace, sheet, words_trace
from specdec_lib.show.figures.marks import check, lanes, marks, names_of
from specdec_lib.show.figures.theme import INK, colours, escape, looks, visible

CHARACTER, LINE = 8.2, 26.0  # pixels
COLUMNS = 92  # characters before a line is broken
INSET = 8.0  # pixels left of the text


def distributions(table: pd.DataFrame) -> go.Figure:
    """Bars show the probabilities of the same tokens under several distributions, side by side.

    table    a row per token and distribution: `token` (its text), `distribution`, `probability`, in
             the order in which they are shown
    """
    check(table, ("token", "distribution", "probability"))
    rows = marks(
        table.assign(place=lanes(table["token"], table["distribution"], room=0.8)),
        x="place",
        y="probability",
        series="distribution",
    )
    values = [f"{value:.2f}".removeprefix("0") if value else "0" for value in rows["y"]]
    tokens, names = names_of(table["token"]), names_of(table["distribution"])
    styles = looks(names)
    styles[names[0]] = replace(styles[names[0]], full=True)
    size = (max(560, 120 + 34 * len(tokens) * len(names)), 320)
    chart = open_chart(size=size, x="token", y="probability")
    add_bars(chart, rows.assign(text=values), styles, width=0.75 / len(names))
    chart.name_places("x", [visible(token, 12) for token in tokens])
    tilt = 0 if len(tokens) <= 10 else -40
    chart.update_axes("x", {"tickangle": tilt, "showline": False})
    chart.update_axes("y", {"range": [0, min(1.08, 1.15 * float(rows["y"].max()))]})
    return chart.titled("Probability of each outcome under each distribution")


@dataclass(frozen=True)
class _Piece:
    """The part of a token that stands on one line of the picture."""

    token: int
    line: int
    column: int
    text: str

    @property
    def box(self) -> Box:
        left, middle = INSET + self.column * CHARACTER, (self.line + 0.5) * LINE
        return left + 0.6, middle - 10, left + len(self.text) * CHARACTER - 0.6, middle + 10

    @property
    def middle(self) -> tuple[float, float]:
        """The middle of its own characters: a font of another width shifts nothing by more than a
        piece.
        """
        lead = len(self.text) - len(self.text.lstrip())
        letters = self.column + lead + len(self.text.strip()) / 2
        return INSET + letters * CHARACTER, (self.line + 0.5) * LINE


def origins(table: pd.DataFrame) -> go.Figure:
    """The emitted text stands in boxes coloured by the source of each token; a bar marks where a
    round starts, the legend says each source's share.

    table    a row per token in order: `token` (its text), `source`, `round`
    """
    check(table, ("token", "source", "round"))
    tokens, sources, rounds = (table[name].tolist() for name in ("token", "source", "round"))
    pieces = _lay_out([str(token) for token in tokens])
    traces = []
    for source, colour in colours(sources).items():
        count = sources.count(source)
        boxes = [piece.box for piece in pieces if sources[piece.token] == source]
        share = f"{escape(source)} {count / len(tokens):.0%} ({count})"
        traces.append(boxes_trace(boxes, colour, name=share))
    starts = [
        [(piece.box[0] - 0.6, piece.box[1] - 3), (piece.box[0] - 0.6, piece.box[3] + 3)]
        for at, piece in enumerate(pieces)
        if at == 0 or rounds[piece.token] != rounds[pieces[at - 1].token]
    ]
    traces.append(path_trace(starts, {"color": INK, "width": 2.2}, name="start of a round"))
    said = [
        f"{escape(visible(str(token)))}<br>{escape(source)}, round {number}"
        for token, source, number in zip(tokens, sources, rounds, strict=True)
    ]
    texts = [escape(piece.text.strip()) for piece in pieces]
    hover = [said[piece.token] for piece in pieces]
    traces.append(words_trace([piece.middle for piece in pieces], texts, hover=hover))
    width = max(640.0, max(piece.box[2] for piece in pieces) + INSET)
    height = (1 + max(piece.line for piece in pieces)) * LINE + 4
    count = len(set(rounds))
    title = f"{len(tokens)} tokens in {count} rounds: {len(tokens) / count:.2f} per round"
    return sheet(traces, (width, height), title)


def _lay_out(tokens: list[str]) -> list[_Piece]:
    """Where each token stands: a newline is shown, then breaks the line; a token that would pass
    the right edge starts a new line.
    """
    pieces: list[_Piece] = []
    line = column = 0
    for number, token in enumerate(tokens):
        for part in token.expandtabs(4).replace("\n", "⏎\n").splitlines(keepends=True) or [""]:
            shown = (mark if mark.isprintable() else "·" for mark in part.removesuffix("\n"))
            text = "".join(shown) or "∅"
            if column and column + len(text) > COLUMNS:
                line, column = line + 1, 0
            pieces.append(_Piece(number, line, column, text))
            column += len(text)
            if part.endswith("\n"):
                line, column = line + 1, 0
    return pieces
