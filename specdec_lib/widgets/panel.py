"""What every explorer is made of: knobs, and the figures and words that they draw anew."""

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ipywidgets
import plotly.graph_objects as go

from specdec_lib import figures

BOX = ipywidgets.Layout(flex_flow="row wrap", align_items="center")
Knob = ipywidgets.ValueWidget | ipywidgets.Button
Surface = go.FigureWidget | ipywidgets.Output


@dataclass(frozen=True)
class Shown:
    """What an explorer shows: figures from top to bottom, and words above them, as HTML."""

    figures: tuple[go.Figure, ...]
    words: str = ""


class Panel(ipywidgets.VBox):
    """Knobs, and below them what they draw, anew when one of them comes to rest.

    knobs    by the name under which `draw` takes its value; buttons act themselves and are no parameters
    draw     their values in, what is shown out, always as many figures; where it raises ValueError, that is said and the figures stay

    Where widgets cannot run (a code host, a page made from the notebook) the first figure stands as an image; where plotly's own widget cannot
    be made, figures are drawn as plain output.
    """

    def __init__(self, knobs: Mapping[str, Knob], draw: Callable[..., Shown]) -> None:
        self.knobs = dict(knobs)
        self._valued = {name: knob for name, knob in self.knobs.items() if isinstance(knob, ipywidgets.ValueWidget)}
        self._draw, self._start, self._resting = draw, self.values(), False
        first = draw(**self.values())
        self.words, self.figures = ipywidgets.HTML(first.words), tuple(map(_surface, first.figures))
        self._last = first.figures
        again = ipywidgets.Button(description="reset", tooltip="back to where every knob stood first", layout=ipywidgets.Layout(width="6em"))
        again.on_click(lambda _: self.turn(**self._start))
        for knob in self._valued.values():
            knob.observe(self._redraw, names="value")
        super().__init__([ipywidgets.HBox([*self.knobs.values(), again], layout=BOX), self.words, *self.figures])

    def values(self) -> dict[str, Any]:
        """What each knob is turned to."""
        return {name: knob.value for name, knob in self._valued.items()}

    def turn(self, **values: Any) -> None:
        """Turn several knobs and draw once.  Raises ValueError for a knob that is not there."""
        if unknown := sorted(values.keys() - self._valued.keys()):
            raise ValueError(f"there is no knob {unknown[0]!r}, the knobs are {', '.join(self._valued)}")
        self._resting = True
        try:
            for name, value in values.items():
                self._valued[name].value = value
        finally:
            self._resting = False
        self._redraw()

    def _redraw(self, _: object = None) -> None:
        if self._resting:
            return
        try:
            shown = self._draw(**self.values())
        except ValueError as problem:
            self.words.value = refusal(problem)
            return
        self.words.value, self._last = shown.words, shown.figures
        for surface, figure in zip(self.figures, shown.figures, strict=True):
            replace(surface, figure)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        """The widget, and for pages without widgets the first figure and the knobs' values in words."""
        bundle = super()._repr_mimebundle_(**kwargs)
        told = ", ".join(f"{name} {value}" for name, value in self.values().items())
        return bundle | {"text/plain": f"explorer at {told} (its knobs need a running notebook)"} | figures.still(self._last[0])


def sliders(draw: Callable[..., go.Figure], choices: Mapping[str, Sequence[Any]], *, start: Mapping[str, Any]) -> Panel:
    """One slider per parameter of `draw`, and its figure below, drawn anew when a slider comes to rest.

    choices    parameter name to the values its slider offers; usable with the arrow keys
    start      where each slider stands at first

    Raises ValueError unless each start is among its choices.
    """
    return Panel({name: slider(name, values, start.get(name)) for name, values in choices.items()}, lambda **values: Shown((draw(**values),)))


def slider(name: str, values: Sequence[Any], start: Any, *, tooltip: str = "") -> ipywidgets.SelectionSlider:
    """A slider over some values, for mouse and arrow keys.  Raises ValueError unless it starts at one of them."""
    if start not in values:
        raise ValueError(f"the slider {name!r} must start at one of {list(values)}, got {start}")
    look = {"continuous_update": False, "style": {"description_width": "8em"}, "tooltip": tooltip or name}
    return ipywidgets.SelectionSlider(options=list(values), value=start, description=name, **look)


def refusal(problem: ValueError) -> str:
    """Why there is nothing new to show, as HTML."""
    return f'<pre role="alert">{html.escape(str(problem))}</pre>'


def replace(surface: Surface, figure: go.Figure) -> None:
    """Show another figure on the same surface."""
    if isinstance(surface, ipywidgets.Output):
        surface.outputs = ()
        surface.append_display_data(figure)
        return
    with surface.batch_update():
        surface.data = ()
        surface.add_traces(figure.data)
        surface.update_layout(figure.layout, overwrite=True)


def _surface(figure: go.Figure) -> Surface:
    """Where a figure is shown and replaced: plotly's widget, or plain output where anywidget is not installed."""
    try:
        return go.FigureWidget(figure)
    except ImportError:
        plain = ipywidgets.Output(layout=ipywidgets.Layout(min_height=f"{figure.layout.height or 450}px"))
        plain.append_display_data(figure)
        return plain
