"""The tables on pages are written anew in one call, and nothing else of a page changes."""

import re

import pytest

from specdec_lib.measure import renewing
from specdec_lib.measure.idea_tables import stored_ideas, worth_page
from specdec_lib.measure.pages import EARLIER_RACES, README, RESULTS
from specdec_lib.measure.race_table import RACED
from specdec_lib.measure.renewing import renew_raced, renew_tables, shown_tables
from tests.verbs import run


@pytest.fixture
def pages(tmp_path, monkeypatch):
    """Copies of both pages, with a number changed in each."""
    copies = {}
    for name, page in (("README", README), ("RESULTS", RESULTS)):
        copies[name] = tmp_path / page.name
        text = page.read_text("utf-8")
        copies[name].write_text(
            text.replace("| plain decoding | int8 | ", "| plain decoding | int8 | 9"), "utf-8"
        )
        monkeypatch.setattr(renewing, name, copies[name])
    return copies


def test_tables_are_written_anew_and_those_that_changed_are_named(pages):
    assert renew_tables(["front", "rivals", "worth"]) == ["front", "rivals"]
    assert pages["README"].read_bytes() == README.read_bytes()
    assert pages["RESULTS"].read_text("utf-8") == RESULTS.read_text("utf-8")
    assert renew_tables(["front", "rivals"]) == []


def test_a_race_that_is_stored_renews_what_pages_show_of_it_and_another_one_nothing(pages):
    before = pages["README"].read_bytes()
    renew_raced(renewing.ideas_file("another"))
    assert pages["README"].read_bytes() == before != README.read_bytes()
    renew_raced(renewing.ideas_file(RACED, published=True))
    assert pages["README"].read_bytes() == README.read_bytes()


def test_the_verb_renews_every_table(monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(renewing, "renew_tables", lambda: asked.append(1) or ["front"])
    run("measure", "pages")
    assert asked == [1] and "changed: front" in capsys.readouterr().out


def test_every_table_on_a_page_is_among_them():
    marks = {
        mark
        for page in (README, RESULTS, EARLIER_RACES)
        for mark in re.findall(r"<!-- (\w+): begin -->", page.read_text("utf-8"))
    }
    assert marks == set(shown_tables())


def test_the_six_lines_are_of_published_prompts():
    stored = stored_ideas(RACED)
    embedded = stored.family == "embedded prompts"
    slower = stored.assign(seconds=stored.seconds * (1 + embedded))
    assert worth_page(slower) == worth_page(stored)
    other = stored.assign(seconds=stored.seconds * (1 + (stored.method == "tree")))
    assert worth_page(other) != worth_page(stored)
