import os
import re
import struct
import warnings
from pathlib import Path

import pandas as pd
import plotly.graph_objects as go
import pytest

from specdec_lib.core import files as places
from specdec_lib.core.tree import TokenTree
from specdec_lib.show import figures
from specdec_lib.show.figures import saving, theme

LAWS = pd.DataFrame(
    {
        "token": [" a", "\n", " a", "\n"],
        "distribution": ["target", "target", "draft", "draft"],
        "probability": [0.75, 0.25, 1 / 3, 2 / 3],
    }
)
ORIGINS = pd.DataFrame(
    {
        "token": ["def", " f", ":\n    ", "return"],
        "source": ["draft", "target", "n-gram", "draft"],
        "round": [0, 0, 1, 1],
    }
)


@pytest.fixture
def small() -> TokenTree:
    """A root with children 1 and 2, and 3 below 1."""
    return (
        TokenTree(7, (5,))
        .grown((8, 9), (0, 0), source="draft", scores=(0.8, 0.1))
        .grown((6,), (1,), source="n-gram", scores=(0.5,))
    )


def texts(figure: go.Figure) -> list[str]:
    return [
        text for trace in figure.data for text in (trace.text if trace.text is not None else ())
    ]


def names(figure: go.Figure) -> list[str]:
    return [trace.name for trace in figure.data if trace.name]


def test_save_writes_page_image_table_and_script(figures: Path) -> None:
    page = saving.save(go.Figure(go.Bar(y=[1, 2])), "00_bars", LAWS)
    assert page == figures / "00_bars.html"
    assert sorted(path.name for path in figures.iterdir()) == [
        "00_bars.csv",
        "00_bars.html",
        "00_bars.png",
        "plotly.min.js",
    ]
    assert (figures / "00_bars.csv").read_bytes().splitlines()[-1] == b'",draft,0.666667'
    image = (figures / "00_bars.png").read_bytes()
    assert image[:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack(">II", image[16:24]) == (1400, 1000)


def test_saving_again_gives_the_same_bytes_and_asks_no_network(figures: Path) -> None:
    both = []
    for _ in range(2):
        page = saving.save(go.Figure(go.Bar(y=[1, 2])), "00_bars", LAWS)
        both.append([path.read_bytes() for path in sorted(figures.iterdir())])
    assert both[0] == both[1]
    assert re.findall(r'<script[^>]* src="([^"]*)"', page.read_text()) == ["plotly.min.js"]


@pytest.mark.parametrize(
    "name", ["bars", "0_bars", "00bars", "00_", "00_Bars", "../00_bars", "00_bars.html"]
)
def test_a_badly_named_figure_is_refused(name: str, figures: Path) -> None:
    with pytest.raises(ValueError, match="got"):
        saving.save(go.Figure(), name, LAWS)
    assert not figures.exists()


def test_without_an_exporter_one_warning_and_the_other_files(
    figures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saving, "_exporter_works", lambda: False)
    with pytest.warns(UserWarning, match="00_bars.png is not") as said:
        saving.save(go.Figure(), "00_bars", LAWS)
    assert len(said) == 1
    assert not (figures / "00_bars.png").exists() and (figures / "00_bars.csv").exists()


def test_an_exporter_that_fails_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> bytes:
        raise RuntimeError("no browser")

    monkeypatch.setattr(go.Figure, "to_image", fail)
    assert saving._exporter_works.__wrapped__() is False


def test_the_exporters_own_warnings_are_the_only_silenced_ones(figures: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        saving.save(go.Figure(), "00_bars", LAWS)


def test_a_page_leads_back_to_the_gallery_and_says_when_its_script_is_missing(
    figures: Path,
) -> None:
    page = saving.save(go.Figure(), "00_bars", LAWS).read_text()
    assert (
        page.count('href="index.html#00_bars"') == 1
        and "plotly.min.js beside it" in page
        and page.endswith("</body>\n</html>")
    )


def test_a_file_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise OSError("disk full")

    path = tmp_path / "kept"
    path.write_bytes(b"before")
    monkeypatch.setattr(os, "replace", stop)
    with pytest.raises(OSError, match="disk full"):
        places.write_whole(path, b"after")
    assert path.read_bytes() == b"before" and list(tmp_path.iterdir()) == [path]


def test_the_folder_is_the_repositorys_wherever_the_caller_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SPECDEC_FIGURES")
    assert saving.folder() == Path(__file__).resolve().parents[1] / "figures"
    monkeypatch.setenv("SPECDEC_FIGURES", "here")
    assert saving.folder() == tmp_path / "here"


def test_every_source_word_has_its_own_colour_and_strangers_share_four() -> None:
    assert len(set(theme.SOURCES.values())) == 8
    given = theme.colours(["x", "draft", "y", "x"])
    assert (
        list(given) == ["x", "draft", "y"]
        and given["draft"] == "#0072B2"
        and given["x"] != given["y"]
    )
    assert not set(theme.OTHERS) & set(theme.SOURCES.values())


def test_white_space_is_visible_and_long_labels_are_cut() -> None:
    assert theme.visible(" a\n\t") == "␣a⏎⇥"
    assert theme.visible("internal_function", 12) == "internal_fu…"
    assert theme.visible("") == "∅"
    assert theme.escape("$<b>&") == "&#36;&lt;b&gt;&amp;"


def test_tree_shows_labels_scores_sources_and_the_accepted_path(small: TokenTree) -> None:
    figure = figures.tree(small, labels=["def", " f", " g", "\n"], path=(1, 3), title="one round")
    assert texts(figure) == ["def", "␣f", "␣g", "⏎", "0.80", "0.10", "0.50"]
    assert names(figure) == ["accepted path", "context", "draft", "n-gram"]
    assert figure.layout.title.text == "one round"
    words = next(trace for trace in figure.data if trace.hovertext)
    assert words.x[0] < words.x[1] and words.x[1] < words.x[3], "the root is at the left"
    assert "score 0.5" in words.hovertext[3] and "guessed by n-gram" in words.hovertext[3]


def test_no_two_boxes_of_a_crowded_tree_overlap() -> None:
    from specdec_lib.show.figures import trees

    crowded = TokenTree(0, (1,))
    for node in range(31):
        crowded = crowded.grown([node], [node // 3], source="draft", scores=[0.0])
    boxes = trees._boxes(crowded, ["x" * 12] * 32)
    for at, (left, top, right, bottom) in enumerate(boxes):
        for other in boxes[:at]:
            assert left >= other[2] or right <= other[0] or top >= other[3] or bottom <= other[1]


def test_a_tree_of_the_root_alone_is_drawn() -> None:
    assert texts(figures.tree(TokenTree(0, (1,)), labels=["a"])) == ["a"]


@pytest.mark.parametrize("path", [(0,), (3,), (2, 3), (1, 3, 3), (9,)])
def test_a_path_off_the_edges_is_refused(small: TokenTree, path: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="follows the tree's edges"):
        figures.tree(small, labels=list("abcd"), path=path)


def test_too_few_labels_are_refused(small: TokenTree) -> None:
    for draw in (figures.tree, figures.mask):
        with pytest.raises(
            ValueError, match="4 nodes, the root among them, need as many labels, got 3"
        ):
            draw(small, labels=list("abc"))


def test_mask_is_the_trees_ancestry(small: TokenTree) -> None:
    figure = figures.mask(small, labels=["def", " f", " g", "\n"])
    seen = [[cell > 0 for cell in line] for line in figure.data[0].z]
    assert seen == small.ancestry().tolist()
    assert "␣f" in figure.layout.xaxis.ticktext[1] and "<b>8</b>" in figure.layout.xaxis.ticktext[1]


def test_origins_keeps_lines_and_indentation_and_shows_shares() -> None:
    figure = figures.origins(ORIGINS)
    assert names(figure) == [
        "draft 50% (2)",
        "target 25% (1)",
        "n-gram 25% (1)",
        "start of a round",
    ]
    words = figure.data[-1]
    assert list(words.text) == ["def", "f", ":⏎", "", "return"]
    assert words.y[3] == words.y[4] > words.y[2] and words.x[4] > words.x[3], (
        "a newline breaks the line, and the indentation stands before the next token"
    )
    assert figure.layout.title.text == "4 tokens in 2 rounds: 2.00 per round"


def test_origins_breaks_long_lines() -> None:
    long = pd.DataFrame(
        {"token": [" twelve_signs"] * 20, "source": ["draft"] * 20, "round": range(20)}
    )
    assert len(set(figures.origins(long).data[-1].y)) == 3


def test_origins_refuses_a_table_without_its_columns_or_rows() -> None:
    for table in (LAWS, ORIGINS[:0]):
        with pytest.raises(ValueError, match=f"token, source, round, got {len(table)} rows"):
            figures.origins(table)
