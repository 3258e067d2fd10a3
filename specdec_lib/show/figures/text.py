"""Emitted tokens as the text they make, each in the colour of where it came from."""

from dataclasses import dataclass

import pandas as pd
import plotly.graph_objects as go

from specdec_lib.show.figures.theme import (
    DARK,
    INK,
    MONOSPACE,
    canvas,
    colours,
    escaped,
    outlines,
    tint,
    visible,
)

CHARACTER, LINE = 8.2, 26.0  # pixels
COLUMNS = 92  # characters before a line is broken
INSET = 8.0  # pixels left of the text


@dataclass(frozen=True)
class _Piece:
    """The part of a token that stands on one line of the picture."""

    token: int
    line: int
    column: int
    text: str

    @property
    def box(self) -> tuple[float, float, float, float]:
        left, middle = INSET + self.column * CHARACTER, (self.line + 0.5) * LINE
        return left + 0.6, middle - 10, left + len(self.text) * CHARACTER - 0.6, middle + 10


def origins(table: pd.DataFrame) -> go.Figure:
    """The emitted text in boxes coloured by the source of each token, with each source's share; a
    bar marks where a round starts.

    table    a row per token in order: `token` (its text), `source`, `round`

    Raises ValueError if the table lacks a column or a row.
    """
    missing = {"token", "source", "round"} - set(table.columns)
    if missing or table.empty:
        raise ValueError(
            "origins needs a row per token with the columns token, source and round, got"
            f" {len(table)} rows of {list(table.columns)}"
        )
    tokens, sources, rounds = (table[name].tolist() for name in ("token", "source", "round"))
    pieces = _laid_out([str(token) for token in tokens])
    figure = go.Figure()
    for source, colour in colours(sources).items():
        count = sources.count(source)
        figure.add_scatter(
            **outlines([piece.box for piece in pieces if sources[piece.token] == source]),
            mode="lines",
            fill="toself",
            fillcolor=tint(colour),
            line={"color": colour, "width": 0.8, "simplify": False},
            name=f"{escaped(str(source))} {count / len(tokens):.0%} ({count})",
            hoverinfo="skip",
        )
    figure.add_trace(_starts(pieces, rounds))
    shown = [escaped(visible(str(token))) for token in tokens]
    hover = [
        f"{text}<br>{escaped(str(source))}, round {number}"
        for text, source, number in zip(shown, sources, rounds, strict=True)
    ]
    figure.add_trace(_words(pieces, hover))
    width = max(640.0, max(piece.box[2] for piece in pieces) + INSET)
    emitted = f"{len(tokens)} tokens in {len(set(rounds))} rounds"
    return canvas(
        figure,
        width,
        (1 + max(piece.line for piece in pieces)) * LINE + 4,
        f"{emitted}: {len(tokens) / len(set(rounds)):.2f} per round",
    )


def _laid_out(tokens: list[str]) -> list[_Piece]:
    """Where each token stands: a newline is shown, then breaks the line; a token that would pass
    the right edge starts a new line.
    """
    pieces: list[_Piece] = []
    line = column = 0
    for number, token in enumerate(tokens):
        for part in token.expandtabs(4).replace("\n", "⏎\n").splitlines(keepends=True) or [""]:
            text = (
                "".join(mark if mark.isprintable() else "·" for mark in part.removesuffix("\n"))
                or "∅"
            )
            if column and column + len(text) > COLUMNS:
                line, column = line + 1, 0
            pieces.append(_Piece(number, line, column, text))
            column += len(text)
            if part.endswith("\n"):
                line, column = line + 1, 0
    return pieces


def _starts(pieces: list[_Piece], rounds: list[object]) -> go.Scatter:
    xs: list[float | None] = []
    ys: list[float | None] = []
    for at, piece in enumerate(pieces):
        if at == 0 or rounds[piece.token] != rounds[pieces[at - 1].token]:
            left, top, _, bottom = piece.box
            xs += [left - 0.6, left - 0.6, None]
            ys += [top - 3, bottom + 3, None]
    return go.Scatter(
        x=xs,
        y=ys,
        mode="lines",
        line={"color": INK, "width": 2.2},
        name="start of a round",
        hoverinfo="skip",
    )


def _words(pieces: list[_Piece], hover: list[str]) -> go.Scatter:
    """The text, each piece centred over its own characters, so that a font of another width shifts
    nothing by more than its piece.
    """
    xs = []
    for piece in pieces:
        lead = len(piece.text) - len(piece.text.lstrip())
        xs.append(INSET + (piece.column + lead + len(piece.text.strip()) / 2) * CHARACTER)
    return go.Scatter(
        x=xs,
        y=[(piece.line + 0.5) * LINE for piece in pieces],
        mode="text",
        text=[escaped(piece.text.strip()) for piece in pieces],
        textfont={"family": MONOSPACE, "size": 13, "color": DARK},
        hovertext=[hover[piece.token] for piece in pieces],
        hoverinfo="text",
        showlegend=False,
    )
