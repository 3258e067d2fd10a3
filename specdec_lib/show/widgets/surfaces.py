"""What shows a figure on the page, and others after it in its place."""

import html
import json
from collections.abc import Sequence
from typing import Any

import ipywidgets
import plotly.graph_objects as go
from plotly.basedatatypes import BasePlotlyType

from specdec_lib import how_to_install
from specdec_lib.show.widgets.words import TEXT_COLOUR


class PlainFigure(ipywidgets.Output):
    """A figure as plain output, where plotly's widget has no anywidget to stand on: it is drawn
    whole at each change.
    """

    def __init__(self, figure: go.Figure) -> None:
        super().__init__()
        self.show(figure)

    def show(self, figure: go.Figure) -> None:
        """Draw another figure in its place."""
        self.figure = figure
        data = {"application/vnd.plotly.v1+json": json.loads(str(figure.to_json()))}
        self.outputs = ({"output_type": "display_data", "data": data, "metadata": {}},)


Surface = go.FigureWidget | PlainFigure


def surface_of(figure: go.Figure) -> Surface:
    """What shows a figure and others after it: plotly's widget, or without anywidget, which that
    needs, plain output.
    """
    try:
        return go.FigureWidget(figure)
    except ImportError:
        return PlainFigure(figure)


def missing_notes(surfaces: Sequence[Surface]) -> list[ipywidgets.HTML]:
    """How to install what plotly's widget needs, above figures that go without it."""
    if not any(isinstance(one, PlainFigure) for one in surfaces):
        return []
    words = f"Figures are drawn as plain output. {how_to_install(('anywidget',))}"
    style = f'style="white-space:pre-wrap;{TEXT_COLOUR}"'
    return [ipywidgets.HTML(f"<pre {style}>{html.escape(words)}</pre>")]


def replace_figure(surface: Surface, figure: go.Figure) -> None:
    """Show another figure on the same surface."""
    if isinstance(surface, PlainFigure):
        surface.show(figure)
        return
    with surface.batch_update():  # one message, and one drawing
        if _extends(surface.data, figure.data):
            for old, new in zip(surface.data, figure.data, strict=True):
                _overwrite(old, new, keep=("type", "uid"))
        else:
            surface.data = ()
            surface.add_traces(figure.data)
        # the template is mostly the same, and the slowest to set
        before: Any = surface.layout
        after: Any = figure.layout
        same = before.template == after.template
        _overwrite(before, after, keep=("template",) if same else ())


def _extends(before: Sequence[Any], after: Sequence[Any]) -> bool:
    """Whether traces keep their kinds and lose no property: plotly in the page remembers what it
    made of a range that is gone.
    """
    return [trace.type for trace in before] == [trace.type for trace in after] and all(
        set(old.to_plotly_json()) - {"uid"} <= set(new.to_plotly_json())
        for old, new in zip(before, after, strict=True)
    )


def _overwrite(old: BasePlotlyType, new: BasePlotlyType, *, keep: Sequence[str]) -> None:
    """Set every property of one part of a figure to the other's, and remove those it lacks."""
    wanted = dict.fromkeys(old.to_plotly_json()) | new.to_plotly_json()
    old.update({name: value for name, value in wanted.items() if name not in keep}, overwrite=True)


def send_again(surface: Surface) -> None:
    """Send the page once more what a figure shows: it may have missed it while loading plotly."""
    if isinstance(surface, PlainFigure):
        return  # plain output needs no plotly of the widget's
    surface._repr_mimebundle_()
    surface.send_state(["_widget_layout", "_widget_data"])


def frame_of(surface: Surface, height: int | None) -> ipywidgets.Box:
    """A frame of fixed height, scrolled where the surface is larger, that is empty until a page
    shows it: a page that is still loading plotly would draw a figure as nothing, for good.
    """
    pixels = f"{height}px" if height else None
    look = ipywidgets.Layout(height=pixels, width="100%", overflow="auto", flex="0 0 auto")
    box = ipywidgets.Box([], layout=look)
    box._view_count = 0  # from now on the page reports how often it shows the frame

    def fill(_: object) -> None:
        box.unobserve(fill, names="_view_count")
        send_again(surface)
        box.children = (surface,)

    box.observe(fill, names="_view_count")
    return box
