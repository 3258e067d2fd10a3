"""A panel draws what its knobs say, refuses what is wrong, and does not depend on another one."""

import base64

import ipywidgets
import numpy as np
import plotly.graph_objects as go
import pytest

from specdec_lib.core.context import Context
from specdec_lib.drafts.trees.growing import TreeDraft
from specdec_lib.show.widgets import best_shape, one_round, sliders
from specdec_lib.show.widgets.knobs import choice, slider
from specdec_lib.show.widgets.panel import Panel, Shown, replace_figure


def bars(width, note=""):
    return go.Figure(go.Bar(y=[width]), {"title": {"text": note or "bars"}})


def draw(width, note, kind):
    if width == 3:
        raise ValueError("three <is> too many")
    return Shown((bars(width, note), bars(-width)), f"<b>{width}</b>")


def panel(**options):
    kinds = choice((None, 5), "what kind", label="kind of note", named={None: "all", 5: "some"}.get)
    knobs = {"width": slider((1, 2, 3, 4), 1, "bars"), "note": ipywidgets.Text(), "kind": kinds}
    return Panel(knobs, draw, **options)


def shown(box):
    return [(list(one.data[0].y), one.layout.title.text) for one in box.figures]


def test_turning_draws_once_and_says_what_it_shows():
    box = panel()
    box.turn(width=2, note="two")
    assert shown(box) == [([2], "two"), ([-2], "bars")]
    assert all(part in box.words.value for part in ("<b>2</b>", 'role="status"', "aria-live"))
    assert [one.description for one in box.knobs.values()] == ["width", "note", "kind of note"]
    assert [one.tooltip for one in box.knobs.values()] == ["bars", "note", "what kind"]


def test_a_moved_slider_redraws_its_figure():
    choices = {"width": (1, 2), "more": (0, 5)}
    box = sliders(lambda width, more: bars(width + more), choices, start={})
    assert shown(box) == [([1], "bars")]
    box.knobs["width"].value, box.knobs["more"].value = 2, 5
    assert shown(box) == [([7], "bars")]


def test_a_refused_value_is_said_and_the_figures_stay():
    box, said = panel(), []
    box.working.observe(lambda change: said.append("working" in change["new"]), names="value")
    box.knobs["width"].value = 3
    assert "three &lt;is&gt; too many" in box.words.value and shown(box)[0][0] == [1]
    box.knobs["width"].value = 4
    assert shown(box)[0][0] == [4] and "too many" not in box.words.value
    assert said == [True, False, True, False], "that it is working, and that it stopped"


@pytest.mark.parametrize("wrong", [{"height": 1}, {"kind": "all"}, {"width": "wide"}, {"note": 5}])
def test_a_knob_or_value_that_does_not_exist_is_refused(wrong):
    box = panel()
    with pytest.raises(ValueError, match=f"knob '{next(iter(wrong))}'"):
        box.turn(**{"width": 4} | wrong)
    assert box.values() == {"width": 1, "note": "", "kind": None}
    box.knobs["width"].value = 2
    assert shown(box)[0][0] == [2]
    with pytest.raises(ValueError, match=f"knob '{next(iter(wrong))}'"):
        panel(start=wrong)


def test_a_range_that_depends_on_another_knob_is_followed_and_its_end_refuses_both():
    drawn, knobs = [], {"length": ipywidgets.IntSlider(1), "most": slider((3, 9), 3)}
    box = Panel(
        knobs,
        lambda length, most: drawn.append((length, most)) or Shown((bars(length),)),
        fit=lambda made: setattr(made["length"], "max", made["most"].value),
    )
    box.turn(length=8, most=9)
    assert box.values() == {"length": 8, "most": 9} and drawn[-1] == (8, 9)
    with pytest.raises(ValueError, match="'length' cannot be at 8: it stops at 3"):
        box.turn(length=8, most=3)
    assert box.values() == {"length": 8, "most": 9} and drawn[-1] == (8, 9)


def test_presets_and_reset_turn_the_knobs_that_there_are():
    box = panel(start={"kind": 5}, presets={"wide": {"width": 2.5, "kind": None}})
    assert [label for label, _ in box.knobs["width"].options] == ["1", "2", "3", "4"]
    box.buttons["wide"].click()
    assert box.values() == {"width": 2.5, "note": "", "kind": None} and shown(box)[0][0] == [2.5]
    assert [value for _, value in box.knobs["width"].options] == [1, 2, 2.5, 3, 4]
    assert box.knobs["kind"].label == "all"
    box.buttons["reset"].click()
    assert box.values() == {"width": 1, "note": "", "kind": 5}
    with pytest.raises(ValueError, match="no knob 'depth'"):
        panel(presets={"deep": {"depth": 2}})


def test_a_panel_stands_as_an_image_where_widgets_cannot_run():
    bundle = panel()._repr_mimebundle_()
    assert "width 1" in bundle["text/plain"]
    assert base64.b64decode(bundle["image/png"]).startswith(b"\x89PNG")
    assert "application/vnd.jupyter.widget-view+json" in bundle


def contents(figure):
    """What a figure says, but for the names that the widget gives to its traces."""
    traces = [{k: v for k, v in one.to_plotly_json().items() if k != "uid"} for one in figure.data]
    return go.Figure(traces, figure.layout).to_json()


def lines(*ends, **changes):
    return go.Figure([go.Scatter(x=[0, end], y=np.array([1.0, end])) for end in ends], changes)


@pytest.mark.parametrize(
    "before, after, messages",
    [
        (lines(1, 2), lines(3, 4), 1),
        (lines(1).update_traces(marker={"size": 9}), lines(2).update_traces(mode="lines"), 2),
        (go.Figure(go.Heatmap(z=[[1, 2]], zmax=9)), go.Figure(go.Heatmap(z=[[3, 4]])), 2),
        (
            lines(1, title="old", shapes=[{"type": "line"}], yaxis={"range": [0, 3]}),
            lines(1, xaxis={"range": [0, 3]}, template="none"),
            1,
        ),
        (lines(1, annotations=[{"text": "here"}]), lines(2), 1),
        (lines(1), lines(2, 3, title="more"), 3),
        (bars(1), lines(1), 3),
    ],
)
def test_a_replaced_figure_leaves_nothing_in_few_messages(before, after, messages, monkeypatch):
    surface, sent = go.FigureWidget(before), []
    for name in ("update", "restyle", "relayout", "addTraces", "deleteTraces"):
        monkeypatch.setattr(surface, f"_send_{name}_msg", lambda *_, **__: sent.append(1))
    replace_figure(surface, after)
    assert contents(surface) == contents(go.FigureWidget(after)) and len(sent) == messages


def test_the_round_that_is_drawn_says_what_was_accepted(ladder, prompts):
    context = Context.of(ladder.encode(prompts[0]))
    figure = one_round(ladder, TreeDraft(ladder.draft, budget=8), context, seed=1, temperature=0.0)
    assert "of 8 guesses accepted" in figure.layout.title.text


@pytest.mark.parametrize("depth, width, title", [(2, 1, "2 guesses, 2 deep"), (1, 3, "3 guesses")])
def test_the_best_shape_keeps_to_its_sliders(depth, width, title):
    figure = best_shape([[0.6, 0.3, 0.1]], budget=4, depth=depth, width=width)
    assert figure.layout.title.text.startswith(title)
