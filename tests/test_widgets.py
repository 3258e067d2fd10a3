"""Sliders redraw their figure, and the round they show is the loop's own."""

import pandas as pd
import plotly.graph_objects as go
import pytest

from specdec_lib.context import Context
from specdec_lib.draft import TreeDraft
from specdec_lib.widgets import best_shape, cascade_explorer, one_round, sliders

K = ((5, 14, 10), (0, 1, 10), (0, 0, 10))
NAMES = ("middle", "draft", "Max-Gram")
START = {"width": 1, "colour": "red"}


def test_a_moved_slider_redraws_the_figure():
    box = sliders(
        lambda width, colour: go.Figure(go.Bar(y=[width]), {"title": {"text": colour}}), {"width": (1, 2), "colour": ("red", "blue")}, start=START
    )
    (width, colour), (shown,) = box.knobs.values(), box.figures
    assert (list(shown.data[0].y), shown.layout.title.text) == ([1], "red")
    width.value, colour.value = 2, "blue"
    assert (list(shown.data[0].y), shown.layout.title.text, len(shown.data)) == ([2], "blue", 1)


@pytest.mark.parametrize("start", [{}, {"width": 3}])
def test_a_slider_that_starts_elsewhere_is_refused(start):
    with pytest.raises(ValueError, match="'width' must start at one of"):
        sliders(lambda width: go.Figure(), {"width": (1, 2)}, start=start)


def test_the_round_that_is_drawn_says_what_was_accepted(ladder, prompts):
    context = Context.of(ladder.encode(prompts[0]))
    figure = one_round(ladder, TreeDraft(ladder.draft, budget=8), context, seed=1, temperature=0.0)
    assert "of 8 guesses accepted" in figure.layout.title.text


@pytest.mark.parametrize(
    "budget, depth, width, title", [(4, 2, 1, "2 guesses, 2 deep"), (4, 1, 3, "3 guesses, 1 deep"), (3, 9, 3, "3 guesses, 2 deep")]
)
def test_the_best_shape_keeps_to_its_sliders(budget, depth, width, title):
    figure = best_shape([[0.6, 0.3, 0.1]], budget=budget, depth=depth, width=width)
    assert figure.layout.title.text == title


@pytest.fixture
def explorer():
    """An explorer that shows what it was asked, as numbers, and refuses an empty cascade."""

    def evaluate(drafters, matrix, lenience, exempt):
        if not any(matrix[0]):
            raise ValueError(f"an empty <cascade>: {matrix[0]}")
        asked = {f"first is {drafters[0]}": 1, "proposed": sum(matrix[0]), "inner": matrix[1][1], "lenience": lenience, "exempt": int(exempt)}
        return pd.DataFrame({"quantity": list(asked), "value": list(asked.values())})

    return cascade_explorer(evaluate, NAMES, start=K)


def knob(box, description):
    return next(child for child in box.children if getattr(child, "description", None) == description)


def bars(box):
    return dict(zip(box.children[-1].data[0].y, box.children[-1].data[0].x, strict=True))


def test_the_explorer_starts_at_its_matrix_and_shows_it_in_both_conventions(explorer):
    assert bars(explorer) == {"first is middle": 1, "proposed": 29, "inner": 1, "lenience": 1, "exempt": 1}
    rows = [line.split() for line in explorer.children[-2].value.splitlines()[1:]]
    assert rows[0] == ["target", "5", "14", "10", "5", "19", "29"] and rows[1][:7] == ["middle", "0", "1", "10", "0", "1", "11"]
    assert explorer.children[-1].layout.title.text == "target ← middle ← draft ← Max-Gram, lenience 1"


def test_every_knob_of_the_explorer_changes_the_figure(explorer):
    knob(explorer, "target ← draft").value = 0
    knob(explorer, "middle ← draft").value = 4
    knob(explorer, "lenience").value = 3.0
    knob(explorer, "Max-Gram's reviewer is never lenient").value = False
    assert bars(explorer) == {"first is middle": 1, "proposed": 15, "inner": 4, "lenience": 3, "exempt": 0}
    assert "lenience 3" in explorer.children[-1].layout.title.text and "exempt" not in explorer.children[-1].layout.title.text


def test_max_gram_stays_last_in_every_order_and_the_sliders_are_named_anew(explorer):
    order = knob(explorer, "order")
    assert [names for _, names in order.options] == [NAMES, ("draft", "middle", "Max-Gram")]
    order.value = ("draft", "middle", "Max-Gram")
    assert "first is draft" in bars(explorer) and knob(explorer, "draft ← middle").value == 1


def test_the_explorer_says_why_a_setting_is_refused_and_recovers(explorer):
    for name in NAMES:
        knob(explorer, f"target ← {name}").value = 0
    assert explorer.children[-2].value == "<pre>an empty &lt;cascade&gt;: (0, 0, 0)</pre>" and not explorer.children[-1].data
    knob(explorer, "target ← middle").value = 2
    assert bars(explorer)["proposed"] == 2


@pytest.mark.parametrize(
    "drafters, options, message",
    [
        ((), {}, "needs a drafter"),
        (NAMES, {"lengths": (0,)}, "a length above 0"),
        (NAMES, {"start": ((1,),)}, "3 drafters, 1 rows"),
        (NAMES, {"start": ((1, 0, 0), (1, 0, 0), (0, 0, 0))}, "upper triangular"),
        (NAMES, {"start": K, "lengths": (0, 1, 5, 10)}, "must start at one of .*, row 0 is"),
    ],
)
def test_an_explorer_that_starts_nowhere_is_refused(drafters, options, message):
    with pytest.raises(ValueError, match=message):
        cascade_explorer(lambda *setting: pd.DataFrame(), drafters, **options)
