"""Figures' titles and captions (figures.toml), and a paper's numbers beside ours, which are read
from the figures' tables.
"""

import csv
import functools
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

SOURCE = Path(__file__).with_name("figures.toml")
Rows = list[dict[str, str]]


@dataclass(frozen=True)
class Description:
    """One figure's words: its title, what to `see`, and what figures.toml says of the paper's
    number and of what stands beside it; nothing if the paper has none.
    """

    title: str
    see: str
    paper: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Comparison:
    """A small table: headings, and rows of a label and a text per heading."""

    source: str
    caption: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@functools.cache
def descriptions(source: Path = SOURCE) -> dict[str, Description]:
    """All figures' words by name.

    Raises ValueError if the file is no TOML, or an entry lacks its title or what to see.
    """
    try:
        entries = tomllib.loads(source.read_text(encoding="utf-8"))
        return {name: Description(**entry) for name, entry in entries.items()}
    except (tomllib.TOMLDecodeError, TypeError) as problem:
        raise ValueError(
            f"{source} holds title, see and perhaps paper for each figure: {problem}"
        ) from problem


def comparison(description: Description, table: Path) -> Comparison | None:
    """The paper's numbers beside ours, from a figure's CSV; a number that is not there is a dash.

    None without a paper's number or a table.
    """
    paper = description.paper
    if not paper or not table.exists():
        return None
    with table.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    headings, found = ("paper", "ours"), []
    for one in paper.get("rows", ()):
        theirs, ours = (_pick(one[whose], rows) for whose in headings)
        found.append((one["label"], _format(theirs, exact=True), _format(ours)))
    if "rows" not in paper:
        headings, found = tuple(paper["columns"]), _listed(paper, rows)
    return Comparison(paper["source"], paper["caption"], headings, tuple(found)) if found else None


def _listed(paper: Mapping, rows: Rows) -> list[tuple[str, ...]]:
    """The rows of the table that `where` allows; with an `item`, those with a paper's number."""
    columns, published, found = paper["columns"], "item" in paper, []
    for row in rows:
        wanted = all(row.get(column) in some for column, some in paper.get("where", {}).items())
        if not wanted or (published and math.isnan(_number(row, columns["paper"]))):
            continue
        label = ", ".join(row[column] for column in paper["label"])
        numbers = (
            _format(_number(row, column), exact=name == "paper" and published)
            for name, column in columns.items()
        )
        found.append((label, *numbers))
    return found


def _pick(wanted: Mapping, rows: Rows) -> float:
    """A published number, or one taken from the rows of a table; NaN where there is none."""
    if "item" in wanted:
        from specdec_lib.workload.published import number  # late: `--help` needs no torch

        return number(wanted["item"], wanted["key"])
    where = wanted["where"].items()
    kept = (row for row in rows if all(row.get(column) == value for column, value in where))
    numbers = [_number(row, wanted["column"]) for row in kept]
    numbers = [one for one in numbers if not math.isnan(one)]
    if not numbers or (wanted["take"] == "only" and len(numbers) > 1):
        return math.nan
    return min(numbers) if wanted["take"] == "min" else max(numbers)


def _number(row: Mapping[str, str], column: str) -> float:
    try:
        return float(row.get(column) or "nan")
    except ValueError:
        return math.nan


def _format(value: float, *, exact: bool = False) -> str:
    """Three significant digits; a paper's number as it prints it, as far as four."""
    if math.isnan(value):
        return "–"
    return f"{value:.4g}" if exact or 1000 <= abs(value) < 10_000 else f"{value:.3g}"
