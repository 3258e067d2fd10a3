"""`specdec reproduce --check`: whether a new run makes the tables that are there."""

import re

import pytest
from toys import write_toy

from specdec_lib.suite.reproduce.checking import SAME, compared_tables
from tests.verbs import reproduce

TIMED = (
    "import time\nfrom pathlib import Path\nimport os\n"
    "table = 'width,build_seconds\\n%d,%r\\n' % (width, time.time())\n"
    "Path(os.environ['SPECDEC_FIGURES'], '{number}_toy.csv').write_text(table)"
)


def test_check_compares_tables_but_for_seconds_and_stores_nothing(toys, figures, capsys):
    """Control: a table with another width differs, and so does a run with another parameter."""
    write_toy(toys, "00_toy", TIMED)
    write_toy(toys, "01_toy", TIMED)
    assert reproduce(["--only", "00"], toys) == 0
    table = figures / "00_toy.csv"
    before = table.read_text()
    capsys.readouterr()
    assert reproduce(["--check", "--only", "00"], toys) == 0
    said = f"00_toy.csv: the same\n1 of 1 tables are those in {figures}, all but measured times\n"
    assert capsys.readouterr().out == said
    (figures / "01_toy.csv").write_text(before.replace("\n2,", "\n3,"))
    assert reproduce(["--check"], toys) == 1
    same, differs, counted = capsys.readouterr().out.splitlines()
    assert same == "00_toy.csv: the same" and counted.startswith("1 of 2 tables are those in ")
    where = 'DataFrame.iloc[:, 0] (column name="width") are different'
    assert differs.startswith(f"01_toy.csv: differs: {where}")
    assert reproduce(["--check", "--only", "00", "--set", "width=4"], toys) == 1
    assert table.read_text() == before
    assert [path.name for path in figures.glob("*.csv")] == ["00_toy.csv", "01_toy.csv"]


def test_a_notebook_that_fails_while_it_is_checked_is_named_and_the_others_are_compared(
    toys, figures, capsys
):
    write_toy(toys, "00_toy", TIMED)
    assert reproduce([], toys) == 0
    write_toy(toys, "01_bad", "zero = 0\nwidth / zero")
    capsys.readouterr()
    assert reproduce(["--check"], toys) == 1
    said = capsys.readouterr()
    assert said.out.startswith("00_toy.csv: the same\n1 of 1 tables")
    assert "error: 01_bad.ipynb, code cell In [2]" in said.err


TIMES = ("seconds", "lookup_microseconds", "tokens_per_second", "ms_per_token")
TABLES = [
    ("a,b\n1,2\n", "a,b\n1,2\n", ""),
    *((f"a,{name}\n1,2\n", f"a,{name}\n1,3\n", "") for name in TIMES),
    ("a,second_guess\n1,2\n", "a,second_guess\n1,3\n", 'column name="second_guess".*2.*3'),
    ("a,b\n1,2\n", "a,b\n1,2.0\n", 'column name="b"'),
    ("a,b\n1,2\n", "a,c\n1,2\n", "columns are different"),
    ("a,seconds\n1,2\n", "a\n1\n", "shape mismatch"),
    ("a\n1\n", "a\n1\n2\n", "shape mismatch"),
]


@pytest.mark.parametrize("before, after, found", TABLES)
def test_tables_are_compared(tmp_path, before, after, found):
    folders = tmp_path / "before", tmp_path / "after"
    for folder, text in zip(folders, (before, after), strict=True):
        folder.mkdir()
        (folder / "00_toy.csv").write_text(text)
    [(name, difference)] = compared_tables(*folders, "00")
    assert name == "00_toy.csv"
    assert re.fullmatch(f"differs: .*{found}.*" if found else SAME, difference)
    (folders[1] / "00_toy.csv").unlink()
    [(_, missing)] = compared_tables(*folders, "00")
    [(_, new)] = compared_tables(*reversed(folders), "00")
    assert missing == f"differs: it is in {folders[0]} and was not made again"
    assert new == f"differs: it was made and is not in {folders[0].with_name('after')}"
