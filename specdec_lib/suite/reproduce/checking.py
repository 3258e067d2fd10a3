"""Whether two runs say the same: their tables compared, all but the columns of seconds."""

import csv
import re
from collections.abc import Iterator
from pathlib import Path

TIMED = re.compile(
    r"seconds|per_second|by_the_clock|(^|_)ms(_|$)"
)  # lookup_microseconds, tokens_per_second, ms_per_token, …


def timed(column: str) -> bool:
    """Whether a column holds what a clock said, going by its name."""
    return bool(TIMED.search(column))


def differences(before: Path, after: Path, number: str) -> Iterator[str]:
    """What differs between the tables of one notebook in two folders, in words; columns of seconds
    may differ.
    """
    tables = [
        {path.name: path for path in folder.glob(f"{number}_*.csv")} for folder in (before, after)
    ]
    for name in sorted(set().union(*tables)):
        if name not in tables[0] or name not in tables[1]:
            yield f"{name} is only in {before if name in tables[0] else after}"
        else:
            yield from (
                f"{name}: {problem}" for problem in _compared(tables[0][name], tables[1][name])
            )


def _compared(before: Path, after: Path) -> Iterator[str]:
    (head, *rows), (other_head, *other_rows) = _read(before), _read(after)
    if head != other_head:
        yield f"columns {', '.join(head)} became {', '.join(other_head)}"
    elif len(rows) != len(other_rows):
        yield f"{len(rows)} rows became {len(other_rows)}"
    else:
        for at, column in enumerate(head):
            other = [
                (row, old[at], new[at])
                for row, (old, new) in enumerate(zip(rows, other_rows, strict=True), 1)
                if old[at] != new[at]
            ]
            if other and not timed(column):
                row, old, new = other[0]
                yield f"{column} differs in {len(other)} of {len(rows)} rows, first in row {row}: {old} became {new}"


def _read(table: Path) -> list[list[str]]:
    with table.open(encoding="utf-8", newline="") as lines:
        return list(csv.reader(lines)) or [[]]
