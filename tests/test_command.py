"""The `specdec` command: light help, checked places, and any bad option ends in one line."""

import inspect
import math
import pkgutil
import re
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import get_args

import pytest
from cyclopts import CycloptsError

from specdec_lib.core.files import check_output, write_whole
from specdec_lib.measure.options import Dtype, Runtime, table_places
from specdec_lib.measure.pages import replace_marked
from specdec_lib.models.loading import DTYPES, RUNTIMES
from specdec_lib.suite import command
from specdec_lib.suite.command import main, parse, verbs
from tests.verbs import run

HEAVY = {"torch", "pandas", "plotly", "papermill", "transformers", "nbformat", "numpy"}


@pytest.mark.parametrize("words", [["--help"], *([*verb.split(), "--help"] for verb in verbs())])
def test_help_imports_no_heavy_package(words):
    code = (
        "import sys; from specdec_lib.suite.command import main\n"
        f"try: main({words})\n"
        f"except SystemExit: pass\nprint(sorted({HEAVY} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Usage: specdec") and done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    "words, said",
    [
        ("dance", 'specdec: Unknown command "dance". Available commands: '),
        ("measure nothing", 'specdec: Unknown command "nothing". Available commands: '),
        ("reproduce --only 77", "specdec reproduce: --only 77 names no notebook"),
        ("reproduce --colour", "specdec reproduce: Unknown option: --colour."),
        ("gallery --out /no/folder", "specdec gallery: there is no figure folder /no/folder"),
    ],
)
def test_an_error_is_one_line_and_status_2(words, said, capsys):
    with pytest.raises(SystemExit, match="2"):
        command.main(words.split())
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(said)


@pytest.mark.parametrize("verb", ["distil overlap", "distil online"])
def test_an_option_takes_several_paths(verb):
    _, given = parse([*verb.split(), "--prompts", "a.jsonl", "~/b.jsonl"])
    assert given.arguments["prompts"] == [Path("a.jsonl"), Path.home() / "b.jsonl"]
    with pytest.raises(CycloptsError, match="a path has a name, got ''"):
        parse([*verb.split(), "--prompts", "a.jsonl", ""])


def test_a_group_of_verbs_lists_its_own(capsys):
    with pytest.raises(SystemExit, match=r"^0$"):
        command.main(["distil"])
    shown = capsys.readouterr().out
    for verb in "passages write overlap teach train online ngrams finish matches".split():
        assert re.search(rf"^│ {verb} +[A-Z]", shown, re.M), verb


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
    def failing(*_: object, **__: object) -> None:
        raise raised

    monkeypatch.setattr("specdec_lib.suite.gallery.building.build", failing)
    with pytest.raises(SystemExit, match="2"):
        command.main(["gallery"])
    assert capsys.readouterr().err == f"specdec gallery: {said}\n"


@pytest.mark.parametrize("verb, said", [("compare", "--top-k must be 1"), ("ties", "top_k must")])
def test_a_keyword_becomes_a_flag_of_the_verb_if_that_has_it(verb, said, capsys, monkeypatch):
    def failing(*_: object) -> None:
        raise ValueError("top_k must be 1")

    monkeypatch.setattr("specdec_lib.measure.comparing.given_prompts", failing)
    with pytest.raises(SystemExit, match="2"):
        command.main([verb])
    assert capsys.readouterr().err.startswith(f"specdec {verb}: {said}")


@pytest.mark.parametrize(
    "given, least",
    [
        ("compare --limit 0", 1),
        ("bench --limit 3 3 -1", 1),
        ("bench --others -1", 0),
        ("compare --seed -1", 0),
    ],
)
def test_counts_below_the_least_are_refused(given, least):
    *_, number = given.split()
    name = re.search("--[a-z]+", given)[0]
    with pytest.raises(ValueError, match=f"{name} counts from {least}, got {number}"):
        parse(given.split())
    parse(given.replace(number, str(least)).split())


def test_the_choices_of_options_are_those_of_the_library():
    assert set(get_args(Dtype)) == set(DTYPES) and get_args(Runtime) == RUNTIMES


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


PLACES_OF = {
    "measure acceptance": "acceptance.prediction",
    "measure walltime": "cascade.variants",
    "measure editions": "int8_quality",
    "measure table": "domain_table",
    "measure latency": "latency.measuring",
    "measure learning": "learning",
    "measure guesses": "guesses",
    "measure temperatures": "acceptance.by_temperature",
    "measure defaults": "defaults",
    "measure verifiers": "rule_bench.verifying",
    "measure regret": "plan_regret",
    "measure rivals": "rivals",
    "measure texts": "target_text",
}


@pytest.mark.parametrize("verb", [*PLACES_OF, "bench --out /dev/full"])
def test_a_place_that_cannot_be_written_is_found_before_measuring(verb, link, monkeypatch):
    if verb in PLACES_OF:
        module = import_module(f"specdec_lib.measure.{PLACES_OF[verb]}")
        monkeypatch.setattr(module, "PLACE", link, raising=False)
        for name in "text_file", "defaults_file", "clocked_file":
            monkeypatch.setattr(module, name, lambda *_, **__: link, raising=False)
        monkeypatch.setattr("specdec_lib.measure.machine.clocked_file", lambda *_, **__: link)
    for module, name in ("target_text", "load_prompts"), ("cluster", "load_ladder"):
        place = f"specdec_lib.measure.{module}.{name}"
        monkeypatch.setattr(place, lambda *_, **__: pytest.fail("loaded"))
    monkeypatch.setattr("specdec_lib.workload.load_ladder", lambda *_, **__: pytest.fail("loaded"))
    with pytest.raises(ValueError, match=r"is a link|/dev/full cannot be written to"):
        run(*verb.split())


def test_a_table_is_written_where_csv_says_and_nowhere_else(tmp_path):
    own = tmp_path / "own.csv"
    usual, page = tmp_path / "usual.csv", tmp_path / "README.md"
    assert table_places(None, None, usual, page) == (usual, page)
    assert table_places(own, None, usual, page) == (own, None)
    assert table_places(own, "mine.jsonl", usual, page) == (own, None)
    assert table_places(None, "mine.jsonl", usual, page) == (None, None)


@pytest.mark.parametrize("verb", ["bench", "measure cascades", "measure latency"])
def test_tables_of_own_prompts_are_kept_apart_from_the_stored_ones(verb):
    with pytest.raises(ValueError, match=r"--prompts needs a folder --out: .*measured is for"):
        run(*verb.split(), "--prompts", "mine.jsonl")


@pytest.mark.parametrize(
    "given, said",
    [
        ("compare --csv /dev/full", "--csv names a file that ends in .csv, got /dev/full"),
        ("compare --csv {0}/prompts.jsonl", "--csv names a file that ends in .csv"),
        ("compare --csv {0}/table.csv", "table.csv is a link"),
        ("measure table --csv {0}/mine/table.csv", "mine cannot be written to (File exists)"),
        ("distil write --out {0} --passages {0}/../{1}", "which --passages reads; name another"),
        ("distil write --out {0}/long", "is no path (File name too long)"),
        ("distil teach --text {0}/loop/text", "is no path (Too many levels of symbolic links)"),
        ("distil write --out=", "a path has a name, got ''"),
        ("distil write --out ~nobody_of_this_name/x", "is no path (Could not determine home dir"),
    ],
)
def test_a_wrong_place_is_refused_in_one_short_line(given, said, link, tmp_path, capsys):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(SystemExit, match=r"^2$"):
        main(given.replace("long", "n" * 300).format(tmp_path, tmp_path.name).split())
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line and len(line) < 500


NUMBERS = "0 -1 1 7 x 1.5 nan inf -inf 1e999 99999999999999999999999 0x10 1_0 ٣".split()
PLACES = ["/dev/full", "/dev/null", "/proc/none/x", "/", ".", "..", "~no_one/x", "a/b/c", "a.csv"]
TEXTS = ["", " ", "é", "🦊", "\ud800", "{x}", "${HOME}", "a" * 400, "a\nb", "--", "-x", "<b>", "%s"]
VALUES = (*NUMBERS, *PLACES, *TEXTS)
SECONDS = 5.0


class Began(Exception):
    """The command line was taken, and the work would begin."""


@pytest.fixture
def begun(monkeypatch, tmp_path):
    """Verbs stop where their work begins: their arguments are left here."""
    found = []

    def stop(words: list[str]) -> None:
        found[:] = [parse(words)]
        raise Began

    monkeypatch.setattr(command, "parse", stop)
    monkeypatch.chdir(tmp_path)
    return found


def outcome(words: list[str], capsys) -> tuple[bool, str]:
    """Whether the work would begin, and what was printed as an error."""
    started = time.monotonic()
    try:
        main(words)
    except Began:
        return True, ""
    except SystemExit as stop:
        assert stop.code == 2, words
    said = capsys.readouterr().err.strip()
    assert len(said.splitlines()) == 1 and said.startswith("specdec "), (words, said)
    assert time.monotonic() - started < SECONDS, words
    return False, said


@pytest.mark.parametrize("verb", verbs())
def test_a_bad_value_of_an_option_is_refused_in_one_line(verb, begun, capsys):
    arguments = inspect.signature(pkgutil.resolve_name(verbs()[verb])).parameters.values()
    flags = {one.name: [flag_of(one)] for one in arguments if one.kind is one.KEYWORD_ONLY}
    required = [one.name for one in arguments if one.default is one.empty]
    for option in arguments:
        if option.annotation is bool or option.name not in flags:
            continue
        others = [name for name in required if name != option.name]
        rest = [word for name in others for word in (*flags.get(name, []), "1")]
        for value in VALUES:
            values = [value] * size_of(option)
            words = [*verb.split(), *rest, *flags[option.name], *values]
            taken, _ = outcome(words, capsys)
            if taken:
                [(_, given)] = begun
                assert is_whole(given.arguments[option.name]), words


def flag_of(argument: inspect.Parameter) -> str:
    """The flag of a verb's argument."""
    for one in getattr(argument.annotation, "__metadata__", ()):
        if one.name:
            return one.name[0]
    return f"--{argument.name.replace('_', '-')}"


def size_of(argument: inspect.Parameter) -> int:
    """How many values an option takes."""
    size = re.search(r"tuple\[([^]]*)\]", str(argument.annotation))
    return len(size[1].split(",")) if size else 1


def is_whole(value: object) -> bool:
    """Whether a value is a text, a place or numbers, and no number is infinite or none."""
    each = value if isinstance(value, (tuple, list)) else (value,)
    return all(isinstance(one, (str, Path, int)) or math.isfinite(one) for one in each)


def test_the_check_sees_a_verb_that_fails_otherwise(capsys, monkeypatch):
    """A control: a traceback is no line."""

    def fails(words: list[str]) -> None:
        raise RuntimeError("two\nlines")

    monkeypatch.setattr(command, "parse", fails)
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
