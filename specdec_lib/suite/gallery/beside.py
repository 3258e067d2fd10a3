"""A paper's numbers beside ours, for the figures that show them: rows of the scorecard's table."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandas import DataFrame

SCORECARD = "06_scorecard.csv"
PAPERS = {"staged": "Spector and Ré 2023", "cascade": "Chen et al. 2024"}
COLUMNS = ("paper", "item", "claim", "domain", "unit", "by", "paper_value", "ours", "low", "high")
WAYS = {  # how ours was found, in words
    "clock": "by the clock",
    "counted": "counted",
    "SWI": "counted, as SWI",
    "predicted": "predicted",
}
MISSING = "–"  # where a paper prints no number, or nothing here can be held against it


@dataclass(frozen=True)
class Beside:
    """Some printed numbers of one table or figure of a paper, and ours.

    caption    the paper, its table or figure, the unit, and how ours were found
    rows       per number: the claim, the paper's, ours with its 95 % interval, and the verdict
    """

    caption: str
    rows: tuple[tuple[str, str, str, str], ...]


def read_scorecard(folder: Path) -> "DataFrame | None":
    """The table behind the scorecard in a figure folder; None if there is none.

    Raises ValueError if it lacks a column.
    """
    import pandas as pd  # late: `--help` needs none

    path = folder / SCORECARD
    if not path.exists():
        return None
    scores = pd.read_csv(path)
    missing = [name for name in (*COLUMNS, "prompts", "verdict") if name not in scores]
    if missing:
        raise ValueError(f"{path} is no scorecard: it lacks the columns {', '.join(missing)}")
    return scores.fillna({"claim": "", "domain": "", "unit": "", "by": ""})


def numbers_beside(claims: Sequence[str], scores: "DataFrame | None") -> list[Beside]:
    """The rows of the scorecard that a figure's `claims` name, in their order.

    claims    "staged Table 2" for a whole item, "cascade Table 2: GSM8K, BASE, MS" for one claim
    scores    as `read_scorecard` gives it; None where no scorecard was made

    A claim that the scorecard lacks comes without rows, and its caption says so.
    """
    tables = []
    for name in claims:
        found = _rows_of(name, scores)
        if found is None:
            caption = f"{name}: not in {SCORECARD} beside this page; notebook 06 makes it"
            tables.append(Beside(caption, ()))
            continue
        for _, group in found.groupby(["item", "unit"], sort=False):
            tables.append(_table(group))
    return _joined(tables)


def _rows_of(name: str, scores: "DataFrame | None") -> "DataFrame | None":
    """The scorecard's rows of an item or a claim; None if it has none."""
    if scores is None:
        return None
    items = scores["paper"] + " " + scores["item"]
    found = scores[(items == name) | (items + ": " + scores["claim"] == name)]
    return None if found.empty else found


def _table(group: "DataFrame") -> Beside:
    """Rows of one item in one unit."""
    from specdec_lib.measure.scorecard.claims import readable

    first = group.iloc[0]
    ways = [WAYS[way] for way in dict.fromkeys(group["by"]) if way in WAYS]
    found_by = f"; ours {' and '.join(ways)}" if ways else ""
    unit = f": {first['unit']}" if first["unit"] else ""
    paper = PAPERS.get(first["paper"], first["paper"])
    shown = readable(group).reset_index()
    rows = []
    for row in shown.itertuples():
        called = f"{row.claim} (ours: {row.domain})" if row.domain else row.claim
        rows.append((called, row.paper or MISSING, row.ours or MISSING, row.verdict))
    return Beside(f"{paper}, {first['item']}{unit}{found_by}", tuple(rows))


def _joined(tables: list[Beside]) -> list[Beside]:
    """The tables, those of one caption as one."""
    rows: dict[str, tuple] = {}
    for one in tables:
        rows[one.caption] = rows.get(one.caption, ()) + one.rows
    return [Beside(caption, found) for caption, found in rows.items()]
