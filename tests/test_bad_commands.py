"""Whatever an option is given, its verb begins its work or ends with one line and status 2."""

import argparse
import time

import pytest

from specdec_lib.core.commandline import Parser
from specdec_lib.suite.command import VERBS, main

NUMBERS = "0 -1 1 7 x 1.5 nan inf -inf 1e999 99999999999999999999999 0x10 1_0 ٣".split()
PLACES = ["/dev/full", "/dev/null", "/proc/none/x", "/", ".", "..", "~nobody/x", "a/b/c", "a.csv"]
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
    needed = [word for one in parser._actions if one.required for word in given_for(one)]
    for option in options:
        name, count = option.option_strings[-1], option.nargs or 1
        for value in VALUES:
            values = [value] * (count if isinstance(count, int) else 1)
            rest = [] if option.required else needed
            taken, _ = outcome([*words, *rest, name, *values], capsys)
            if taken and option.type in (int, float):
                option.type(value)  # raises for what is no number at all


def given_for(action: argparse.Action) -> list[str]:
    """A plain value of an argument that a verb needs."""
    return [*action.option_strings[-1:], "x"]


def test_the_check_sees_a_verb_that_fails_otherwise(parsed, capsys, monkeypatch):
    """A control: a traceback is no line."""

    def fails(parser: Parser, *arguments: object) -> None:
        raise RuntimeError("two\nlines")

    monkeypatch.setattr(Parser, "parse_args", fails)
    with pytest.raises((RuntimeError, AssertionError)):
        outcome(["gallery"], capsys)
