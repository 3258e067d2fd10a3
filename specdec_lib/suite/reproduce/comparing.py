"""Compares the tables of two runs of a notebook, all but the columns of seconds."""

import csv
import re
from collections.abc import Iterator
from pathlib import Path

TIMED = re.compile(r"seconds|per_second|by_the_clock|(^|_)ms(_|$)")  # in the name of a column


def table_differences(before: Path, after: Path, number: str) -> Iterator[str]:
    """A line for each difference between the tables of one notebook in two folders.

    Columns of measured time may differ.
    """
    old, new = (
        {path.name: path for path in folder.glob(f"{number}_*.csv")} for folder in (before, after)
    )
    for name in sorted(old.keys() | new.keys()):
        if name in old and name in new:
            yield from (f"{name}: {problem}" for problem in _compare(old[name], new[name]))
        else:
            yield f"{name} is only in {before if name in old else after}"


def _compare(before: Path, after: Path) -> Iterator[str]:
    (head, *rows), (other_head, *other_rows) = _read(before), _read(after)
    if head != other_head:
        yield f"columns {', '.join(head)} became {', '.join(other_head)}"
    elif len(rows) != len(other_rows):
        yield f"{len(rows)} rows became {len(other_rows)}"
    else:
        pairs = list(zip(rows, other_rows, strict=True))
        for at, column in enumerate(head):
            changed = [n for n, (one, other) in enumerate(pairs) if one[at] != other[at]]
            if changed and not TIMED.search(column):
                old, new = (row[at] for row in pairs[changed[0]])
                yield (
                    f"{column} differs in {len(changed)} of {len(rows)} rows, first in row"
                    f" {changed[0] + 1}: {old} became {new}"
                )


def _read(table: Path) -> list[list[str]]:
    with table.open(encoding="utf-8", newline="") as lines:
        return list(csv.reader(lines)) or [[]]
