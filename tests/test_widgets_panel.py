"""A panel draws what its knobs say, refuses what is wrong, and does not depend on another one."""

import base64

import ipywidgets
import numpy as np
import plotly.graph_objects as go
import pytest

from specdec_lib.show.widgets import Panel, Shown, replace, slider
from specdec_lib.show.widgets.knobs import choice, typed


def bars(width, note="", annotated=False):
    layout = {
        "title": {"text": note or "bars"},
        "annotations": [{"text": "here"}] if annotated else [],
    }
    return go.Figure(go.Bar(y=[width]), layout)


def panel(**options):
    def draw(width, note):
        if width == 3:
            raise ValueError("three <is> too many")
        return Shown((bars(width, note), bars(-width)), f"<b>{width}</b>")

    return Panel(
        {
            "width": slider("width", (1, 2, 3, 4), 1, tooltip="bars"),
            "note": typed("note", "", "a note", "say"),
        },
        draw,
        **options,
    )


def test_turning_draws_once_and_says_what_it_shows():
    box = panel()
    box.turn(width=2, note="two")
    assert [list(figure.data[0].y) for figure in box.figures] == [[2], [-2]] and box.figures[
        0
    ].layout.title.text == "two"
    assert (
        "<b>2</b>" in box.words.value
        and 'role="status"' in box.words.value
        and 'aria-live="polite"' in box.words.value
    )


def test_a_refused_value_is_said_and_the_figures_stay():
    box = panel()
    box.knobs["width"].value = 3
    assert "three &lt;is&gt; too many" in box.words.value and list(box.figures[0].data[0].y) == [1]
    box.knobs["width"].value = 4
    assert list(box.figures[0].data[0].y) == [4] and "too many" not in box.words.value


@pytest.mark.parametrize(
    "values, message",
    [({"height": 1}, "there is no knob 'height'"), ({"width": 9}, "'width' cannot be turned to 9")],
)
def test_a_knob_or_value_that_is_not_there_is_refused(values, message):
    box = panel()
    with pytest.raises(ValueError, match=message):
        box.turn(**values)
    box.knobs["width"].value = 2
    assert list(box.figures[0].data[0].y) == [2]


def test_a_value_that_a_knob_cuts_off_is_refused_and_no_knob_is_turned():
    drawn = []
    knobs = {
        "length": ipywidgets.IntSlider(value=1, min=0, max=5),
        "note": typed("note", "", "a note", "say"),
    }
    box = Panel(knobs, lambda length, note: drawn.append((length, note)) or Shown((bars(length),)))
    with pytest.raises(ValueError, match="'length' cannot be turned to 99: it stops at 5"):
        box.turn(note="changed", length=99)
    assert box.values() == {"length": 1, "note": ""} and drawn[-1] == (1, "")
    box.turn(length=5)
    assert drawn[-1] == (5, "")


def test_a_knob_whose_range_hangs_on_another_is_turned_with_it():
    length, most = ipywidgets.IntSlider(value=1, min=0, max=3), slider("most", (3, 9), 3)
    most.observe(lambda change: setattr(length, "max", change["new"]), names="value")
    box = Panel({"length": length, "most": most}, lambda length, most: Shown((bars(length),)))
    box.turn(length=8, most=9)
    assert box.values() == {"length": 8, "most": 9}
    with pytest.raises(ValueError, match="'length' cannot be turned to 8: it stops at 3"):
        box.turn(length=8, most=3)
    assert box.values() == {"length": 8, "most": 9}


def buttons(box):
    return {button.description: button for button in box.children[1].children}


def test_presets_and_reset_turn_the_knobs():
    box = panel(presets={"wide": {"width": 4}})
    buttons(box)["wide"].click()
    assert box.values() == {"width": 4, "note": ""} and list(box.figures[0].data[0].y) == [4]
    buttons(box)["reset"].click()
    assert box.values()["width"] == 1 and all(button.tooltip for button in buttons(box).values())


def test_a_preset_of_no_knob_and_heights_of_no_figure_are_refused():
    with pytest.raises(ValueError, match="no knob 'depth'"):
        panel(presets={"deep": {"depth": 2}})
    with pytest.raises(ValueError, match="2 figures need as many heights"):
        panel(heights=(300,))


def test_figures_stand_in_frames_of_fixed_height():
    box = panel(heights=(300, 200))
    assert [frame.layout.height for frame in box.children[-2:]] == ["300px", "200px"]


def test_two_panels_are_independent():
    one, two = panel(), panel()
    one.turn(width=4)
    assert list(two.figures[0].data[0].y) == [1] and two.values()["width"] == 1


def test_a_replaced_figure_leaves_nothing_behind():
    surface = go.FigureWidget(
        bars(1, annotated=True).update_layout(yaxis={"range": [0, 3]}, shapes=[{"type": "line"}])
    )
    replace(surface, bars(2))
    assert (
        not surface.layout.annotations
        and not surface.layout.shapes
        and surface.layout.yaxis.range is None
    )
    replace(surface, bars(3, annotated=True))
    assert surface.layout.annotations[0].text == "here"


def told(figure):
    """What a figure says, but for the names that the widget gives to its traces."""
    traces = [
        {name: value for name, value in trace.to_plotly_json().items() if name != "uid"}
        for trace in figure.data
    ]
    return go.Figure(traces, figure.layout).to_json()


def lines(*ends, **changes):
    return go.Figure([go.Scatter(x=[0, end], y=np.array([1.0, end])) for end in ends], changes)


@pytest.mark.parametrize(
    "before,after,messages",
    [
        (lines(1, 2), lines(3, 4), 1),
        (
            lines(1).update_traces(marker={"size": 9}),
            lines(2).update_traces(mode="lines", marker={"color": "red"}),
            1,
        ),
        (lines(1).update_traces(text="old"), lines(2), 2),
        (go.Figure(go.Heatmap(z=[[1, 2]], zmin=0, zmax=9)), go.Figure(go.Heatmap(z=[[3, 4]])), 2),
        (
            lines(1, title="old", shapes=[{"type": "line"}]),
            lines(1, xaxis={"range": [0, 3]}, template="none"),
            1,
        ),
        (lines(1), lines(2, 3, title="more"), 3),
        (bars(1), lines(1), 3),
        (lines(1), go.Figure(), 2),
    ],
)
def test_a_replaced_figure_says_what_the_other_says_in_one_message_where_its_traces_go_on(
    before, after, messages, monkeypatch
):
    surface, sent = go.FigureWidget(before), []
    for name in ("update", "restyle", "relayout", "addTraces", "deleteTraces"):
        monkeypatch.setattr(
            surface, f"_send_{name}_msg", lambda *given, name=name, **named: sent.append(name)
        )
    replace(surface, after)
    assert told(surface) == told(go.FigureWidget(after)) and len(sent) == messages


def test_every_knob_is_named_and_explained():
    for knob in (
        slider("width", (1, 2), 1, tooltip="of it"),
        choice("kind", ("a", "b"), "a", "which"),
        typed("note", "", "any", "say", lines=3),
    ):
        assert knob.description and knob.tooltip and knob.layout.width == "auto"
    with pytest.raises(ValueError, match="'kind' must start at one of"):
        choice("kind", ("a", "b"), "c", "which")


def test_the_panel_stands_as_an_image_where_widgets_cannot_run():
    bundle = panel()._repr_mimebundle_()
    assert "width 1" in bundle["text/plain"] and base64.b64decode(bundle["image/png"]).startswith(
        b"\x89PNG"
    )
    assert "application/vnd.jupyter.widget-view+json" in bundle


def test_figures_are_plain_output_where_plotlys_widget_cannot_be_made(monkeypatch):
    def missing(*given):
        raise ImportError("anywidget")

    monkeypatch.setattr(go, "FigureWidget", missing)
    box = panel(heights=(300, 200))
    assert all(isinstance(figure, ipywidgets.Output) for figure in box.figures)
    box.turn(width=2)
    assert len(box.figures[0].outputs) == 1
