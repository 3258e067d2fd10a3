import math

import pandas as pd
import pytest

from specdec_lib.core.tree import Shape
from specdec_lib.show import figures
from specdec_lib.show.figures.shapes import _rows
from specdec_lib.theory import best_tree, expected_tokens

RATES = [[0.6, 0.2, 0.1], [0.5, 0.3]]
NAMED = {"chain": Shape.chain(8), "<best>": best_tree(RATES, 8)}
GAINS = pd.DataFrame(
    {"budget": [2, 1, 1, 2], "depth": [2, 2, 1, 1], "speed_up": [1.5, 1.2, 1.1, 0.9]}
)


def test_probabilities_of_a_shape_add_up_to_its_expected_tokens() -> None:
    table = figures.slots(NAMED, RATES)
    assert (
        list(table.columns) == ["shape", "node", "parent", "depth", "rank", "probability"]
        and len(table) == 18
    )
    for name, shape in NAMED.items():
        assert math.isclose(
            table[table["shape"] == name]["probability"].sum(), expected_tokens(shape, RATES)
        )


def test_a_rank_beyond_the_rates_is_never_accepted_and_the_last_depth_repeats() -> None:
    table = figures.slots({"wide": Shape.of_widths((1, 3, 1))}, RATES)
    assert table["probability"].tolist() == pytest.approx([1, 0.6, 0.3, 0.18, 0, 0.15, 0.09, 0])


def test_shapes_show_every_node_once_with_its_probability() -> None:
    table = figures.slots(NAMED, RATES)
    figure = figures.shapes(table, title="8 guesses")
    edges, nodes, names = figure.data
    assert (
        len(nodes.x) == len(set(zip(nodes.x, nodes.y, strict=True))) == 18
        and edges.x.count(None) == 16
    )
    assert nodes.text[:3] == ("1", ".60", ".30")
    assert (
        names.text[1]
        == f"<b>&lt;best&gt;</b>  {expected_tokens(NAMED['<best>'], RATES):.2f} tokens"
    )
    assert figure.layout.title.text == "8 guesses" and figure.layout.width >= max(nodes.x)


def test_shapes_that_do_not_fit_beside_each_other_start_a_new_line() -> None:
    short = figures.shapes(figures.slots({"a": Shape.chain(3), "b": Shape.chain(3)}, RATES))
    long = figures.shapes(figures.slots({"a": Shape.chain(16), "b": Shape.chain(16)}, RATES))
    assert len(set(short.data[2].y)) == 1 and len(set(long.data[2].y)) == 2
    assert len(set(short.data[2].x)) == 2 and len(set(long.data[2].x)) == 1


def test_a_parent_stands_midway_between_its_children_in_the_order_of_ranks() -> None:
    assert _rows(Shape((-1, 0, 0, 2, 1, 1))) == [1.25, 0.5, 2.0, 2.0, 0.0, 1.0]
    assert _rows(Shape((-1,))) == [0.0]


def test_speed_ups_are_a_line_per_depth_and_a_star_at_the_best() -> None:
    figure = figures.speed_ups(GAINS)
    assert [trace.name for trace in figure.data] == ["depth ≤ 1", "depth ≤ 2", "the best"]
    assert list(figure.data[0].x) == [1, 2] and list(figure.data[0].y) == [1.1, 0.9]
    assert (figure.data[2].x, figure.data[2].y, figure.data[2].text) == (
        (2,),
        (1.5,),
        ("1.50 with 2 guesses, depth ≤ 2",),
    )


@pytest.mark.parametrize(
    "draw, message",
    [
        (lambda: figures.slots({}, RATES), "at least one shape"),
        (lambda: figures.slots(NAMED, [[1.5]]), "rates lie in"),
        (lambda: figures.shapes(GAINS), "with the columns shape, node"),
        (
            lambda: figures.shapes(figures.slots(NAMED, RATES).assign(shape="same")),
            "at most one row per shape and node",
        ),
        (lambda: figures.shapes(figures.slots(NAMED, RATES).query("node != 1")), "without a gap"),
        (
            lambda: figures.shapes(figures.slots(NAMED, RATES).assign(parent=-1)),
            "must precede its child",
        ),
        (lambda: figures.speed_ups(GAINS.drop(columns="depth")), "with the columns budget, depth"),
        (lambda: figures.speed_ups(GAINS.assign(depth=1)), "at most one row per budget and depth"),
        (lambda: figures.speed_ups(GAINS.assign(budget=[0, 1, 2, 3])), "at least 1 node, got 0"),
    ],
)
def test_a_table_that_cannot_be_drawn_is_refused(draw, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        draw()
