"""The transforms from tables to marks, the layout of trees and text, and what figures share."""

from math import nan

import pandas as pd
import pytest

from specdec_lib.core.tree import MatchTable, TokenTree
from specdec_lib.show import figures
from specdec_lib.show.figures import dots, lines, pieces, theme, trees
from specdec_lib.show.figures.cells import share_of_roof
from specdec_lib.show.figures.marks import lanes, marks
from specdec_lib.show.figures.pictures import _lay_out
from specdec_lib.show.figures.rows import _swi_marks

LABELS = ["def", " f", " g", "\n"]
SMALL = (  # a root with children 1 and 2, and 3 below 1
    TokenTree(7, (5,))
    .grown((8, 9), (0, 0), source="draft", scores=(0.8, 0.1))
    .grown((6,), (1,), source="n-gram", scores=(0.5,))
)


def rows(columns, *values):
    return pd.DataFrame(list(values), columns=columns.split())


def test_looks_keep_the_colour_of_a_meaning_and_differ_by_more_than_colour():
    looks = theme.looks(["draft", "mine", "Max-Gram", "code"])
    assert looks["draft"].colour == theme.SOURCES["draft"]
    assert looks["Max-Gram"].colour == theme.SOURCES["n-gram"]
    assert looks["mine"].colour not in {looks[name].colour for name in ("draft", "Max-Gram")}
    for quality in ("dash", "symbol", "hatch"):
        assert len({vars(look)[quality] for look in looks.values()}) == 4


def test_white_space_is_visible_and_markup_and_long_labels_are_kept_out():
    assert theme.visible(" a\n\t") == "␣a⏎⇥" and theme.visible("") == "∅"
    assert theme.visible("internal_function", 12) == "internal_fu…"
    assert theme.escape("$<b>&") == "&#36;&lt;b&gt;&amp;"
    assert theme.wrap("a<b c", 4) == "a&lt;b<br>c"


def test_no_two_boxes_of_a_crowded_tree_overlap():
    crowded = TokenTree(0, (1,))
    for node in range(31):
        crowded = crowded.grown([node], [node // 3], source="draft", scores=[0.0])
    boxes = trees._boxes(crowded, ["x" * 12] * 32)
    for at, (left, top, right, bottom) in enumerate(boxes):
        for other in boxes[:at]:
            assert left >= other[2] or right <= other[0] or top >= other[3] or bottom <= other[1]


def test_mask_is_the_trees_ancestry():
    (cells, *_) = figures.mask(SMALL, labels=LABELS).data
    assert [[cell > 0 for cell in line] for line in cells.z] == SMALL.ancestry().tolist()


@pytest.mark.parametrize("path", [(0,), (2, 3), (1, 3, 3), (9,)])
def test_a_path_off_the_edges_and_too_few_labels_are_refused(path):
    with pytest.raises(ValueError, match="follows the tree's edges"):
        figures.tree(SMALL, labels=LABELS, path=path)
    for draw in (figures.tree, figures.mask):
        with pytest.raises(ValueError, match=r"4 nodes, .* got 3"):
            draw(SMALL, labels=list("abc"))


def test_text_keeps_its_lines_and_indentation_and_long_lines_are_broken():
    tokens = ["def", " f", ":\n    ", "return", *["twelve_signs"] * 20]
    found = _lay_out(pd.DataFrame({"token": tokens, "source": "draft", "round": 0}))
    assert found["text"].tolist()[:5] == ["def", " f", ":⏎", "    ", "return"]
    lines = found["y"].tolist()
    assert lines[2] < lines[3] == lines[4] and found["left"][4] > found["left"][3]
    assert found["y"].nunique() == 4


def test_marks_rename_and_take_no_interval_of_other_marks():
    table = rows("what k rate low high", ("a", 1, 0.5, 0.4, 0.7), ("b", 2, nan, 0.4, 0.7))
    found = marks(table, "k", "rate", series="what", ends="low rate high")
    wanted = [[1, "a", "", 0.4], [2, "b", "", 0.4]]
    assert found[["x", "series", "panel", "low"]].values.tolist() == wanted
    assert {"low", "high"}.isdisjoint(marks(table, "k", "rate").columns)
    with pytest.raises(ValueError, match=r"low ≤ rate ≤ high must hold in every row, got \[0.4, "):
        marks(table.assign(high=0.1), "k", "rate", ends="low rate high")


def test_lanes_stand_beside_the_place_of_their_name():
    table = rows("name which", ("p", "x"), ("p", "y"), ("q", "y"))
    assert lanes(table, "name").tolist() == [0.0, 0.0, 1.0]
    assert lanes(table, "name", "which", 0.4).tolist() == pytest.approx([-0.1, 0.1, 1.1])
    turned = lanes(table, "name", "which", 0.4, ("y", "x"))
    assert turned.tolist() == pytest.approx([0.1, -0.1, 0.9])


def test_ewif_has_a_third_mark_only_where_another_k_is_better():
    table = rows(
        "data drafters lengths paper ours best best_lengths",
        ("CNNDM", "SMALL", "9", 2.65, 2.654, 2.654, "9"),
        ("CNNDM", "BASE + SMALL", "5, 3", 3.03, 3.027, 3.044, "5, 5"),
    )
    found = dots._ewif_marks(table)
    assert found["y"].tolist() == [2.65, 3.03, 2.654, 3.027, 3.044]
    assert found["text"].iloc[-1] == "3.044<br>k = 5, 5"


def test_swi_has_a_mark_of_ours_and_one_of_the_papers_in_rows_of_known_order():
    table = rows(
        "data prices method drafters paper ours ours_low ours_high",
        ("code", "parameters", "cascade", "middle + Max-Gram", nan, 2.0, 1.9, 2.2),
        ("GSM8K", "parameters", "speculative", "middle", 3.38, nan, nan, nan),
    )
    found = _swi_marks(table)
    assert found["set"].tolist() == ["middle, speculative", "middle + Max-Gram, cascade"]
    papers = found[found["series"] == "paper, GSM8K"]
    assert papers["x"].tolist() == [3.38] and papers["low"].isna().all()


def test_pieces_of_a_bar_follow_each_other():
    table = rows(
        "draft sampling part model round_seconds share",
        ("plain", "greedy", "verify", "target", 0.01, 0.9),
        ("plain", "greedy", "host", "", 0.001, 0.1),
    )
    found = pieces._round_marks(table)
    assert found["base"].tolist() == [0.0, 10.0] and found["inside"].tolist() == ["90%", "10%"]
    prices = rows("target_passes target_price draft_passes draft_price", (1.0, 1.0, 2.0, 0.5))
    assert pieces._price_marks(prices)["base"].tolist() == [0.0, 1.0]


@pytest.mark.parametrize("method, order", [("staged", ["b", "c", "a"]), ("tree", ["a", "b", "c"])])
def test_prompts_are_ranked_by_the_leading_method(method, order):
    table = rows("prompt relative", ("a", 3.0), ("b", 1.0), ("c", 2.0)).assign(method=method)
    other = table.assign(method="speculative", relative=[0.5, 1.5, 2.5])
    found = lines._rank(pd.concat([table, other]), "greedy").drop_duplicates("prompt")
    assert found.sort_values("rank")["prompt"].tolist() == order


def test_the_share_of_the_roof_is_of_the_lower_limit():
    points = pd.DataFrame({"intensity": [1.0, 100.0], "flops_per_second": [5.0, 5.0]})
    assert share_of_roof(points, bandwidth=10.0, roof=50.0).tolist() == [0.5, 0.1]


def test_numbers_are_short_changes_signed_and_quantities_prefixed():
    said = {nan: "", 0.0: "0.00", 0.012: "0.012", -1.234: "−1.23", 12.3: "12.3", 1234: "1,234"}
    assert [theme.short(number) for number in said] == list(said.values())
    assert [theme.short(value, signed=True) for value in (-3.0, 0.5)] == ["−3.0", "+0.5"]
    assert theme.with_prefix(3.35e12, "B/s") == "3.35 TB/s"


def test_a_gap_table_has_a_row_per_bin_and_rank():
    table = figures.gap_table(MatchTable((0.6, 0.2), "two", (1.0,), ((0.4, 0.3), (0.9, 0.1))))
    assert table["gap"].tolist() == ["0–1", "0–1", "1 and more", "1 and more"]
    assert table["rate"].tolist() == [0.4, 0.3, 0.9, 0.1]
