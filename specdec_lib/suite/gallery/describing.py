"""Figures' titles and captions (figures.toml), and a paper's numbers beside ours, which are read
from the figures' tables.
"""

import functools
import math
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandas import DataFrame

SOURCE = Path(__file__).with_name("figures.toml")


@functools.cache
def descriptions() -> dict[str, dict]:
    """All figures' words by name: `title`, what to `see`, and `paper` where a paper has numbers."""
    return tomllib.loads(SOURCE.read_text(encoding="utf-8"))


def comparison(paper: Mapping, table: Path) -> dict[str, object] | None:
    """The paper's numbers beside ours, from a figure's CSV, as a small table: its source, caption,
    headings, and rows of a label and a text per heading; a number that is not there is a dash.
    None without a paper's number or a table.
    """
    import pandas as pd  # late: `--help` needs none

    if not paper or not table.exists():
        return None
    rows = pd.read_csv(table, dtype=str, keep_default_na=False)
    headings, published = tuple(paper.get("columns", ("paper", "ours"))), "item" in paper
    found = []
    for one in paper.get("rows", ()):
        theirs, ours = (_pick(one[name], rows) for name in ("paper", "ours"))
        found.append((one["label"], _format(theirs, exact=True), _format(ours)))
    if "rows" not in paper:
        for column, some in paper.get("where", {}).items():
            rows = rows[rows[column].isin(some)]
        numbers = rows[list(paper["columns"].values())].apply(pd.to_numeric)
        if published:
            numbers = numbers[numbers[paper["columns"]["paper"]].notna()]
        for at, own in numbers.iterrows():
            exact = [published and name == "paper" for name in headings]
            words = map(_format, own, exact)
            found.append((", ".join(rows.loc[at, paper["label"]]), *words))
    about = {name: paper[name] for name in ("source", "caption")}
    return about | {"headings": headings, "rows": tuple(found)} if found else None


def _pick(wanted: Mapping, rows: "DataFrame") -> float:
    """A published number, or one taken from the rows of a table; NaN where there is none."""
    import pandas as pd

    from specdec_lib.workload.published import number  # late: `--help` needs no torch

    if "item" in wanted:
        return number(wanted["item"], wanted["key"])
    for column, value in wanted["where"].items():
        rows = rows[rows[column] == value]
    found = rows.get(wanted["column"], pd.Series(dtype=float))
    return pd.to_numeric(found).agg(wanted["take"])


def _format(value: float, exact: bool = False) -> str:
    """Three significant digits; a paper's number as it prints it, as far as four."""
    if math.isnan(value):
        return "–"
    return f"{value:.4g}" if exact or 1000 <= abs(value) < 10_000 else f"{value:.3g}"
