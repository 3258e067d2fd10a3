"""Sliders redraw their figure, and the round they show is the loop's own."""

import plotly.graph_objects as go
import pytest

from specdec_lib.core.context import Context
from specdec_lib.drafts.trees.growing import TreeDraft
from specdec_lib.show.widgets import best_shape, one_round, sliders

START = {"width": 1, "colour": "red"}


def test_a_moved_slider_redraws_the_figure():
    box = sliders(
        lambda width, colour: go.Figure(go.Bar(y=[width]), {"title": {"text": colour}}),
        {"width": (1, 2), "colour": ("red", "blue")},
        start=START,
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
    "budget, depth, width, title",
    [
        (4, 2, 1, "2 guesses, 2 deep"),
        (4, 1, 3, "3 guesses, 1 deep"),
        (3, 9, 3, "3 guesses, 2 deep"),
    ],
)
def test_the_best_shape_keeps_to_its_sliders(budget, depth, width, title):
    figure = best_shape([[0.6, 0.3, 0.1]], budget=budget, depth=depth, width=width)
    assert figure.layout.title.text == title
