"""An explorer on the page: knobs, and the figures and words that follow them."""

import contextlib
import html
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import ipywidgets
import plotly.graph_objects as go
from plotly.basedatatypes import BasePlotlyType
from traitlets import TraitError

from specdec_lib.show import figures
from specdec_lib.show.widgets.knobs import (
    Knob,
    Values,
    check_knobs,
    make_knobs,
    push_button,
    slider,
)

ROW = ipywidgets.Layout(flex_flow="row wrap", align_items="center")
GRID = ipywidgets.Layout(
    grid_template_columns="repeat(auto-fill, minmax(330px, 1fr))", grid_gap="2px 18px", width="100%"
)
TEXT_COLOUR = "color:var(--jp-content-font-color1, inherit)"  # the page's own, light or dark
WORKING = f'<span style="{TEXT_COLOUR}">working …</span>'


class Shown(NamedTuple):
    """What an explorer shows: figures from top to bottom, and words above them, as HTML."""

    figures: tuple[go.Figure, ...]
    words: str = ""


class Panel(ipywidgets.VBox):
    """Knobs, and below them what they draw, anew when one of them comes to rest.

    knobs      by the name under which `draw` takes its value; buttons are no parameters
    draw       from values to what is shown, always as many figures; the message of its ValueError
               is shown, and the figures stay
    start      where some knobs start instead of their own start
    fit        adapts knobs to what others are at; called before each drawing, as a part of it
    presets    a button per name that turns some knobs at once
    heights    pixels kept for each figure, so that the page does not jump; without them a figure
               has its own height

    Where widgets cannot run the first figure stands as an image.
    Raises ValueError for a knob that does not exist, or a value that it does not offer.
    """

    def __init__(
        self,
        knobs: Mapping[str, Knob | ipywidgets.DOMWidget],
        draw: Callable[..., Shown],
        *,
        start: Values | None = None,
        fit: Callable[[Mapping[str, Any]], None] = lambda _: None,
        presets: Mapping[str, Values] | None = None,
        heights: Sequence[int] = (),
    ) -> None:
        self._draw, self._fit, turns = draw, fit, dict(presets or {})
        self.knobs = make_knobs(knobs, start or {}, turns.values())
        fit(self.knobs)
        self._set(start or {})
        shown, self._turning = draw(**self.values()), False
        self.words, self._last = ipywidgets.HTML(status(shown.words)), shown.figures
        self.figures = tuple(map(go.FigureWidget, shown.figures))
        for name in self.values():
            self.knobs[name].observe(self._redraw, names="value")
        turns = {"reset": self.values()} | turns
        self.buttons = {
            name: push_button(name, partial(self.turn, **at), _listed(at))
            for name, at in turns.items()
        }
        grid = ipywidgets.GridBox(list(self.knobs.values()), layout=GRID)
        self.working = ipywidgets.HTML(layout=ipywidgets.Layout(width="7em"))
        row = ipywidgets.HBox([*self.buttons.values(), self.working], layout=ROW)
        frames = map(frame, self.figures, heights or [None] * len(self.figures))
        super().__init__([grid, row, self.words, *frames])
        self.add_class("specdec-panel")

    def values(self) -> dict[str, Any]:
        """The value of each knob, by name."""
        return {name: knob.value for name, knob in self.knobs.items() if hasattr(knob, "value")}

    def turn(self, **values: Any) -> None:
        """Turn several knobs and draw once.  Raises ValueError for a knob that does not exist, or a
        value that it does not have; all knobs then stay as they were.
        """
        check_knobs(values, before := self.values())
        try:
            self._set(values)
        except ValueError:
            self._set(before)
            raise
        finally:
            self._turning = False
            self._redraw()

    def _set(self, values: Values) -> None:
        """Turn knobs twice, because the range of one may depend on another."""
        self._turning = True
        for _ in range(2):
            for name, value in values.items():
                with contextlib.suppress(TraitError):
                    self.knobs[name].value = value
            with contextlib.suppress(ValueError):  # drawing says why
                self._fit(self.knobs)
        for name, value in values.items():
            if (at := self.knobs[name].value) != value:
                raise ValueError(
                    f"the knob {name!r} cannot be turned to {value!r}: it stops at {at!r}"
                )

    def _redraw(self, _: object = None) -> None:
        if self._turning:
            return
        self.working.value, self._turning = WORKING, True  # on the page while the kernel works
        try:
            self._fit(self.knobs)
            shown = self._draw(**self.values())
        except ValueError as problem:
            self.words.value = refusal_html(problem)
            return
        finally:
            self.working.value, self._turning = "", False
        self.words.value, self._last = status(shown.words), shown.figures
        for surface, figure in zip(self.figures, shown.figures, strict=True):
            replace_figure(surface, figure)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        """The widget, and for pages without widgets the first figure and the knobs' values."""
        bundle = super()._repr_mimebundle_(**kwargs)
        text = f"explorer at {_listed(self.values())} (its knobs need a running notebook)"
        for surface in self.figures:
            send(surface)
        return bundle | {"text/plain": text} | figures.still(self._last[0])


def sliders(
    draw: Callable[..., go.Figure], choices: Mapping[str, Sequence[Any]], *, start: Values
) -> Panel:
    """A slider per parameter of `draw`, and its figure below.

    choices    parameter name to the values its slider offers
    start      where each slider stands at first, one of its choices
    """
    knobs = {name: slider(values, None) for name, values in choices.items()}
    return Panel(knobs, lambda **values: Shown((draw(**values),)), start=start)


def status(words: str) -> str:
    """Words under the knobs, as HTML that a screen reader reads out when it changes."""
    style = f'role="status" aria-live="polite" style="{TEXT_COLOUR}"'
    return f"<div {style}>{words}</div>" if words else ""


def refusal_html(problem: ValueError) -> str:
    """Why there is nothing new to show, as HTML."""
    style = f'role="alert" style="white-space:pre-wrap;{TEXT_COLOUR}"'
    return f"<pre {style}>{html.escape(str(problem))}</pre>"


def counted(guesses: float) -> str:
    """So many guesses, in words."""
    return "1 guess" if guesses == 1 else f"{guesses:.0f} guesses"


def bullets(lines: Sequence[str]) -> str:
    """A list of lines, each HTML itself."""
    return "<ul>" + "".join(f"<li>{line}</li>" for line in lines) + "</ul>"


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


def _listed(values: Values) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())


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
