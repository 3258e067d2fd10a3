"""What stands where in figures: marks, lanes, pieces, ranks, the boxes of trees and text."""

from math import nan

import pandas as pd
import pytest

from specdec_lib.core.tree import Shape, TokenTree
from specdec_lib.show import figures, tables
from specdec_lib.show.figures import theme
from specdec_lib.show.figures.chart import lanes, marks
from specdec_lib.show.figures.pictures import _lay_out
from specdec_lib.show.figures.rounds import _with_boxes


def rows(columns, *values):
    return pd.DataFrame(list(values), columns=columns.split())


def crowded(nodes):
    tree = TokenTree(0, (1,))
    for node in range(1, nodes):
        tree = tree.grown([node], [(node - 1) // 3], source="draft", scores=[0.0])
    return tree


def test_looks_keep_the_colour_of_a_meaning_and_differ_by_more_than_colour():
    looks = theme.looks(["draft", "mine", "Max-Gram", "code"])
    assert looks["draft"].colour == theme.SOURCES["draft"]
    assert looks["Max-Gram"].colour == theme.SOURCES["n-gram"]
    assert looks["mine"].colour not in {looks[name].colour for name in ("draft", "Max-Gram")}
    for quality in ("dash", "symbol", "hatch"):
        assert len({vars(look)[quality] for look in looks.values()}) == 4


def test_words_and_numbers_are_shown_as_they_stand():
    assert theme.visible(" a\n\t") == "␣a⏎⇥" and theme.visible("") == "∅"
    assert theme.visible("internal_function", 12) == "internal_fu…"
    assert theme.escape("$<b>&") == "&#36;&lt;b&gt;&amp;"
    assert theme.wrap("a<b c", 4) == "a&lt;b<br>c"
    said = {nan: "", 0.0: "0.00", 0.012: "0.012", -1.234: "−1.23", 12.3: "12.3", 1234: "1,234"}
    assert [theme.short(number) for number in said] == list(said.values())
    assert [theme.short(value, signed=True) for value in (-3.0, 0.5)] == ["−3.0", "+0.5"]
    assert theme.with_prefix(3.35e12, "B/s") == "3.35 TB/s"


def test_no_two_boxes_of_a_crowded_tree_overlap():
    table = _with_boxes(tables.nodes(crowded(32), labels=["x" * 12] * 32))
    boxes = table[["left", "top", "right", "bottom"]].to_numpy()
    for at, (left, top, right, bottom) in enumerate(boxes):
        for other in boxes[:at]:
            assert left >= other[2] or right <= other[0] or top >= other[3] or bottom <= other[1]


def test_mask_is_the_trees_ancestry_and_needs_a_label_per_node():
    tree = crowded(6)
    (cells, *_) = figures.mask(tree, labels=list("abcdef")).data
    assert [[cell > 0 for cell in line] for line in cells.z] == tree.ancestry().tolist()
    for draw in (figures.tree, figures.mask):
        with pytest.raises(ValueError, match=r"6 nodes, .* got 3"):
            draw(tree, labels=list("abc"))


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
    assert lanes(table, "name", "which", 0.4).tolist() == pytest.approx([-0.1, 0.1, 1.0])
    turned = lanes(table, "name", "which", 0.4, ("y", "x"))
    assert turned.tolist() == pytest.approx([0.1, -0.1, 1.0])


def test_swi_has_a_mark_of_ours_and_one_of_the_papers_in_rows_of_known_order():
    table = rows(
        "data prices method drafters paper ours ours_low ours_high",
        ("code", "parameters", "cascade", "middle + Max-Gram", nan, 2.0, 1.9, 2.2),
        ("GSM8K", "parameters", "speculative", "middle", 3.38, nan, nan, nan),
    )
    figure = figures.swi_by_drafters(table)
    names = [name.replace("<br>", " ") for name in figure.layout.yaxis.ticktext]
    assert names == ["middle, speculative", "middle + Max-Gram, cascade"]
    found = {dots.name: dots for dots in figure.data if dots.mode == "markers"}
    assert found["paper, GSM8K"].x == (3.38,) and not found["paper, GSM8K"].error_x.visible
    assert found["code"].x == (2.0,) and found["code"].error_x.array == pytest.approx([0.2])


def test_pieces_of_a_bar_follow_each_other_and_have_their_share_in_them():
    table = rows(
        "draft sampling part model round_seconds share",
        ("plain", "greedy", "host", "", 0.001, 0.1),
        ("plain", "greedy", "verify", "target", 0.01, 0.9),
    )
    drawn = figures.round_ledger(table, noise=0.0).data
    found = [(bar.base, bar.x, bar.text) for bar in drawn]
    assert found == [((0.0,), (10.0,), ("90%",)), ((10.0,), (1.0,), ("10%",))]


def test_prompts_are_ranked_by_the_staged_method():
    table = rows("prompt relative", ("a", 3.0), ("b", 1.0), ("c", 2.0)).assign(method="staged")
    other = table.assign(method="speculative", relative=[0.5, 1.5, 2.5])
    both = pd.concat([other, table]).assign(sampling="greedy", by="bytes")
    for line in figures.relative_performance(both, title="").data:
        assert line.hovertext == ("b", "c", "a") and line.x == (1, 2, 3)


def test_the_share_of_the_roof_is_of_the_lower_limit():
    points = pd.DataFrame({"intensity": [1.0, 100.0], "flops_per_second": [5.0, 5.0]})
    machine = {"bytes_per_second": 10.0, "flops_per_second": 50.0, "name": ""}
    figure = figures.roofline(points.assign(point="p", kind="ours"), **machine)
    said = "p, 50 % of the bandwidth line", "p, 10 % of the compute roof"
    assert [trace.text for trace in figure.data if trace.text] == [said]


def test_the_probabilities_of_shape_nodes_add_up_to_the_expected_tokens():
    shapes = {"chain": Shape.chain(3), "wide": Shape.of_widths((1, 3))}
    sums = tables.shape_nodes(shapes, [[0.6, 0.2, 0.1]]).groupby("shape")["probability"].sum()
    assert sums["chain"] == pytest.approx(1 + 0.6 + 0.36 + 0.216)
    assert sums["wide"] == pytest.approx(1 + 0.6 + 0.6 * 0.9)
