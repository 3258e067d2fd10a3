"""What the charts share: checked tables, a look per series, intervals, short numbers, and panels
side by side.
"""

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from numbers import Real

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from specdec_lib.show.figures.theme import OTHERS, SCREEN, SOURCES, escaped

STRANGERS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    *OTHERS,
)  # Okabe and Ito's, without the yellow: too pale for a line
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "triangle-down", "x", "star")


@dataclass(frozen=True)
class Look:
    """How one series is drawn: never told by its colour alone."""

    colour: str
    dash: str
    symbol: str

    @property
    def line(self) -> dict[str, object]:
        return {"color": self.colour, "dash": self.dash, "width": 2}

    def marker(self, size: float = 9) -> dict[str, object]:
        """A dot of `size` pixels with a white rim."""
        return {
            "color": self.colour,
            "symbol": self.symbol,
            "size": size,
            "line": {"color": "#FFFFFF", "width": 1},
        }


def check(table: pd.DataFrame, columns: Sequence[str]) -> None:
    """Raises ValueError if the table lacks a column or a row."""
    if table.empty or not set(columns) <= set(table.columns):
        raise ValueError(
            f"this figure needs rows with the columns {', '.join(columns)}, got {len(table)} rows"
            f" of {list(table.columns)}"
        )


def check_once(table: pd.DataFrame, keys: Sequence[str]) -> None:
    """Raises ValueError if two rows agree in all of these columns."""
    again = table[table.duplicated(list(keys))]
    if len(again):
        first = ", ".join(
            f"{key} {value}" for key, value in zip(keys, again.iloc[0][list(keys)], strict=True)
        )
        raise ValueError(
            f"this figure needs at most one row per {' and '.join(keys)}, got several for {first}"
        )


def looks(names: Iterable[object]) -> dict[str, Look]:
    """A look per name, in order of first appearance: source words keep their colour, the others
    share what is left of ten in turn.
    """
    words = list(dict.fromkeys(map(str, names)))
    free = [colour for colour in STRANGERS if colour not in {SOURCES.get(word) for word in words}]
    strangers = [word for word in words if word not in SOURCES]
    return {
        word: Look(
            SOURCES.get(word) or free[strangers.index(word) % len(free)],
            DASHES[number % len(DASHES)],
            SYMBOLS[number % len(SYMBOLS)],
        )
        for number, word in enumerate(words)
    }


def groups(
    table: pd.DataFrame, column: str, *, along: str | None = None
) -> Iterator[tuple[str, pd.DataFrame]]:
    """The rows of each value of a column, in order of first appearance, with the value as text;
    sorted by the column `along`, if given.
    """
    values = table[column].map(str)
    for name in dict.fromkeys(values):
        rows = table[values == name]
        yield name, rows if along is None else rows.sort_values(along, kind="stable")


def interval(
    rows: pd.DataFrame, value: str, look: Look, *, low: str = "low", high: str = "high"
) -> dict[str, object]:
    """The bar from `low` to `high` around each value, as plotly wants it; where an end is NaN there
    is none.

    Raises ValueError if an interval does not hold its value.
    """
    middle, start, end = (rows[name].astype(float) for name in (value, low, high))
    if ((start > middle) | (middle > end)).any():
        raise ValueError(
            f"{low} ≤ {value} ≤ {high} must hold in every row, got\n{rows[[low, value, high]]}"
        )
    return {
        "type": "data",
        "array": end - middle,
        "arrayminus": middle - start,
        "color": look.colour,
        "thickness": 1.6,
        "width": 4,
    }


def tops(rows: pd.DataFrame, value: str, *, high: str = "high") -> pd.Series:
    """Where each interval ends, or the value itself where there is no interval: what a label must
    stand clear of.
    """
    middle = rows[value].astype(float)
    return rows[high].astype(float).fillna(middle) if high in rows else middle


def faint(colour: str, alpha: float = 0.18) -> str:
    """The colour as a veil: bands in it may overlap, on a light page and on a dark one."""
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha})"


def short(value: Real) -> str:
    """A number in about three digits, as written beside a dot; NaN is written as nothing."""
    number = float(value)
    if number != number:
        return ""
    size = abs(number)
    if size and size < 0.1:
        return f"{number:.2g}"
    return f"{number:,.0f}" if size >= 100 else f"{number:.1f}" if size >= 10 else f"{number:.2f}"


def with_prefix(value: Real, unit: str) -> str:
    """A quantity in three digits with an SI prefix: "3.35 TB/s"."""
    number = float(value)
    for factor, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= factor:
            return f"{number / factor:.3g} {prefix}{unit}"
    return f"{number:.3g} {unit}"


def wrapped(text: str, longest: int) -> str:
    """Text that plotly shows as it stands, broken into lines of at most `longest` characters where
    it has spaces.
    """
    return "<br>".join(
        escaped(line) for line in textwrap.wrap(text, longest, break_long_words=False)
    ) or escaped(text)


def panels(
    titles: Sequence[str],
    *,
    width: int,
    height: int,
    columns: int | None = None,
    shared_y: bool = True,
    gap: float = 0.05,
) -> go.Figure:
    """An empty figure of panels with titles, side by side in rows of `columns`; the legend stands
    above the titles.

    width, height    pixels of the whole figure, margins among them
    """
    across = min(columns or len(titles), len(titles))
    down = -(-len(titles) // across)
    figure = make_subplots(
        rows=down,
        cols=across,
        subplot_titles=[escaped(title) for title in titles],
        shared_yaxes=shared_y,
        horizontal_spacing=gap,
        vertical_spacing=100 / height if down > 1 else 0,
    )
    figure.update_annotations(font={"size": 14})
    plot = height - 130
    figure.update_layout(
        template=SCREEN, width=width, height=height, margin={"t": 76}, legend={"y": 1 + 30 / plot}
    )
    return figure


def place(number: int, columns: int) -> dict[str, int]:
    """Row and column of a panel, as plotly counts them."""
    return {"row": number // columns + 1, "col": number % columns + 1}
