"""Tables and words under the knobs: numbers end below each other, and nothing is taken for HTML."""

import math
import re

import pytest

from specdec_lib.show.widgets.words import alert, aligned_table, bullets, status

CELL = re.compile(r"<t[hd][^>]*>(.*?)</t[hd]>")
LOOK = re.compile(r'<t[hd][^>]*style="([^"]*)"')


def cells(words: str) -> list[list[str]]:
    """The cells of every row of the tables in some words."""
    return [CELL.findall(row) for row in re.findall(r"<tr>(.*?)</tr>", words)]


def looks(words: str) -> list[list[str]]:
    return [LOOK.findall(row) for row in re.findall(r"<tr>(.*?)</tr>", words)]


def test_numbers_have_so_many_digits_and_whole_ones_none():
    table = aligned_table(("", "a", "b"), [("one", 1.5, 1234), ("two", math.nan, 2)], digits=3)
    assert cells(table) == [["", "a", "b"], ["one", "1.500", "1,234"], ["two", "–", "2"]]


def test_numbers_end_below_each_other_and_words_begin_there():
    """Control: a column that is not said to be of words."""
    rows = [("one", 1.5, "pays"), ("two", 10.25, "costs")]
    for row in looks(aligned_table(("", "gain", "it"), rows, words=(2,))):
        assert ["text-align:right" in look for look in row] == [False, True, False]
    for row in looks(aligned_table(("", "gain", "it"), rows)):
        assert ["text-align:right" in look for look in row] == [False, True, True]
    assert "tabular-nums" in aligned_table(("", "gain", "it"), rows)


def test_colours_are_the_pages_own():
    """So that words are read in a light theme and in a dark one."""
    for words in (status("a"), alert("a"), aligned_table(("",), [("a",)])):
        colours = re.findall(r"(?:color:|solid )([^;\" ]+)", words)
        assert colours and all(one.startswith("var(--jp-") for one in colours)


def test_a_row_of_another_length_is_refused_and_markup_is_shown_as_it_stands():
    assert cells(aligned_table(("<i>", "b"), [("<b>", "a & b")]))[1] == ["&lt;b&gt;", "a &amp; b"]
    with pytest.raises(ValueError, match="zip"):
        aligned_table(("", "a"), [("one", 1.0, 2.0)])
    assert "&lt;b&gt;" in alert("<b>") and "<li><b>x</b></li>" in bullets(["<b>x</b>"])
    assert status("") == ""
