import pytest
from toys import GOOD, write_toy

from specdec_lib.suite.notebook import read_parameters
from specdec_lib.suite.reproduce import command
from specdec_lib.suite.reproduce.command import main

TIMED = (
    "import time\nfrom pathlib import Path\nimport os\n"
    "table = 'width,build_seconds\\n%d,%r\\n' % (width, time.time())\n"
    "Path(os.environ['SPECDEC_FIGURES'], '{number}_toy.csv').write_text(table)"
)


def test_check_compares_tables_but_for_seconds(toys, figures, capsys):
    write_toy(toys, "00_toy", TIMED)
    write_toy(toys, "01_toy", TIMED)
    assert main(["--only", "00"], notebooks=toys) == 0
    table = figures / "00_toy.csv"
    before = table.read_text()
    (figures / "01_toy.csv").write_text(before.replace("\n2,", "\n3,"))
    assert main(["--check", "--jobs", "2"], notebooks=toys) == 1
    said = "01_toy.csv: width differs in 1 of 1 rows, first in row 1: 3 became 2"
    told = capsys.readouterr().out
    assert said in told and "00_toy.csv" not in told and table.read_text() == before
    with pytest.raises(ValueError, match="were made with the defaults; --check needs the same"):
        main(["--check", "--set", "width=3"], notebooks=toys)


DIFFERS = "{} differs in 1 of 1 rows, first in row 1: 2 became 3"
TIMES = ("seconds", "lookup_microseconds", "tokens_per_second", "ms_per_token")
TABLES = [
    ("a,b\n1,2\n", "a,b\n1,2\n", []),
    *((f"a,{name}\n1,2\n", f"a,{name}\n1,3\n", []) for name in TIMES),
    ("a,second_guess\n1,2\n", "a,second_guess\n1,3\n", [DIFFERS.format("second_guess")]),
    ("a,b\n1,2\n", "a,b\n1,3\n", [DIFFERS.format("b")]),
    ("a,b\n1,2\n", "a,c\n1,2\n", ["columns a, b became a, c"]),
    ("a\n1\n", "a\n1\n2\n", ["1 rows became 2"]),
]


@pytest.mark.parametrize("before, after, found", TABLES)
def test_tables_are_compared(tmp_path, before, after, found):
    one, other = tmp_path / "before", tmp_path / "after"
    for folder, text in ((one, before), (other, after)):
        folder.mkdir()
        (folder / "00_toy.csv").write_text(text)
    differences = list(command.table_differences(one, other, "00"))
    assert differences == [f"00_toy.csv: {each}" for each in found]
    (other / "00_toy.csv").unlink()
    missing = list(command.table_differences(one, other, "00"))
    assert missing == [f"00_toy.csv is only in {one}"]


@pytest.mark.parametrize(
    "parameters, found",
    [
        ("width: int = 2  # branches", {"width": ("int", "2", "branches")}),
        ("width = 2", {"width": ("None", "2", "")}),
        ("", {}),
    ],
)
def test_parameters_are_read_with_their_types_and_comments(toys, parameters, found):
    path = write_toy(toys, "00_{toy}", GOOD, parameters)
    names = "inferred_type_name", "default", "help"
    read = read_parameters(path).items()
    assert {name: tuple(one[part] for part in names) for name, one in read} == found
    path.write_text("[]")
    with pytest.raises(ValueError, match="is no notebook"):
        read_parameters(path)
