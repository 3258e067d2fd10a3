import subprocess
import sys
from pathlib import Path

import papermill
import pytest
from toys import GOOD, toys, write_toy

from specdec_lib.suite import notebook
from specdec_lib.suite.reproduce import checking, command, main, plan, progress
from specdec_lib.suite.reproduce.progress import Lines

__all__ = ["toys"]


def test_check_compares_tables_but_for_seconds(
    toys: Path, figures: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = "import time\nfrom pathlib import Path\nimport os\ntable = 'width,build_seconds\\n%d,%r\\n' % (width, time.time())\n"
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
    assert main(["--check", "--set", "width=3"], notebooks=toys) == 2
    assert "were made with the defaults; --check needs the same" in capsys.readouterr().err


@pytest.mark.parametrize(
    "before, after, found",
    [
        ("a,b\n1,2\n", "a,b\n1,2\n", []),
        ("a,tokens_per_second\n1,2\n", "a,tokens_per_second\n1,3\n", []),
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
    told = list(checking.differences(tmp_path / "before", tmp_path / "after", "00"))
    assert told == [f"00_toy.csv: {one}" for one in found]
    (tmp_path / "after" / "00_toy.csv").unlink()
    assert list(checking.differences(tmp_path / "before", tmp_path / "after", "00")) == [
        f"00_toy.csv is only in {tmp_path / 'before'}"
    ]


def test_only_columns_of_a_clock_are_timed() -> None:
    assert all(
        map(
            checking.timed,
            (
                "seconds",
                "build_seconds",
                "lookup_microseconds",
                "tokens_per_second",
                "ms_per_token",
                "relative_by_the_clock",
            ),
        )
    )
    assert not any(
        map(checking.timed, ("tokens", "second_guess", "items", "rate", "tokens_per_round"))
    )


def test_progress_elsewhere_than_in_a_terminal_is_a_line_now_and_then() -> None:
    said: list[str] = []
    lines = Lines("[1/2] 00_toy", every_seconds=0.0, say=said.append)
    for text in ("\r0/3 cells", "\r1/3 cells   ", "\r", "\r2/3 cells", "\r3/3 cells"):
        lines.write(text)
    assert said == ["[1/2] 00_toy: 1/3 cells", "[1/2] 00_toy: 2/3 cells"]
    rare = Lines("[1/2] 00_toy", every_seconds=1e6, say=said.append)
    rare.write("\r1/3 cells")
    assert len(said) == 2


def test_the_beginning_of_each_notebook_is_told(
    toys: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    write_toy(toys, "00_toy", GOOD)
    assert main([], notebooks=toys) == 0
    assert "[1/1] 00_toy …" in capsys.readouterr().err


def test_changed_parameters_in_the_tracked_folder_and_long_profiles_are_announced(
    toys: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = plan.Run(
        write_toy(toys, "00_toy", GOOD), command.REPOSITORY / "figures", "full", {"width": 3}
    )
    (toys / "full").mkdir()
    (toys / "full" / "00.yml").write_text("# About two hours.\nwidth: 3  # an hour each\n")
    command._announce([run], command.options(["--profile", "full"]))
    said = capsys.readouterr().err
    assert "About two hours." in said and "an hour each" in said and "--out DIR" in said
    command._announce([run], command.options([]))
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
        name: (one.annotation, one.default, one.help)
        for name, one in notebook.parameters(path).items()
    } == theirs


def test_the_command_starts_without_the_packages_that_a_run_needs() -> None:
    heavy = ("torch", "pandas", "plotly", "papermill", "transformers", "nbformat")
    code = f"import sys; from specdec_lib.suite.reproduce import main; main(['--list']); print([name for name in {heavy} if name in sys.modules])"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.splitlines()[-1] == "[]"
