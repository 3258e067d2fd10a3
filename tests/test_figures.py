"""What stands where in figures: marks, lanes, pieces, ranks, the boxes of trees and text."""

from math import nan

import pandas as pd
import pytest

from specdec_lib.core.tree import Shape, TokenTree
from specdec_lib.measure import idea_tables
from specdec_lib.show import figures, tables
from specdec_lib.show.figures import papers, theme
from specdec_lib.show.figures.chart import lanes, marks
from specdec_lib.show.figures.headings import under_headings
from specdec_lib.show.figures.pictures import text_pieces
from specdec_lib.show.figures.rounds import with_boxes


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
    table = with_boxes(tables.nodes(crowded(32), labels=["x" * 12] * 32))
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
    found = text_pieces(pd.DataFrame({"token": tokens, "source": "draft", "round": 0}))
    assert found["text"].tolist()[:5] == ["def", " f", ":⏎", "␣␣␣␣", "return"]
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


def test_swi_stands_by_price_the_lowest_first_and_the_papers_in_grey():
    table = rows(
        "data prices drafters swi low high printed",
        ("code", "parameters", "all three", 2.0, 1.9, 2.2, False),
        ("code", "measured", "all three", 3.0, 2.9, 3.1, False),
        ("code", "reported", "all three", 2.5, 2.4, 2.6, False),
        ("GSM8K", "parameters", "all three", 3.38, nan, nan, True),
    )
    figure = figures.swi_by_prices(table)
    assert figure.layout.xaxis.ticktext == ("measured", "reported", "parameters")
    found = {dots.name: dots for dots in figure.data if dots.mode == "lines+markers"}
    assert sorted(zip(map(round, found["code"].x), found["code"].y, strict=True)) == [
        *((0, 3.0), (1, 2.5), (2, 2.0))
    ]
    assert found["GSM8K"].y == (3.38,) and not found["GSM8K"].error_y.visible
    assert found["GSM8K"].marker.line.color == theme.INK != found["code"].marker.color


def test_pieces_of_a_bar_follow_each_other_and_have_their_share_in_them():
    table = rows(
        "draft sampling part model token_seconds share",
        ("plain", "greedy", "host", "", 0.001, 0.1),
        ("plain", "greedy", "verify", "target", 0.01, 0.9),
    )
    drawn = figures.round_ledger(table, noise=0.0).data
    found = [(bar.base, bar.x, bar.text) for bar in drawn if bar.type == "bar"]
    assert found == [((0.0,), (10.0,), ("90%",)), ((10.0,), (1.0,), ("10%",))]


def test_prompts_stand_in_the_order_of_their_gain_and_the_slower_are_counted():
    table = rows("prompt before after", ("a", 1.0, 3.0), ("b", 2.0, 1.0), ("c", 1.5, 1.8))
    table = table.assign(sampling="greedy", kind="chat")
    figure = figures.prompt_gains(table, before="a chain", after="a tree")
    [dots] = [one for one in figure.data if one.mode == "markers" and one.showlegend]
    assert dict(zip(dots.x, dots.y, strict=True)) == pytest.approx({1: 0.5, 2: 1.2, 3: 3.0})
    assert "slower on 33 %" in figure.layout.title.text.replace("<br>", " ")


def test_a_kind_of_text_has_one_symbol_and_colour_in_whatever_company():
    alone, among = theme.looks(["math"]), theme.looks(["a", "code", "b", "math", "chat"])
    assert alone["math"].symbol == among["math"].symbol == "triangle-up"
    assert alone["math"].colour == among["math"].colour
    assert len({look.symbol for look in among.values()}) == 5


def test_a_setting_of_a_method_has_the_methods_symbol():
    sizes = ["chain of 3", "tree of 8, depth 4", "staged tree of 8, depth 4", "cascade of 1 and 4"]
    found = theme.looks(sizes)
    methods = theme.looks(["chain", "tree", "staged", "cascade"])
    for size, method in zip(found.values(), methods.values(), strict=True):
        assert (size.symbol, size.colour) == (method.symbol, method.colour)


def test_a_stack_has_a_dash_where_a_metric_has_no_number_for_it():
    table = rows(
        "stack metric levels value",
        ("one", "tokens", 1, 1.0),
        ("two", "tokens", 2, 2.0),
        ("two", "passes", 2, 5.0),
    ).assign(low=nan, high=nan)
    figure = figures.stages(table)
    words = [(trace.y, trace.text) for trace in figure.data if trace.text and "–" in trace.text[0]]
    assert words == [((0.0,), (" –",))]


def test_the_depth_is_written_where_the_best_one_changes():
    table = rows(
        "budget depth speed_up", (1, 1, 1.2), (2, 1, 1.4), (2, 2, 1.5), (4, 1, 1.3), (4, 2, 1.6)
    )
    figure = figures.budget_speed_ups(table)
    said = [trace.text for trace in figure.data if trace.text]
    assert said == [("from here: depth 1", "from here: depth 2"), ("1.60 with 4 guesses",)]
    [line] = [trace for trace in figure.data if trace.mode == "lines" and trace.y[0] == 1.2][-1:]
    assert line.y == (1.2, 1.5, 1.6)


def test_the_share_of_the_roof_is_of_the_lower_limit_and_predicted_points_have_none():
    """They lie on a line of their own, through the measured point, that is named an assumption."""
    points = pd.DataFrame({"intensity": [1.0, 100.0], "flops_per_second": [5.0, 5.0]})
    machine = {"bytes_per_second": 10.0, "flops_per_second": 50.0, "name": ""}
    figure = figures.roofline(points.assign(point="p", kind="ours"), **machine)
    assert [trace.text for trace in figure.data if trace.text] == [(" p", " p")]
    figure = figures.roofline(points.assign(point="p", kind="paper"), **machine)
    said = " p:<br> 50 % of the bandwidth line", " p:<br> 10 % of the compute roof"
    assert [trace.text for trace in figure.data if trace.text][-1] == said
    figure = figures.roofline(points.assign(point="p", kind=["paper", "ours"]), **machine)
    [line, *_] = [trace for trace in figure.data if trace.text]
    assert line.text[-1] == " assumed: the same overhead"
    assert list(line.y) == pytest.approx([0.5 * 10.0 * x for x in line.x])


def test_an_edition_has_one_look_in_every_figure_and_published_prompts_are_hollow():
    assert theme.FAMILIES == idea_tables.FAMILIES
    found = theme.looks(["float32", "int8"])
    for name, look in theme.EDITIONS.items():
        assert (found[name].colour, found[name].symbol) == (look.colour, look.symbol)
        both = [papers.WHOSE[f"{name}, {family}"] for family in theme.FAMILIES]
        assert [one.symbol for one in both] == [look.symbol, f"{look.symbol}-open"]
        assert {one.colour for one in both} == {look.colour}
    table = rows(
        "panel pair family ratio",
        ("int8, greedy", "a ÷ b", "published prompts", 1.2),
        ("SWI", "a ÷ b", "embedded prompts", 1.1),
    ).assign(ratio_low=1.0, ratio_high=1.3, idea="a", prompts=40)
    figure = figures.idea_ratios(table, x={"SWI": "by SWI", "int8": "by the clock"})
    drawn = {dots.name: dots.marker for dots in figure.data if dots.mode == "markers"}
    assert drawn["published prompts"].symbol == "square-open"
    assert drawn["published prompts"].color == theme.EDITIONS["int8"].colour
    assert drawn["embedded prompts"].symbol == theme.NO_EDITION.symbol
    assert figure.layout.xaxis.title.text == "by the clock"
    assert figure.layout.xaxis2.title.text == "by SWI"


def test_rows_stand_below_their_heading_and_no_interval_is_drawn_for_a_baseline():
    table = rows("of name", ("b", "x"), ("a", "x"), ("b", "y"), ("b", "x"))
    place, words = under_headings(table, "of", "name")
    assert words == ["<b>b</b>", "x", "y", "<b>a</b>", "x"]
    assert place.tolist() == [1.0, 4.0, 2.0, 1.0]
    columns = "method paper ours ours_low ours_high"
    compared = rows(columns, ("plain", 1, 1, 1, 1), ("a", 1, 2, 1, 3))
    said = {"title": "", "y_title": "", "by": ""}
    figure = figures.paper_and_ours(compared.assign(sampling="greedy"), **said)
    whiskers = [trace.x for trace in figure.data if trace.error_y.array is not None]
    assert [list(one) for one in whiskers] == [pytest.approx([1.2])]


def test_the_probabilities_of_shape_nodes_add_up_to_the_expected_tokens():
    shapes = {"chain": Shape.chain(3), "wide": Shape.of_widths((1, 3))}
    sums = tables.shape_nodes(shapes, [[0.6, 0.2, 0.1]]).groupby("shape")["probability"].sum()
    assert sums["chain"] == pytest.approx(1 + 0.6 + 0.36 + 0.216)
    assert sums["wide"] == pytest.approx(1 + 0.6 + 0.6 * 0.9)
