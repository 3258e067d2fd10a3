"""The `specdec` command: light help, checked places, and any bad option ends in one line."""

import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import pytest

from specdec_lib.core.files import check_output, write_whole
from specdec_lib.measure.cluster import LadderRecipe
from specdec_lib.measure.commands.commandline import Parser
from specdec_lib.measure.commands.pages import replace_marked
from specdec_lib.suite import command
from specdec_lib.suite.command import VERBS, main

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
    assert shown == [["distil", "passages"], ["distil", "write"]]


@pytest.mark.parametrize(
    "raised, said",
    [
        (OSError(28, "No space left on device", "f.csv"), "f.csv: No space left on device"),
        (OSError(28, "No space left on device"), "[Errno 28] No space left on device"),
        (ValueError("one\n  two"), "one; two"),
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


@pytest.mark.parametrize("verb, said", [("compare", "--top-k must be 1"), ("ties", "top_k must")])
def test_a_keyword_becomes_a_flag_of_the_verb_if_that_has_it(verb, said, capsys, monkeypatch):
    def failing(_: object) -> None:
        raise ValueError("top_k must be 1")

    monkeypatch.setattr("specdec_lib.measure.comparing.load_given", failing)
    with pytest.raises(SystemExit, match="2"):
        command.main([verb])
    assert capsys.readouterr().err.startswith(f"specdec {verb}: {said}")


@pytest.mark.parametrize("given, least", [("--limit 0", 1), ("--sizes 3 -1", 1), ("--seed -1", 0)])
def test_counts_below_the_least_are_refused(given, least):
    parser = Parser("dance", "d")
    parser.add_common("--limit")
    parser.add_common("--seed", 0)
    parser.add_argument("--sizes", type=int, nargs=2)
    name, *_, number = given.split()
    with pytest.raises(ValueError, match=f"{name} counts from {least}, got {number}"):
        parser.parse_args(given.split())


@pytest.fixture
def link(tmp_path: Path) -> Path:
    """A link, called like a table, to a file of somebody's own."""
    (tmp_path / "mine").write_text("mine")
    found = tmp_path / "table.csv"
    found.symlink_to(tmp_path / "mine")
    return found


def test_a_link_a_device_and_a_folder_are_never_replaced(link, tmp_path):
    for place, kind in (link, "a link"), (Path("/dev/full"), "a device"), (tmp_path, "a folder"):
        for refuses in (check_output, lambda path: write_whole(path, b"")):
            with pytest.raises(ValueError, match=f"{place} is {kind}, and only a file is replaced"):
                refuses(place)
    assert link.is_symlink() and link.read_text() == "mine" and not Path("/dev/full").is_file()


MEASURING = "acceptance.prediction cascade.variants int8_quality domain_table"
MEASURING += " latency.measuring bench learning rule_bench.verifying text_writing"


@pytest.mark.parametrize("module", MEASURING.split())
def test_a_place_that_cannot_be_written_is_found_before_measuring(module, link, monkeypatch):
    verb = import_module(f"specdec_lib.measure.{module}")
    monkeypatch.setattr(verb, "PLACE", link, raising=False)
    for name in "table_file", "text_file":
        monkeypatch.setattr(verb, name, lambda _: link, raising=False)
    for name in "load_ladder", "every_domain", "load_prompts", "known_texts":
        monkeypatch.setattr(verb, name, lambda *_, **__: pytest.fail("loaded"), raising=False)
    monkeypatch.setattr(LadderRecipe, "load", lambda _: pytest.fail("loaded"))
    with pytest.raises(ValueError, match=r"is a link|/dev/full cannot be written to"):
        verb.main(["--out", "/dev/full"] if module == "bench" else [])


@pytest.mark.parametrize(
    "given, said",
    [
        ("--csv /dev/full", "--csv names a file that ends in .csv, got /dev/full"),
        ("--csv {0}/prompts.jsonl", "--csv names a file that ends in .csv"),
        ("--csv {0}/table.csv", "table.csv is a link"),
        ("--csv {0}/mine/table.csv", "mine cannot be written to (File exists)"),
        ("--out {0} --text {0}/../{1}", "which --text reads; name another"),
        ("--out {0}/long", "is no path (File name too long)"),
        ("--text {0}/loop/text", "is no path (Too many levels of symbolic links)"),
        ("--out=", "--out: a path has a name, got ''"),
        ("--out ~nobody_of_this_name/x", "is no path (Could not determine home directory"),
    ],
)
def test_a_wrong_place_is_refused_in_one_short_line(given, said, link, tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    parser = Parser("dance", "d")
    parser.add_argument("--text", type=Path)
    parser.add_common("--csv")
    parser.add_common("--out")
    words = given.replace("long", "n" * 300).format(tmp_path, tmp_path.name).split()
    with pytest.raises(ValueError) as refused:
        parser.parse_args(words)
    (line,) = str(refused.value).splitlines()
    assert said in line and len(line) < 400


NUMBERS = "0 -1 1 7 x 1.5 nan inf -inf 1e999 99999999999999999999999 0x10 1_0 ٣".split()
PLACES = ["/dev/full", "/dev/null", "/proc/none/x", "/", ".", "..", "~no_one/x", "a/b/c", "a.csv"]
TEXTS = ["", " ", "é", "🦊", "\ud800", "{x}", "${HOME}", "a" * 400, "a\nb", "--", "-x", "<b>", "%s"]
VALUES = (*NUMBERS, *PLACES, *TEXTS)
SECONDS = 5.0


class Began(Exception):
    """The command line was taken, and the work would begin."""


@pytest.fixture
def parsed(monkeypatch, tmp_path):
    """Verbs stop where their work begins; the parser that the last one used, in a list."""
    found, parse = [], Parser.parse_args

    def stop(parser: Parser, *arguments: object) -> None:
        found[:] = [parser]
        parse(parser, *arguments)
        raise Began

    monkeypatch.setattr(Parser, "parse_args", stop)
    monkeypatch.chdir(tmp_path)
    return found


def outcome(words: list[str], capsys) -> tuple[bool, str]:
    """Whether the work would begin, and what was printed as an error."""
    began = time.monotonic()
    try:
        main(words)
    except Began:
        return True, ""
    except SystemExit as stop:
        assert stop.code == 2, words
    said = capsys.readouterr().err.strip()
    assert len(said.splitlines()) == 1 and said.startswith("specdec "), (words, said)
    assert time.monotonic() - began < SECONDS, words
    return False, said


@pytest.mark.parametrize("verb", VERBS)
def test_a_bad_value_of_an_option_is_refused_in_one_line(verb, parsed, capsys):
    words = verb.split()
    outcome(words, capsys)
    [parser] = parsed
    options = [one for one in parser._actions if one.option_strings and one.nargs != 0]
    required = [one for one in parser._actions if one.required]
    needed = [word for one in required for word in (*one.option_strings[-1:], "x")]
    for option in options:
        name, count = option.option_strings[-1], option.nargs or 1
        for value in VALUES:
            values = [value] * (count if isinstance(count, int) else 1)
            rest = [] if option.required else needed
            taken, _ = outcome([*words, *rest, name, *values], capsys)
            if taken and option.type in (int, float):
                option.type(value)  # raises for what is no number at all


def test_the_check_sees_a_verb_that_fails_otherwise(parsed, capsys, monkeypatch):
    """A control: a traceback is no line."""

    def fails(parser: Parser, *arguments: object) -> None:
        raise RuntimeError("two\nlines")

    monkeypatch.setattr(Parser, "parse_args", fails)
    with pytest.raises((RuntimeError, AssertionError)):
        outcome(["gallery"], capsys)


def test_a_page_without_marks_is_refused(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("nothing")
    with pytest.raises(ValueError, match="needs the marks"):
        replace_marked("table", "new", page)
    around = "a\n<!-- table: begin -->\n{}\n<!-- table: end -->\nb\n"
    page.write_text(around.format("old"))
    replace_marked("table", "new", page)
    assert page.read_text() == around.format("new")


def test_a_settings_file_that_is_missing_is_named_once(capsys, tmp_path):
    with pytest.raises(SystemExit, match=r"^2$"):
        main(["hf", str(tmp_path / "nothing.json")])
    line = capsys.readouterr().err
    assert line.count("nothing.json") == 1 and line.endswith("No such file or directory\n")
