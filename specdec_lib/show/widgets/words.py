"""Words under the knobs, as HTML: sentences, lists, tables with aligned numbers, and the colours of
the page, light or dark.
"""

import html
import math
from collections.abc import Sequence
from numbers import Real

TEXT_COLOUR = "color:var(--jp-content-font-color1, inherit)"
FAINT = "color:var(--jp-content-font-color2, inherit)"
LINE = "1px solid var(--jp-border-color2, #8888)"
TABLE = "border-collapse:collapse;margin:4px 0;line-height:1.5;font-variant-numeric:tabular-nums"
NAME_CELL = "text-align:left;font-weight:normal;padding:1px 16px 1px 0"
CELL = "text-align:right;padding:1px 0 1px 18px;white-space:nowrap"
WORDS_CELL = "text-align:left;padding:1px 0 1px 18px"
HEAD = f"font-weight:600;border-bottom:{LINE}"
WORKING = f'<span style="{TEXT_COLOUR}">working …</span>'

Cell = float | str
"""A number, or words."""


def status(words: str) -> str:
    """Words under the knobs, as HTML that a screen reader reads out when it changes."""
    style = f'role="status" aria-live="polite" style="{TEXT_COLOUR};line-height:1.5"'
    return f"<div {style}>{words}</div>" if words else ""


def alert(problem: object) -> str:
    """Why something was refused, as HTML that a screen reader reads out at once."""
    style = f'role="alert" style="white-space:pre-wrap;{TEXT_COLOUR}"'
    return f"<pre {style}>{html.escape(str(problem))}</pre>"


def progress(words: str, share: float) -> str:
    """How far a work is, as HTML."""
    bar = f'<progress value="{share:.3f}" max="1"></progress>'
    return f'<span style="{TEXT_COLOUR}">{bar} {html.escape(words)}</span>'


def counted(guesses: float) -> str:
    """So many guesses, in words."""
    return "1 guess" if guesses == 1 else f"{guesses:.0f} guesses"


def bullets(lines: Sequence[str]) -> str:
    """A list of lines, each HTML itself."""
    items = "".join(f"<li>{line}</li>" for line in lines)
    return f'<ul style="margin:4px 0">{items}</ul>'


def aligned_table(
    heads: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    *,
    digits: int = 2,
    words: Sequence[int] = (),
) -> str:
    """A table as HTML, with a row's name in its first cell, and numbers that end below each other.

    heads     of the columns, that of the names too
    rows      numbers, of which NaN is a dash, and words, which are escaped
    digits    of numbers after the point; whole numbers have none
    words     the columns, counted from the names' 0 on, that begin below each other
    """
    looks = [NAME_CELL, *([CELL] * (len(heads) - 1))]
    for column in words:
        looks[column] = WORDS_CELL
    cells = [
        f'<th style="{look};{HEAD}">{html.escape(head)}</th>'
        for look, head in zip(looks, heads, strict=True)
    ]
    lines = [f"<tr>{''.join(cells)}</tr>"]
    for name, *values in rows:
        cells = [f'<th scope="row" style="{NAME_CELL}">{html.escape(str(name))}</th>']
        for look, value in zip(looks[1:], values, strict=True):
            cells.append(f'<td style="{look}">{_written(value, digits)}</td>')
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return f'<table style="{TABLE}">{"".join(lines)}</table>'


def _written(value: Cell, digits: int) -> str:
    """A cell's text."""
    if isinstance(value, str):
        return html.escape(value)
    if isinstance(value, Real) and math.isnan(value):
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:.{digits}f}"
