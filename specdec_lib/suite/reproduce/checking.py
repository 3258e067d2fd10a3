"""Whether the tables that a run made are those that were there before."""

import re
from collections.abc import Iterator
from pathlib import Path

TIMED = re.compile(
    r"seconds|tokens_per_second|by_the_clock|(^|_)ms(_|$)"
)  # in the name of a column
SAME = "the same"


def compared_tables(before: Path, after: Path, number: str) -> Iterator[tuple[str, str]]:
    """The tables NN_name.csv of one notebook in two folders: yield each one's name, and `SAME` or
    what differs. Cells are compared as text; columns of measured time are not compared.
    """
    names = {path.name for folder in (before, after) for path in folder.glob(f"{number}_*.csv")}
    for name in sorted(names):
        yield name, _difference(before / name, after / name)


def _difference(before: Path, after: Path) -> str:
    import pandas as pd  # late: `--help` needs none

    if not after.exists():
        return f"differs: it is in {before.parent} and was not made again"
    if not before.exists():
        return f"differs: it was made and is not in {before.parent}"
    old, new = (pd.read_csv(path, dtype=str, keep_default_na=False) for path in (before, after))
    timed = [name for name in old if name in new and TIMED.search(str(name))]
    try:
        pd.testing.assert_frame_equal(old.drop(columns=timed), new.drop(columns=timed))
    except AssertionError as problem:
        lines = [line.strip() for line in str(problem).splitlines()]
        return f"differs: {'; '.join(filter(None, lines))}"
    return SAME
