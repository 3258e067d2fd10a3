"""The `specdec` command: light help, one way to say an error, and every verb has its module."""

import subprocess
import sys

import pytest

from specdec_lib.core.commandline import Parser
from specdec_lib.suite import command

HEAVY = {"torch", "pandas", "plotly", "papermill", "transformers", "nbformat", "numpy"}


@pytest.mark.parametrize("words", [["--help"], ["reproduce", "--help"]])
def test_help_imports_no_heavy_package(words):
    code = (
        "import sys; from specdec_lib.suite.command import main\n"
        f"try: main({words})\n"
        f"except SystemExit: pass\nprint(sorted({HEAVY} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("usage: specdec") and done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    "words, said",
    [
        ("dance", "specdec: no verb 'dance'"),
        ("measure nothing", "specdec: no verb 'measure nothing'"),
        ("reproduce --only 77", "specdec reproduce: --only 77 names no notebook"),
        ("reproduce --colour", "specdec reproduce: unrecognized arguments: --colour"),
        ("gallery --out /no/folder", "specdec gallery: there is no figure folder /no/folder"),
    ],
)
def test_an_error_is_one_line_and_status_2(words, said, capsys):
    with pytest.raises(SystemExit, match="2"):
        command.main(words.split())
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(said)


def test_a_group_of_verbs_lists_its_own(capsys):
    command.main(["distil"])
    shown = [line.split()[:2] for line in capsys.readouterr().out.splitlines()[2:4]]
    assert shown == [["distil", "write"], ["distil", "teach"]]


@pytest.mark.parametrize(
    "raised, said",
    [
        (OSError(28, "No space left on device", "f.csv"), "f.csv: No space left on device"),
        (ValueError("one\n  two"), "one; two"),
        (ValueError("top_k must be 1"), "--top-k must be 1"),
        (ValueError("x" * 5000), "x" * 498 + "..." + "x" * 498),
    ],
)
def test_every_error_is_one_line_that_names_flags(raised, said, capsys, monkeypatch):
    def failing(_: list[str]) -> None:
        raise raised

    monkeypatch.setattr("specdec_lib.suite.gallery.building.main", failing)
    with pytest.raises(SystemExit, match="2"):
        command.main(["gallery"])
    assert capsys.readouterr().err == f"specdec gallery: {said}\n"


@pytest.mark.parametrize("given, least", [("--limit 0", 1), ("--sizes 3 -1", 1), ("--seed -1", 0)])
def test_counts_below_the_least_are_refused(given, least):
    parser = Parser("dance", "d")
    parser.add_common("--limit")
    parser.add_common("--seed", 0)
    parser.add_argument("--sizes", type=int, nargs=2)
    name, *_, number = given.split()
    with pytest.raises(ValueError, match=f"{name} counts from {least}, got {number}"):
        parser.parse_args(given.split())
