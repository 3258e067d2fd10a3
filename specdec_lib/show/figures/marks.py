"""From a table to marks: its columns checked, and renamed to those that every form draws.

A mark has a `panel`, a `series`, `x` and `y`; where there is an interval also `low` and `high`;
and, where the figure has more to say, a `text` beside it and a `note` when hovered over.
"""

from collections.abc import Iterable, Iterator, Sequence

import pandas as pd

from specdec_lib.show.figures.labels import short


def check(table: pd.DataFrame, columns: Sequence[str], *, once: Sequence[str] = ()) -> None:
    """Raises ValueError if the table lacks a column or a row, or two rows agree in `once`."""
    if table.empty or not set(columns) <= set(table.columns):
        raise ValueError(
            f"this figure needs rows with the columns {', '.join(columns)}, got {len(table)} rows"
            f" of {list(table.columns)}"
        )
    again = table[table.duplicated(list(once))] if once else table[:0]
    if len(again):
        first = ", ".join(f"{key} {again.iloc[0][key]}" for key in once)
        raise ValueError(
            f"this figure needs at most one row per {' and '.join(once)}, got several for {first}"
        )


def check_interval(table: pd.DataFrame, value: str, ends: Sequence[str]) -> None:
    """Raises ValueError if an interval does not hold its value; a NaN end is no interval."""
    low, middle, high = (table[name].astype(float) for name in (ends[0], value, ends[1]))
    wrong = (low > middle) | (middle > high)
    if wrong.any():
        got = [float(column[wrong].iloc[0]) for column in (low, middle, high)]
        raise ValueError(f"{ends[0]} ≤ {value} ≤ {ends[1]} must hold in every row, got {got}")


def check_grid(table: pd.DataFrame, keys: Sequence[str]) -> None:
    """Raises ValueError unless there is a row for every combination of the keys' values."""
    size = 1
    for key in keys:
        size *= table[key].nunique()
    if size != len(table):
        raise ValueError(
            f"this figure needs a cell for every {', '.join(keys)}: {size}, got {len(table)} rows"
        )


def check_among(name: str, values: Iterable[object], allowed: Sequence[str]) -> None:
    """Raises ValueError if a value is none of the allowed ones."""
    if strangers := sorted({str(value) for value in values} - set(allowed)):
        raise ValueError(f"{name} is one of {', '.join(allowed)}, got {', '.join(strangers)}")


def marks(
    table: pd.DataFrame,
    *,
    x: str,
    y: str,
    series: str = "",
    panel: str = "",
    ends: Sequence[str] = (),
    value: str = "",
) -> pd.DataFrame:
    """The table with the columns of marks besides its own; series and panel are "" where not named.

    ends     columns of the interval's ends; without them the marks have no interval, even if the
             table has columns `low` and `high` for other marks
    value    the column that the interval holds; without it, `y`

    Raises ValueError if the table lacks a column or a row, or an interval does not hold its value.
    """
    check(table, [name for name in (panel, series, x, y, *ends) if name])
    values = {"x": table[x], "y": table[y]}
    for name, column in (("series", series), ("panel", panel)):
        values[name] = table[column].map(str) if column else ""
    if ends:
        check_interval(table, value or y, ends)
        values |= {"low": table[ends[0]].astype(float), "high": table[ends[1]].astype(float)}
    else:
        table = table.drop(columns=["low", "high"], errors="ignore")
    return table.assign(**values)


def names_of(column: pd.Series) -> list[str]:
    """The values as text, each once, in order of first appearance."""
    return list(dict.fromkeys(map(str, column)))


def groups(table: pd.DataFrame, column: str) -> Iterator[tuple[str, pd.DataFrame]]:
    """The rows of each value of a column, in order of first appearance, with the value as text."""
    values = table[column].map(str)
    for name in dict.fromkeys(values):
        yield name, table[values == name]


def lanes(
    places: pd.Series,
    lane: pd.Series | None = None,
    *,
    room: float = 0.7,
    order: Sequence[str] = (),
) -> list[float]:
    """A coordinate per row on an axis of names: the place of its name, and beside it the lane.

    places    the names on the axis; they stand at 0, 1, 2, … in order of first appearance
    lane      which of the marks of one name it is; without it each stands at its name's place
    room      of the distance between two names that all lanes of one take
    order     of the lanes, where it is another than that of first appearance
    """
    names = names_of(places)
    if lane is None:
        return [float(names.index(str(place))) for place in places]
    beside = list(order) or names_of(lane)
    step = room / len(beside)
    return [
        names.index(str(place)) + step * (beside.index(str(which)) - (len(beside) - 1) / 2)
        for place, which in zip(places, lane, strict=True)
    ]


def ends_of(rows: pd.DataFrame, value: str) -> pd.Series:
    """The upper end of each interval, or the value itself where there is no interval."""
    middle = rows[value].astype(float)
    return rows["high"].fillna(middle) if "high" in rows else middle


def shorts(values: pd.Series) -> list[str]:
    """Each number in about three digits."""
    return [short(value) for value in values]
