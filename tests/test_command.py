"""The `specdec` command: light help, one way to say an error, and every verb has its module."""

import subprocess
import sys
from importlib.util import find_spec

import pytest

from specdec_lib.core.commandline import OPTIONS, Parser
from specdec_lib.suite import command

HEAVY = {"torch", "pandas", "plotly", "papermill", "transformers", "nbformat", "numpy"}


@pytest.mark.parametrize("words", [["--help"], ["reproduce", "--help"], ["setup", "--help"]])
def test_help_imports_no_heavy_package(words):
    code = (
        "import sys; from specdec_lib.suite.command import main\n"
        f"try: main({words})\n"
        f"except SystemExit: pass\nprint(sorted({HEAVY} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("usage: specdec") and done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("verb", command.VERBS)
def test_every_verb_has_its_module(verb):
    assert find_spec(f"specdec_lib.{command.VERBS[verb][0]}") and len(verb.split()) <= 2


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
    assert shown == [["distil", "write"], ["distil", "describe"]]


def test_a_common_option_means_the_same_everywhere():
    parser = Parser("dance", "d")
    for name in OPTIONS:
        parser.add_common(name)
    parsed = parser.parse_args(["--limit", "3", "--top-k", "4", "--temperature", "1"])
    assert (parsed.limit, parsed.top_k, parsed.temperature, parsed.csv) == (3, 4, 1.0, None)
