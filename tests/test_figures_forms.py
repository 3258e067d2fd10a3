"""From tables to marks, from marks to traces, and words that do not cover each other."""

from itertools import product
from math import nan

import pandas as pd
import pytest
from figure_tables import BARS, BOOKED, EWIF, PROMPTS, RIVALS, SURFACE, SWI

from specdec_lib.show.figures import labels, theme
from specdec_lib.show.figures.cascade import surface
from specdec_lib.show.figures.drafter_sets import _ewif_marks, _swi_marks
from specdec_lib.show.figures.forms.bars import add_bars
from specdec_lib.show.figures.forms.chart import open_chart
from specdec_lib.show.figures.forms.dots import add_dots
from specdec_lib.show.figures.forms.lines import add_lines
from specdec_lib.show.figures.gains import _price_marks
from specdec_lib.show.figures.latency import _pieces
from specdec_lib.show.figures.marks import check_grid, lanes, marks
from specdec_lib.show.figures.roofline import share_of_roof
from specdec_lib.show.figures.staged import _beside, _rank

RATES = pd.DataFrame(
    {"what": ["a", "a", "b"], "k": [1, 2, 1], "rate": [0.5, 0.6, nan], "low": 0.4, "high": 0.7}
)


def test_marks_rename_and_keep_the_tables_columns() -> None:
    found = marks(RATES, x="k", y="rate", series="what", ends=("low", "high"))
    assert found["x"].tolist() == [1, 2, 1] and found["series"].tolist() == ["a", "a", "b"]
    assert set(found["panel"]) == {""} and "rate" in found


def test_lanes_stand_beside_the_place_of_their_name() -> None:
    names, which = pd.Series(["p", "p", "q"]), pd.Series(["x", "y", "y"])
    assert lanes(names) == [0.0, 0.0, 1.0]
    assert lanes(names, which, room=0.4) == pytest.approx([-0.1, 0.1, 1.1])
    assert lanes(names, which, room=0.4, order=("y", "x")) == pytest.approx([0.1, -0.1, 0.9])


def test_a_grid_needs_every_cell() -> None:
    check_grid(SURFACE, ("k1", "k2"))
    with pytest.raises(ValueError, match="6, got 5 rows"):
        check_grid(SURFACE[1:], ("k1", "k2"))


@pytest.mark.parametrize(
    ("add", "kinds"),
    [
        (add_dots, ["markers", "markers"]),
        (add_lines, ["lines"] * 4),
        (add_bars, [None, None]),
    ],
)
def test_every_form_draws_each_series_and_names_it_once(add, kinds: list[str | None]) -> None:
    rows = marks(RATES.fillna(0.5), x="k", y="rate", series="what", ends=("low", "high"))
    chart = open_chart(size=(500, 300), x="<k>", y="rate")
    add(chart, rows, theme.looks(rows["series"]))
    figure = chart.titled("A <headline> that is so long that it takes more than one line of it")
    assert [getattr(trace, "mode", None) if kinds[0] else None for trace in figure.data] == kinds
    assert [trace.name for trace in figure.data if trace.showlegend] == ["a", "b"]
    assert "&lt;headline&gt;" in figure.layout.title.text and "<br>" in figure.layout.title.text
    assert figure.layout.xaxis.title.text == "&lt;k&gt;" and figure.layout.height > 300


def test_looks_keep_the_colour_of_a_meaning_and_differ_by_more_than_colour() -> None:
    looks = theme.looks(["draft", "mine", "Max-Gram", "code"])
    assert looks["draft"].colour == theme.SOURCES["draft"]
    assert looks["Max-Gram"].colour == theme.SOURCES["n-gram"]
    assert looks["mine"].colour not in {
        look.colour for name, look in looks.items() if name != "mine"
    }
    for quality in ("dash", "symbol", "hatch"):
        assert len({vars(look)[quality] for look in looks.values()}) == 4


def test_ewif_has_a_third_mark_only_where_another_k_is_better() -> None:
    found = _ewif_marks(EWIF)
    assert found["y"].tolist() == [2.65, 3.03, 2.654, 3.027, 3.044]
    assert found["text"].iloc[-1] == "3.044<br>k = 5, 5"


def test_swi_has_a_mark_of_ours_and_one_of_the_papers_in_rows_of_known_order() -> None:
    found = _swi_marks(SWI[SWI["method"] != "autoregressive"])
    assert found["set"].tolist()[-1] == "middle + Max-Gram, cascade"
    papers = found[found["series"] == "paper, GSM8K"]
    assert papers["x"].tolist() == [3.38] and papers["low"].isna().all()


def test_pieces_of_a_bar_follow_each_other() -> None:
    found = _pieces(BOOKED.fillna({"model": ""}))
    plain = found[found["draft"] == "plain"]
    assert plain["base"].tolist() == [0.0, 10.0] and plain["inside"].tolist() == ["90%", "10%"]
    prices = _price_marks(RIVALS)
    assert prices["base"].tolist() == [0.0, 0.0, 1.0, 1.0]


def test_prompts_are_ranked_by_the_leading_method() -> None:
    found = _rank(PROMPTS, "greedy").drop_duplicates("prompt")
    assert dict(zip(found["prompt"], found["rank"], strict=True)) == {"b": 1, "c": 2, "a": 3}
    renamed = _rank(PROMPTS.replace("staged", "tree"), "greedy").drop_duplicates("prompt")
    assert renamed["prompt"].tolist() == ["a", "b", "c"]


def test_ours_has_an_interval_and_the_papers_has_none() -> None:
    found = _beside(BARS)
    assert found["series"].tolist() == ["paper"] * 3 + ["ours"] * 3
    assert found["low"].isna().tolist() == [True, True, True, False, False, True]


def test_the_share_of_the_roof_is_of_the_lower_limit() -> None:
    points = pd.DataFrame({"intensity": [1.0, 100.0], "flops_per_second": [5.0, 5.0]})
    assert share_of_roof(points, bandwidth=10.0, roof=50.0).tolist() == [0.5, 0.1]


def test_the_surface_frames_its_best_cell() -> None:
    figure = surface(SURFACE, best=(2, 1), across="a", down="b")
    (frame,) = figure.layout.shapes
    assert (frame.x0, frame.x1, frame.y0, frame.y1) == (1.5, 2.5, 0.5, 1.5)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (nan, ""),
        (0.0, "0.00"),
        (0.012, "0.012"),
        (-1.234, "−1.23"),
        (12.3, "12.3"),
        (1234, "1,234"),
    ],
)
def test_numbers_are_short(number: float, text: str) -> None:
    assert labels.short(number) == text


def test_changes_have_a_sign_and_quantities_a_prefix() -> None:
    assert [labels.short(value, signed=True) for value in (-3.0, 0.5)] == ["−3.0", "+0.5"]
    assert (
        labels.with_prefix(3.35e12, "B/s") == "3.35 TB/s"
        and labels.wrap("a<b c", 4) == "a&lt;b<br>c"
    )


def test_words_do_not_cover_each_other_where_there_is_room() -> None:
    dots = [(100.0 + 30 * x, 100.0 + 30 * y) for x, y in product(range(2), range(2))]
    texts = ["some words"] * 4
    places = labels.beside(dots, texts, size=(400, 300))
    boxes = [
        labels._box(dot, text, place) for dot, text, place in zip(dots, texts, places, strict=True)
    ]
    assert not any(labels._shared(one, two) for at, one in enumerate(boxes) for two in boxes[:at])
    with pytest.raises(ValueError, match="1 dots need as many texts, got 2"):
        labels.beside(dots[:1], texts[:2], size=(9, 9))


def test_marks_without_ends_take_no_interval_of_other_marks() -> None:
    table = pd.DataFrame({"x": [1.0], "y": [2.0], "low": [0.5], "high": [1.5]})
    assert {"low", "high"}.isdisjoint(marks(table, x="x", y="y").columns)
    assert marks(table, x="y", y="x", ends=("low", "high"))["low"].tolist() == [0.5]
