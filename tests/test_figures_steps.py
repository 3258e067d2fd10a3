"""The picture of a step shows its numbers, and the path's end is drawn."""

import pandas as pd
import plotly.graph_objects as go
import pytest
from figure_tables import rows

from specdec_lib.core.context import Context
from specdec_lib.core.tree import TokenTree
from specdec_lib.show import figures

SUMS = rows(
    "text log_probability noise sum chosen child",
    (" a", -1.0, 2.0, 1.0, True, 1),
    ("b", -0.5, -1.0, -1.5, False, 0),
)
DRAWS = rows("text low high uniform chosen", ("a", 0.0, 0.4, 0.7, False), ("b", 0.4, 1, 0.7, True))
COIN = rows(
    "text wanted offered left probability uniform kept",
    ("a", 0.2, 0.5, 0.0, 0.4, 0.6, False),
    ("b", 0.8, 0.5, 1.0, 0.4, 0.6, False),
)
SCORES = rows("text after score", ("a", "b", 0.75))


def words(figure: go.Figure) -> str:
    return " | ".join(note.text for note in figure.layout.annotations)


@pytest.mark.parametrize(
    ("table", "said", "series"),
    [
        (SUMS, "−1.00 + 2.00 = 1.00 | −0.50 − 1.00 = −1.50", "sum: the largest wins"),
        (DRAWS, "0.400 to 1.000   number 0.700", "the number"),
        (COIN, "0.600 ≥ 0.400: rejected", "left"),
        (COIN.assign(kept=True, uniform=0.3), "0.300 < 0.400: kept", "offered"),
        (SCORES, "0.75", "score"),
    ],
)
def test_a_step_says_its_numbers(table: pd.DataFrame, said: str, series: str) -> None:
    figure = figures.step(table, title="<chosen>")
    assert said in words(figure) and figure.data[-1].name == series
    assert figure.layout.title.text == "&lt;chosen&gt;" and figure.layout.xaxis.title.text


def test_the_winner_is_bold_and_guesses_have_their_number() -> None:
    first, second = figures.step(SUMS).layout.yaxis.ticktext
    assert first == "<b>␣a</b>  child 1" and second == "b"
    assert figures.step(COIN).layout.yaxis.ticktext[0] == "the coin"


@pytest.mark.parametrize("table", [SUMS.iloc[:0], SUMS[["text", "noise"]]])
def test_a_table_without_numbers_is_refused(table: pd.DataFrame) -> None:
    with pytest.raises(ValueError, match=f"got {len(table)} rows"):
        figures.step(table)


@pytest.mark.parametrize("path", [(), (1,), (1, 3)])
def test_the_paths_end_is_the_targets_own_token(path: tuple[int, ...]) -> None:
    tree = TokenTree.rooted(Context.of((1, 2))).grown(
        [3, 4, 5], [0, 0, 1], source="draft", scores=[0.6, 0.3, 0.5]
    )
    labels, title = ["r", "a", "b", "c"], "a long title that says what there is to see here"
    plain = figures.tree(tree, labels=labels, path=path, title=title)
    ended = figures.tree(tree, labels=labels, path=path, bonus=" end")
    texts = [list(trace.text) for trace in ended.data if trace.mode == "text"]
    assert texts[0][-1] == "␣end" and len(texts[1]) == 3, "the target's token has no score"
    sources = [{trace.name for trace in figure.data} for figure in (plain, ended)]
    assert sources[1] - sources[0] >= {"target"}
    assert plain.layout.width > 8 * len(title)
    size = figures.mask(tree, labels=labels).layout.title.text
    assert size == "4 rows in one pass of the target"
