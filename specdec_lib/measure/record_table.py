"""The record table: the fewest milliseconds per token on the embedded prompts, by machine and
edition. Our rows are the fastest methods of the stored races of ideas; those of others are what
`specdec bench --mine` prints, and stay as they are.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pandas as pd

from specdec_lib.measure.idea_tables import EMBEDDED, EXACT, raced_machines, stored_ideas
from specdec_lib.measure.pages import RESULTS, read_marked
from specdec_lib.measure.ratios import Interval, interval, sampling_of, with_interval
from specdec_lib.measure.settings.ideas import AUTOREGRESSIVE, METHODS
from specdec_lib.measure.settings.setting import GREEDY, TOP_50

MARK = "records"
TARGETS = (EXACT["exact"], "int8")
SAMPLERS = (GREEDY, TOP_50)
SAMPLINGS = tuple(sampling_of(one.temperature, one.top_k) for one in SAMPLERS)
HEADS = (
    "machine",
    "target",
    "draft",
    "prompts",
    *(f"{name}: ms per token" for name in SAMPLINGS),
    "exact",
    "date",
)
GREEDY_CELL = HEADS.index(f"{SAMPLINGS[0]}: ms per token")
DRAFT_CELL = HEADS.index("draft")


@dataclass(frozen=True)
class Record:
    """A row of the table.

    target          the target's number format, "float32" or "int8"
    draft           a method's name, or `module:name` of somebody's own, in code
    milliseconds    per token, by sampler in words, with the interval over prompts
    exact           whether every text was that of plain decoding in the same run
    """

    machine: str
    target: str
    draft: str
    prompts: str
    milliseconds: Mapping[str, Interval]
    exact: bool
    date: str

    def row(self) -> str:
        """The row as Markdown."""
        times = [with_interval(*self.milliseconds[name]) for name in SAMPLINGS]
        exact = "yes" if self.exact else "no"
        cells = [self.machine, self.target, self.draft, self.prompts, *times, exact, self.date]
        return f"| {' | '.join(cells)} |"


def our_records() -> list[Record]:
    """Per machine with a stored race of ideas and edition the method that is fastest under each
    sampler, on embedded prompts.
    """
    found = []
    for machine in raced_machines():
        stored = stored_ideas(machine)
        own = stored[stored.family == EMBEDDED]
        for edition in own.edition.unique():
            rows = own[own.edition == edition]
            found += [_of_method(machine, rows, method) for method in fastest_methods(rows)]
    return found


def fastest_methods(rows: pd.DataFrame) -> list[str]:
    """The methods of a race in one edition that are fastest under a sampler, each once."""
    drafted = rows[rows.method != AUTOREGRESSIVE]
    sums = drafted.groupby(["temperature", "method"])[["seconds", "tokens"]].sum()
    pace = (sums.seconds / sums.tokens).unstack("method")
    return list(dict.fromkeys(map(str, pace.idxmin(axis=1))))


def _of_method(machine: str, rows: pd.DataFrame, method: str) -> Record:
    """The record of a method in one edition; a race stops at a text that is not the target's."""
    own = rows[rows.method == method]
    edition = str(own.edition.iloc[0])
    prompts = f"{own.prompt.nunique()} embedded"
    times = milliseconds_of(own)
    target = EXACT.get(edition, edition)
    return Record(machine, target, method, prompts, times, exact=True, date=own.date.max())


def milliseconds_of(rows: pd.DataFrame) -> dict[str, Interval]:
    """Milliseconds per token of one method with their 95 % interval, by sampler in words."""
    groups = rows.groupby(["temperature", "top_k"], sort=False)
    return {
        sampling_of(float(own.temperature.iloc[0]), float(own.top_k.iloc[0])): interval(
            1000 * own.seconds, own.tokens
        )
        for _, own in groups
    }


def records_page(entered: Iterable[str]) -> str:
    """The table as the page of results shows it: ours and the rows that were entered, by machine
    and target, the fastest first.

    Raises ValueError for an entered row that is none.
    """
    rows = [one.row() for one in our_records()] + [*map(checked_row, entered)]
    rows.sort(key=_place)
    lines = [f"| {' | '.join(HEADS)} |", "|---" * len(HEADS) + "|", *rows]
    return "\n".join(lines)


def entered_rows(page: str = "") -> list[str]:
    """The rows of drafts that are not ours, as the page of results (or another text) has them."""
    text = page or RESULTS.read_text(encoding="utf-8")
    rows = read_marked(MARK, text).splitlines()[2:]
    return [row for row in rows if not _is_ours(_cells(row))]


def checked_row(row: str) -> str:
    """The row itself; raises ValueError unless it has the cells of a record of an exact draft."""
    cells = _cells(row)
    if len(cells) != len(HEADS):
        raise ValueError(f"a record has the cells {', '.join(HEADS)}, got {row}")
    if cells[HEADS.index("exact")] != "yes":
        raise ValueError(f"only a draft that passed the exactness test has a record, got {row}")
    for name in SAMPLINGS:
        try:
            float(cells[HEADS.index(f"{name}: ms per token")].split()[0])
        except (ValueError, IndexError):
            raise ValueError(f"a record has milliseconds per token, got {row}") from None
    if not re.fullmatch(r"\d+ embedded", cells[HEADS.index("prompts")]):
        raise ValueError(f"a record has embedded prompts, such as 40 embedded, got {row}")
    if cells[HEADS.index("target")] not in TARGETS:
        raise ValueError(f"a record's target is one of {', '.join(TARGETS)}, got {row}")
    return row


def _is_ours(cells: list[str]) -> bool:
    return len(cells) > DRAFT_CELL and cells[DRAFT_CELL] in METHODS


def _cells(row: str) -> list[str]:
    return [one.strip() for one in row.strip().strip("|").split("|")]


def _place(row: str) -> tuple[str, str, float]:
    """What rows are sorted by."""
    cells = _cells(row)
    return cells[0], cells[1], float(cells[GREEDY_CELL].split()[0])
