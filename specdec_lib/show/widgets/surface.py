"""Figures on the page, replaced in place without a jump."""

from collections.abc import Sequence

import ipywidgets
import plotly.graph_objects as go
from plotly.basedatatypes import BasePlotlyType


def replace_figure(surface: go.FigureWidget, figure: go.Figure) -> None:
    """Show another figure on the same surface."""
    with surface.batch_update():  # one message, and one drawing
        if _extends(surface.data, figure.data):
            for old, new in zip(surface.data, figure.data, strict=True):
                _overwrite(old, new, keep=("type", "uid"))
        else:
            surface.data = ()
            surface.add_traces(figure.data)
        # the template is mostly the same, and the slowest to set
        same = surface.layout.template == figure.layout.template
        _overwrite(surface.layout, figure.layout, keep=("template",) if same else ())


def send(surface: go.FigureWidget) -> None:
    """Send the page once more what a figure shows: it may have missed it while loading plotly."""
    surface._repr_mimebundle_()
    surface.send_state(["_widget_layout", "_widget_data"])


def frame(surface: go.FigureWidget, height: int | None) -> ipywidgets.Box:
    """A frame of fixed height, scrolled where the surface is larger, that is empty until a page
    shows it: a page that is still loading plotly would draw a figure as nothing, for good.
    """
    pixels = f"{height}px" if height else None
    look = ipywidgets.Layout(height=pixels, width="100%", overflow="auto", flex="0 0 auto")
    box = ipywidgets.Box([], layout=look)
    box._view_count = 0  # from now on the page reports how often it shows the frame

    def fill(_: object) -> None:
        box.unobserve(fill, names="_view_count")
        send(surface)
        box.children = (surface,)

    box.observe(fill, names="_view_count")
    return box


def _extends(before: Sequence[BasePlotlyType], after: Sequence[BasePlotlyType]) -> bool:
    """Whether traces keep their kinds and lose no property: plotly in the page remembers what it
    made of a range that is gone.
    """
    if [trace.type for trace in before] != [trace.type for trace in after]:
        return False
    return all(
        set(old.to_plotly_json()) - {"uid"} <= set(new.to_plotly_json())
        for old, new in zip(before, after, strict=True)
    )


def _overwrite(old: BasePlotlyType, new: BasePlotlyType, *, keep: Sequence[str]) -> None:
    """Set every property of one part of a figure to the other's, and remove those it lacks."""
    wanted = dict.fromkeys(old.to_plotly_json()) | new.to_plotly_json()
    old.update({name: value for name, value in wanted.items() if name not in keep}, overwrite=True)
