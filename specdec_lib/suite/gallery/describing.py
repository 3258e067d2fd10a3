"""Figures' titles and captions (figures.toml), and a paper's numbers beside ours, which are read
from the figures' tables.
"""

import functools
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandas import DataFrame

SOURCE = Path(__file__).with_name("figures.toml")


@dataclass(frozen=True)
class Description:
    """One figure's words: its title, what to `see`, and what figures.toml says of the paper's
    number and of what stands beside it; nothing if the paper has none.
    """

    title: str
    see: str
    paper: Mapping[str, object] = field(default_factory=dict)


@functools.cache
def descriptions() -> dict[str, Description]:
    """All figures' words by name."""
    entries = tomllib.loads(SOURCE.read_text(encoding="utf-8"))
    return {name: Description(**entry) for name, entry in entries.items()}


def comparison(description: Description, table: Path) -> dict[str, object] | None:
    """The paper's numbers beside ours, from a figure's CSV, as a small table: its source, caption,
    headings, and rows of a label and a text per heading; a number that is not there is a dash.
    None without a paper's number or a table.
    """
    import pandas as pd  # late: `--help` needs none

    paper = description.paper
    if not paper or not table.exists():
        return None
    rows = pd.read_csv(table, dtype=str, keep_default_na=False)
    headings, found = tuple(paper.get("columns", ("paper", "ours"))), []
    for one in paper.get("rows", ()):
        theirs, ours = (_pick(one[whose], rows) for whose in headings)
        found.append((one["label"], _format(theirs, exact=True), _format(ours)))
    if "rows" not in paper:
        published, columns = "item" in paper, paper["columns"]
        for column, some in paper.get("where", {}).items():
            rows = rows[rows[column].isin(some)]
        numbers = rows[list(columns.values())].apply(pd.to_numeric).astype(float)
        for at, own in numbers.iterrows():
            if published and math.isnan(own[columns["paper"]]):
                continue
            exact = {name: name == "paper" and published for name in columns}
            words = [_format(own[columns[name]], exact=one) for name, one in exact.items()]
            found.append((", ".join(rows.loc[at, paper["label"]]), *words))
    about = {name: paper[name] for name in ("source", "caption")}
    return about | {"headings": headings, "rows": tuple(found)} if found else None


def _pick(wanted: Mapping, rows: "DataFrame") -> float:
    """A published number, or one taken from the rows of a table; NaN where there is none."""
    if "item" in wanted:
        from specdec_lib.workload.published import number  # late: `--help` needs no torch

        return number(wanted["item"], wanted["key"])
    for column, value in wanted["where"].items():
        rows = rows[rows[column] == value]
    found = [float(one) for one in rows.get(wanted["column"], ()) if one]
    if not found or (wanted["take"] == "only" and len(found) > 1):
        return math.nan
    return min(found) if wanted["take"] == "min" else max(found)


def _format(value: float, *, exact: bool = False) -> str:
    """Three significant digits; a paper's number as it prints it, as far as four."""
    if math.isnan(value):
        return "–"
    return f"{value:.4g}" if exact or 1000 <= abs(value) < 10_000 else f"{value:.3g}"
