from pathlib import Path

import papermill
import pytest
from toys import GOOD, toys, write_toy

from specdec_lib.suite.notebook import read_parameters
from specdec_lib.suite.reproduce import command, comparing, plan
from specdec_lib.suite.reproduce.command import main
from specdec_lib.suite.reproduce.options import parse_options

__all__ = ["toys"]


def test_check_compares_tables_but_for_seconds(
    toys: Path, figures: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = (
        "import time\nfrom pathlib import Path\nimport os\n"
        "table = 'width,build_seconds\\n%d,%r\\n' % (width, time.time())\n"
    )
    write_toy(
        toys,
        "00_toy",
        body + "Path(os.environ['SPECDEC_FIGURES'], '{number}_toy.csv').write_text(table)",
    )
    write_toy(
        toys,
        "01_toy",
        GOOD.replace("str(width)", "__import__('random').Random(width).random().hex()"),
    )
    assert main([], notebooks=toys) == 0
    before = (figures / "00_toy.csv").read_text()
    assert main(["--check", "--jobs", "2"], notebooks=toys) == 0
    assert (
        "the tables are those in" in capsys.readouterr().out
        and (figures / "00_toy.csv").read_text() == before
    )
    (figures / "00_toy.csv").write_text(before.replace("\n2,", "\n3,"))
    assert main(["--check"], notebooks=toys) == 1
    assert (
        "00_toy.csv: width differs in 1 of 1 rows, first in row 1: 3 became 2"
        in capsys.readouterr().out
    )
    with pytest.raises(ValueError, match="were made with the defaults; --check needs the same"):
        main(["--check", "--set", "width=3"], notebooks=toys)


@pytest.mark.parametrize(
    "before, after, found",
    [
        ("a,b\n1,2\n", "a,b\n1,2\n", []),
        *(
            (f"a,{name}\n1,2\n", f"a,{name}\n1,3\n", [])
            for name in ("seconds", "lookup_microseconds", "tokens_per_second", "ms_per_token")
        ),
        (
            "a,second_guess\n1,2\n",
            "a,second_guess\n1,3\n",
            ["second_guess differs in 1 of 1 rows, first in row 1: 2 became 3"],
        ),
        ("a,b\n1,2\n", "a,b\n1,3\n", ["b differs in 1 of 1 rows, first in row 1: 2 became 3"]),
        ("a,b\n1,2\n", "a,c\n1,2\n", ["columns a, b became a, c"]),
        ("a\n1\n", "a\n1\n2\n", ["1 rows became 2"]),
        ("", "a\n", ["columns  became a"]),
    ],
)
def test_tables_are_compared(tmp_path: Path, before: str, after: str, found: list[str]) -> None:
    for name, text in (("before", before), ("after", after)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "00_toy.csv").write_text(text)
    told = list(comparing.table_differences(tmp_path / "before", tmp_path / "after", "00"))
    assert told == [f"00_toy.csv: {one}" for one in found]
    (tmp_path / "after" / "00_toy.csv").unlink()
    assert list(comparing.table_differences(tmp_path / "before", tmp_path / "after", "00")) == [
        f"00_toy.csv is only in {tmp_path / 'before'}"
    ]


def test_changed_parameters_in_the_tracked_folder_are_announced(
    toys: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = plan.NotebookRun(write_toy(toys, "00_toy", GOOD), command.REPOSITORY / "figures")
    command._announce([run], parse_options(["--profile", "full"]))
    assert "--out DIR" in capsys.readouterr().err
    command._announce([run], parse_options([]))
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "path", sorted(command.NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem
)
def test_parameters_are_read_as_papermill_reads_them(path: Path) -> None:
    theirs = {
        name: (one["inferred_type_name"], one["default"], one["help"])
        for name, one in papermill.inspect_notebook(str(path)).items()
    }
    assert {
        name: (one.annotation, one.default, one.help) for name, one in read_parameters(path).items()
    } == theirs
