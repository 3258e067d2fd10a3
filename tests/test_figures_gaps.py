"""The match table as a grid, and rates of several kinds as dots."""

import math

import pandas as pd
import pytest

from specdec_lib.core.tree import MatchTable
from specdec_lib.show import figures

MATCH = MatchTable((0.6, 0.2), "made up", (0.5, 2.0), ((0.4, 0.3), (0.6, 0.2), (0.9, 0.0)))
KINDS = pd.DataFrame(
    {
        "kind": ["code", "math", "code", "math"],
        "series": ["a", "a", "<b>", "<b>"],
        "rate": [0.5, 0.75, 0.25, math.nan],
        "low": [0.4, math.nan, 0.2, math.nan],
        "high": [0.6, math.nan, 0.3, math.nan],
        "at_risk": [10, 20, 30, 0],
    }
)


def test_a_match_table_becomes_a_row_per_bin_and_rank():
    table = figures.gap_table(MATCH)
    assert table.values.tolist()[:3] == [["0–0.5", 0, 0.4], ["0–0.5", 1, 0.3], ["0.5–2", 0, 0.6]]
    assert table.gap.iloc[-1] == "2 and more" and len(table) == 6


def test_the_grid_has_every_number_in_its_cell():
    figure = figures.gaps(figures.gap_table(MATCH))
    assert figure.data[0].z.tolist() == [[0.4, 0.6, 0.9], [0.3, 0.2, 0.0]]
    assert list(figure.data[0].y) == ["rank 0", "rank 1"] and list(figure.data[0].x) == [
        "0–0.5",
        "0.5–2",
        "2 and more",
    ]
    assert [note.text for note in figure.layout.annotations] == [
        "0.40",
        "0.30",
        "0.60",
        "0.20",
        "0.90",
        "0",
    ]


def test_kinds_stand_side_by_side_and_a_rate_of_nothing_draws_nothing():
    figure = figures.kinds(KINDS, x_title="text")
    assert [trace.name for trace in figure.data] == ["a", "&lt;b&gt;"]
    assert list(figure.data[0].x) == pytest.approx([-0.15, 0.85]) and list(
        figure.data[1].x
    ) == pytest.approx([0.15])
    assert list(figure.layout.xaxis.ticktext) == ["code", "math"]
    assert [note.text for note in figure.layout.annotations] == ["0.50", "0.75", "0.25"]


@pytest.mark.parametrize(
    "call,complaint",
    [
        (lambda: figures.gap_table(MatchTable()), "'default' does not look at gaps"),
        (
            lambda: figures.gaps(pd.concat([figures.gap_table(MATCH)] * 2)),
            "at most one row per gap and rank",
        ),
        (lambda: figures.gaps(KINDS), "needs rows with the columns gap"),
        (lambda: figures.kinds(KINDS.assign(low=0.7), x_title=""), "low ≤ rate ≤ high"),
        (lambda: figures.kinds(KINDS[:0], x_title=""), "got 0 rows"),
    ],
)
def test_what_makes_no_sense_is_refused(call, complaint):
    with pytest.raises(ValueError, match=complaint):
        call()
