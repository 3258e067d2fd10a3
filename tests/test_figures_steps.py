"""The picture of a step shows its numbers, and the path's end is drawn."""

import pandas as pd
import pytest

from specdec_lib.core.context import Context
from specdec_lib.core.tree import TokenTree
from specdec_lib.show import figures

SUMS = pd.DataFrame(
    {
        "text": [" a", "b"],
        "log_probability": [-1.0, -0.5],
        "noise": [2.0, -1.0],
        "sum": [1.0, -1.5],
        "chosen": [True, False],
        "child": [1, 0],
    }
)
DRAWS = pd.DataFrame(
    {
        "text": ["a", "b"],
        "low": [0.0, 0.4],
        "high": [0.4, 1.0],
        "uniform": [0.7, 0.7],
        "chosen": [False, True],
    }
)
COIN = pd.DataFrame(
    {
        "text": ["a", "b"],
        "wanted": [0.2, 0.8],
        "offered": [0.5, 0.5],
        "left": [0.0, 1.0],
        "probability": 0.4,
        "uniform": 0.6,
        "kept": False,
    }
)


def words(figure):
    return " | ".join(note.text for note in figure.layout.annotations)


def named(figure, name):
    return next(trace for trace in figure.data if trace.name == name)


def test_sums_are_drawn_with_their_parts_and_the_winner_has_a_star():
    figure = figures.step(SUMS, title="<chosen>")
    assert "−1.00 + 2.00 = 1.00" in words(figure) and "−0.50 − 1.00 = −1.50" in words(figure)
    assert list(named(figure, "sum: the largest wins").marker.symbol) == ["star", "diamond"]
    assert (
        figure.layout.yaxis.ticktext[0].startswith("<b>␣a</b>")
        and "child 1" in figure.layout.yaxis.ticktext[0]
    )
    assert figure.layout.title.text == "&lt;chosen&gt;"


def test_a_draw_shows_the_parts_and_the_number():
    figure = figures.step(DRAWS)
    assert list(named(figure, "part").x) == pytest.approx([0.4, 0.6]) and set(
        named(figure, "the number").x
    ) == {0.7}
    assert "0.400 to 1.000   number 0.700" in words(figure)


@pytest.mark.parametrize(
    "kept, laws", [(False, ["wanted", "offered", "left"]), (True, ["wanted", "offered"])]
)
def test_a_coin_shows_the_number_against_what_keeps(kept, laws):
    figure = figures.step(COIN.assign(kept=kept, uniform=0.3 if kept else 0.6))
    assert [trace.name for trace in figure.data[2:]] == laws
    assert ("0.300 < 0.400: kept" if kept else "0.600 ≥ 0.400: rejected") in words(figure)
    assert figure.layout.yaxis.ticktext[0] == "the coin" and len(figure.layout.yaxis.ticktext) == 3


def test_guesses_without_a_model_show_their_scores():
    assert "0.75" in words(
        figures.step(pd.DataFrame({"text": ["a"], "after": ["b"], "score": [0.75]}))
    )


@pytest.mark.parametrize("table", [SUMS.iloc[:0], SUMS[["text", "noise"]]])
def test_a_table_without_numbers_is_refused(table):
    with pytest.raises(ValueError, match="row per candidate"):
        figures.step(table)


@pytest.fixture
def tree():
    return TokenTree.rooted(Context.of((1, 2))).grown(
        [3, 4, 5], [0, 0, 1], source="draft", scores=[0.6, 0.3, 0.5]
    )


@pytest.mark.parametrize("path", [(), (1,), (1, 3)])
def test_the_paths_end_is_the_targets_own_token(tree, path):
    labels = ["r", "a", "b", "c"]
    plain, ended = (
        figures.tree(tree, labels=labels, path=path),
        figures.tree(tree, labels=labels, path=path, bonus=" end"),
    )
    texts = [list(trace.text) for trace in ended.data if trace.mode == "text"]
    assert (
        texts[0][-1] == "␣end" and len(texts[1]) == 3
    )  # five boxes, three scores: the target's token has none
    assert "target" in [trace.name for trace in ended.data] and "target" not in [
        trace.name for trace in plain.data
    ]
    assert [trace.marker.symbol for trace in ended.data if trace.mode == "markers"] == ["star"]
    assert not [trace for trace in plain.data if trace.mode == "markers"]


def test_a_tree_is_wide_enough_for_its_title(tree):
    title = "a long title that says what there is to see in this picture"
    assert figures.tree(tree, labels=["r", "a", "b", "c"], title=title).layout.width > 8 * len(
        title
    )


def test_a_mask_says_how_large_the_pass_is(tree):
    assert (
        figures.mask(tree, labels=["r", "a", "b", "c"]).layout.title.text
        == "4 rows in one pass of the target"
    )
    assert figures.mask(tree, labels=["r", "a", "b", "c"], title="who").layout.title.text == "who"
