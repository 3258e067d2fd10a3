"""The numbers in the ladder's README are those of the tables beside it."""

import re

import pandas as pd
import pytest

from specdec_lib.core.files import DATA

FOLDER = DATA / "ladder"
README = (FOLDER / "README.md").read_text(encoding="utf-8")
OWN = {"kept-out packages": ["kept-out"], "Spec-Bench and HumanEval": ["spec_bench", "humaneval"]}
DRAFTS = (  # the columns of the first table
    ("before", "draft"),
    ("now", "draft"),
    ("now", "reading"),
    ("before", "middle"),
    ("now", "middle"),
)
STEPS = {  # the lines of the second
    "one layer, after the first training, sees all": ("before", "draft, all"),
    "it sees the last 128 tokens": ("before", "draft"),
    "instead, as long: it reads the target's hidden states": ("now", "reading"),
    "four layers, after the first training, see all": ("before", "middle, all"),
    "they see the last 512 tokens": ("before", "middle"),
}
MORE = "4.95 million answer tokens more, of new text too"  # of each of both models


def lines(head: str) -> dict[str, list[str]]:
    """The cells of each line of the table whose head begins so, by the line's first cell; a line
    that stands twice gets its place beside its name.
    """
    body = README.split(head)[1].split("\n\n")[0].splitlines()[2:]
    found: dict[str, list[str]] = {}
    for line in body:
        name, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        found[f"{name} ({len(found)})" if name in found else name] = cells
    return found


def shares(cell: str) -> list[float]:
    return [float(part) for part in re.findall(r"\d*\.\d+", cell)]


@pytest.fixture(scope="module")
def judged() -> pd.DataFrame:
    table = pd.read_csv(FOLDER / "judged.csv")
    return table[table.guess == 1]


def first_right(judged, texts, way, when, draft) -> list[float]:
    own = judged[judged.text.isin(texts) & (judged.way == way)]
    own = own[(own.when == when) & (own.draft == draft)]
    sums = own.groupby("long")[["first", "tokens"]].sum()
    return [sums["first"][long] / sums.tokens[long] for long in (False, True)]


def test_the_table_of_first_guesses_is_that_of_the_judged(judged):
    found = lines("| text | draft |")
    assert len(found) == 4
    for name, cells in found.items():
        text, way = name.split(", ")
        for cell, place in zip(cells, DRAFTS, strict=True):
            wanted = first_right(judged, OWN[text], way, *place)
            assert shares(cell) == pytest.approx(wanted, abs=6e-4)


def test_the_table_of_steps_is_that_of_the_judged_and_of_counted_rounds(judged):
    found = lines("| step | greedy,")
    first, second = (name for name in found if name.startswith(MORE))
    steps = STEPS | {first: ("now", "draft"), second: ("now", "middle")}
    assert found.keys() == steps.keys()
    rounds = pd.read_csv(FOLDER / "rounds.csv")
    rounds["per_round"] = rounds.tokens / rounds.rounds
    told = 0
    for name, (when, draft) in steps.items():
        *cells, counted = found[name]
        for cell, way in zip(cells, ("greedy", "T = 1"), strict=True):
            wanted = first_right(judged, OWN["Spec-Bench and HumanEval"], way, when, draft)
            assert shares(cell) == pytest.approx(wanted, abs=6e-4)
        own = rounds[(rounds.when == when) & (rounds.draft == draft)]
        best = own.groupby("sampling").per_round.max()
        if counted:
            assert shares(counted) == pytest.approx(best[["greedy", "T = 1, top-k 50"]], abs=6e-3)
            told += 1
    assert told == 5 and set(rounds.prompts) == {140}
