"""From a table to marks: its columns checked, and renamed to those that every form draws.

A mark has a `panel`, a `series`, `x` and `y`; perhaps an interval, `low` to `high`, a `text` beside
it, and a `note` when hovered over.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from specdec_lib.show.figures.theme import names_of, short

Numbers = str | float | Sequence[float] | pd.Series


def check(table: pd.DataFrame, keys: str, values: str) -> None:
    """Raises ValueError if the table lacks a column or a row, or two rows agree in all `keys`.

    keys, values    names of columns, divided by spaces
    """
    columns, once = f"{keys} {values}".split(), keys.split()
    if table.empty or not set(columns) <= set(table):
        raise ValueError(
            f"this figure needs rows with the columns {', '.join(columns)}, got {len(table)} rows"
            f" of {list(table)}"
        )
    if once and (again := table[table.duplicated(once)][once]).size:
        first = ", ".join(f"{key} {value}" for key, value in again.iloc[0].items())
        raise ValueError(f"this figure needs at most one row per {keys}, got several for {first}")


def lanes(
    table: pd.DataFrame, names: str, lane: str = "", room: float = 0.7, order: Sequence[str] = ()
) -> pd.Series:
    """A coordinate per row on an axis on which the names of a column stand at 0, 1, 2, … in order
    of first appearance; the marks of one name stand beside each other.

    lane     the column that tells the marks of one name apart; without it all stand at its place
    room     of the distance between two names that all lanes of one take
    order    of the lanes, where it is another than that of first appearance
    """
    at = table[names].map(str).map(names_of(table[names]).index).astype(float)
    if not lane:
        return at
    order = list(order) or names_of(table[lane])
    return at + room / len(order) * (table[lane].map(str).map(order.index) - (len(order) - 1) / 2)


def marks(
    table: pd.DataFrame,
    x: Numbers,
    y: Numbers,
    *,
    series: str = "",
    panel: str = "",
    ends: str = "",
    text: str = "",
    note: str = "",
) -> pd.DataFrame:
    """The table with the columns of marks besides its own.

    x, y     a column, or numbers: one, or one per row
    ends     three columns: an interval's low end, the value and the high end; without them the
             marks have no interval, even if the table has columns `low` and `high`
    text     the column whose numbers stand beside the marks
    note     what a mark says when hovered over, with columns in it: "{rounds:,} rounds"
    Raises ValueError if an interval does not hold its value.
    """
    found = table.drop(columns=["low", "high"], errors="ignore").assign(
        x=table[x] if isinstance(x, str) else x,
        y=table[y] if isinstance(y, str) else y,
        series=table[series].map(str) if series else "",
        panel=table[panel].map(str) if panel else "",
    )
    if text:
        found["text"] = table[text].map(short)
    if note:
        found["note"] = [note.format_map(row) for row in table.to_dict("records")]
    if not ends:
        return found
    low, middle, high = (table[name].astype(float) for name in ends.split())
    if (wrong := (low > middle) | (middle > high)).any():
        got = table.loc[wrong, ends.split()].iloc[0].tolist()
        raise ValueError(f"{' ≤ '.join(ends.split())} must hold in every row, got {got}")
    return found.assign(low=low, high=high)


def ends_of(rows: pd.DataFrame, value: str) -> pd.Series:
    """The end of each interval that is farther from 0, else the value; above the marks' `base`."""
    ends = middle = rows[value].astype(float)
    if "high" in rows:
        ends = rows["high"].where(middle >= 0, rows["low"]).fillna(middle)
    return ends + rows.get("base", 0)


def span_of(
    values: pd.DataFrame | pd.Series, before: float = 0, after: float = 0
) -> tuple[float, float]:
    """The least and the greatest of the values, with these shares of the span around them."""
    low, high = float(np.nanmin(values.astype(float))), float(np.nanmax(values.astype(float)))
    room = (high - low) or 1.0
    return low - before * room, high + after * room
