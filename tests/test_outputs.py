"""Places that are written to: checked before any work, and never a link, a device or an input."""

from importlib import import_module
from pathlib import Path

import pytest

from specdec_lib.core.commandline import Parser
from specdec_lib.core.files import check_output, write_whole


def measured(*_: object, **__: object) -> None:
    raise AssertionError("something was loaded or measured")


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


MEASURING = "acceptance.command cascades.walltime editions sweep.command sweep.measuring"
MEASURING += " latency.measuring race.command race.learning rule_bench.command texts"


@pytest.mark.parametrize("module", MEASURING.split())
def test_a_place_that_cannot_be_written_is_found_before_measuring(module, link, monkeypatch):
    verb = import_module(f"specdec_lib.measure.{module}")
    monkeypatch.setattr(verb, "PLACE", link, raising=False)
    for name in "table_file", "text_file":
        monkeypatch.setattr(verb, name, lambda _: link, raising=False)
    for name in "load_ladder", "every_domain", "load_prompts", "known_texts":
        monkeypatch.setattr(verb, name, measured, raising=False)
    with pytest.raises(ValueError, match=r"is a link|/dev/full cannot be written to"):
        verb.main(["--out", "/dev/full"] if module == "race.command" else [])


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
