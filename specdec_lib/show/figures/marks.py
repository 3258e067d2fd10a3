"""From a table to marks: its columns checked, and renamed to those that every form draws.

A mark has a `panel`, a `series`, `x` and `y`; where there is an interval also `low` and `high`;
and, where the figure has more to say, a `text` beside it and a `note` when hovered over.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from string import Formatter

import pandas as pd

from specdec_lib.show.figures.labels import short

Numbers = str | float | Sequence[float] | pd.Series


def check(table: pd.DataFrame, keys: str, values: str) -> None:
    """Raises ValueError if the table lacks a column or a row, or two rows agree in all `keys`.

    keys, values    names of columns, divided by spaces
    """
    once = keys.split()
    columns = list(dict.fromkeys([*once, *values.split()]))
    if table.empty or not set(columns) <= set(table.columns):
        raise ValueError(
            f"this figure needs rows with the columns {', '.join(columns)}, got {len(table)} rows"
            f" of {list(table.columns)}"
        )
    again = table[table.duplicated(once)] if once else table[:0]
    if len(again):
        first = ", ".join(f"{key} {again.iloc[0][key]}" for key in once)
        raise ValueError(
            f"this figure needs at most one row per {' and '.join(once)}, got several for {first}"
        )


def check_grid(table: pd.DataFrame, keys: str, values: str) -> None:
    """Raises ValueError as `check` does, and unless every combination of keys has its row."""
    check(table, keys, values)
    size = math.prod(table[key].nunique() for key in keys.split())
    if size != len(table):
        raise ValueError(
            f"this figure needs a cell for every {keys}: {size}, got {len(table)} rows"
        )


def check_among(name: str, values: Iterable[object], allowed: Sequence[str]) -> None:
    """Raises ValueError if a value is none of the allowed ones."""
    if strangers := sorted({str(value) for value in values} - set(allowed)):
        raise ValueError(f"{name} is one of {', '.join(allowed)}, got {', '.join(strangers)}")


@dataclass(frozen=True)
class Lanes:
    """Coordinates on an axis of names, which stand at 0, 1, 2, … in order of first appearance; the
    marks of one name stand beside each other, in lanes.

    places    the column of the names
    lane      the column that tells the marks of one name apart; without it all stand at its place
    room      of the distance between two names that all lanes of one take
    order     of the lanes, where it is another than that of first appearance
    """

    places: str
    lane: str = ""
    room: float = 0.7
    order: Sequence[str] = ()

    def of(self, table: pd.DataFrame) -> pd.Series:
        """A coordinate per row."""
        names = names_of(table[self.places])
        at = table[self.places].map(str).map(names.index).astype(float)
        if not self.lane:
            return at
        order = list(self.order) or names_of(table[self.lane])
        aside = table[self.lane].map(str).map(order.index) - (len(order) - 1) / 2
        return at + self.room / len(order) * aside


def marks(
    table: pd.DataFrame,
    x: Numbers | Lanes,
    y: Numbers | Lanes,
    *,
    once: str = "",
    series: str = "",
    panel: str = "",
    ends: str = "",
    text: str = "",
    note: str = "",
) -> pd.DataFrame:
    """The table with the columns of marks besides its own.

    x, y             a column, lanes, or numbers: one, or one per row
    once             columns in all of which no two rows may agree
    series, panel    a column; "" is one panel without a name, and one series or one per lane
    ends             three columns: an interval's low end, the value and the high end; without them
                     the marks have no interval, even if the table has columns `low` and `high`
    text             the column whose numbers stand beside the marks
    note             what a mark says when hovered over, with columns in it: "{rounds:,} rounds"

    Raises ValueError as `check` does, and if an interval does not hold its value.
    """
    lanes = [axis for axis in (x, y) if isinstance(axis, Lanes)]
    series = series or "".join(axis.lane for axis in lanes)
    said = [name for _, name, *_ in Formatter().parse(note) if name]
    names = [axis for axis in (x, y, series, panel, text) if isinstance(axis, str) and axis]
    check(table, once, " ".join([*names, *said, ends, *(axis.places for axis in lanes)]))
    values: dict[str, object] = {"x": _numbers(table, x), "y": _numbers(table, y)}
    for name, column in (("series", series), ("panel", panel)):
        values[name] = table[column].map(str) if column else ""
    if text:
        values["text"] = [short(value) for value in table[text]]
    if note:
        values["note"] = [note.format_map(row) for row in table.to_dict("records")]
    values |= _interval(table, ends) if ends else {}
    return table.drop(columns=["low", "high"], errors="ignore").assign(**values)


def _numbers(table: pd.DataFrame, axis: Numbers | Lanes) -> Numbers:
    if isinstance(axis, Lanes):
        return axis.of(table)
    return table[axis] if isinstance(axis, str) else axis


def _interval(table: pd.DataFrame, ends: str) -> dict[str, pd.Series]:
    """The columns `low` and `high`; a NaN end is no interval.

    Raises ValueError if an interval does not hold its value.
    """
    names = ends.split()
    low, middle, high = (table[name].astype(float) for name in names)
    wrong = (low > middle) | (middle > high)
    if wrong.any():
        got = [float(column[wrong].iloc[0]) for column in (low, middle, high)]
        raise ValueError(f"{' ≤ '.join(names)} must hold in every row, got {got}")
    return {"low": low, "high": high}


def names_of(column: pd.Series) -> list[str]:
    """The values as text, each once, in order of first appearance."""
    return list(dict.fromkeys(map(str, column)))


def groups(table: pd.DataFrame, column: str) -> Iterator[tuple[str, pd.DataFrame]]:
    """The rows of each value of a column, in order of first appearance, with the value as text."""
    values = table[column].map(str)
    for name in dict.fromkeys(values):
        yield name, table[values == name]


def ends_of(rows: pd.DataFrame, value: str) -> pd.Series:
    """The end of each interval that is farther from 0, or the value where there is no interval."""
    middle = rows[value].astype(float)
    if "high" not in rows:
        return middle
    return rows["high"].where(middle >= 0, rows["low"]).fillna(middle)
