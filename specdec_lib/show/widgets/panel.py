"""An explorer on the page: knobs, and the figures and words that follow them."""

import html
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import starmap, zip_longest
from typing import Any, NamedTuple

import ipywidgets
import plotly.graph_objects as go
from plotly.basedatatypes import BasePlotlyType

from specdec_lib import how_to_install
from specdec_lib.show.saving import still
from specdec_lib.show.widgets.knobs import Values, push_button, slider, turn_knob

LABEL_WIDTH = "9em"  # the longest label is "acceptance rate"
ROW = ipywidgets.Layout(flex_flow="row wrap", align_items="center")
GRID = ipywidgets.Layout(
    grid_template_columns="repeat(auto-fill, minmax(330px, 1fr))", grid_gap="2px 18px", width="100%"
)
TEXT_COLOUR = "color:var(--jp-content-font-color1, inherit)"  # the page's own, light or dark
WORKING = f'<span style="{TEXT_COLOUR}">working …</span>'


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


class Shown(NamedTuple):
    """What an explorer shows: figures from top to bottom, and words above them, as HTML."""

    figures: tuple[go.Figure, ...]
    words: str = ""


class Panel(ipywidgets.VBox):
    """Knobs, and below them what they draw, anew when one of them comes to rest; where widgets
    cannot run, the first figure as an image; without anywidget, plain figures below a line that
    says how to install it.

    knobs      by the name under which `draw` takes its value, which labels those without a label;
               buttons are no parameters
    draw       from values to what is shown, always as many figures; its ValueError is shown, and
               the figures stay
    start      where some knobs start instead of their own start; ValueError as `turn` has it
    fit        adapts knobs to what others are at; called before each drawing, as a part of it
    presets    a button per name that turns some knobs at once
    heights    pixels kept for each figure, so that the page does not jump; else its own height
    """

    def __init__(
        self,
        knobs: Mapping[str, ipywidgets.DOMWidget],
        draw: Callable[..., Shown],
        *,
        start: Values | None = None,
        fit: Callable[[Mapping[str, Any]], None] = lambda _: None,
        presets: Mapping[str, Values] | None = None,
        heights: Sequence[int] = (),
    ) -> None:
        self.knobs: dict[str, Any] = dict(knobs)  # of many kinds
        self._draw = draw
        self._fit = fit
        self._busy = False
        for name, knob in self.knobs.items():
            knob.description = knob.description or name
            # the tooltip is for a pointer or a screen reader
            knob.tooltip = knob.tooltip or knob.description
            knob.layout.width = "auto"
        for name in self.values():
            self.knobs[name].style.description_width = LABEL_WIDTH
            self.knobs[name].observe(self._redraw, names="value")
        self._set(start or {})
        shown = draw(**self.values())
        self.words = ipywidgets.HTML(status(shown.words))
        self.figures = tuple(surface_of(figure) for figure in shown.figures)
        self.buttons = {}
        for name, values in ({"reset": self.values()} | dict(presets or {})).items():
            self._check(values)
            press = partial(self.turn, **values)
            self.buttons[name] = push_button(name, press, _listed(values))
        self.working = ipywidgets.HTML(layout=ipywidgets.Layout(width="7em"))
        grid = ipywidgets.GridBox(list(self.knobs.values()), layout=GRID)
        row = ipywidgets.HBox([*self.buttons.values(), self.working], layout=ROW)
        frames = starmap(_frame, zip_longest(self.figures, heights))
        super().__init__([*_notes(self.figures), grid, row, self.words, *frames])
        self.add_class("specdec-panel")

    def values(self) -> dict[str, Any]:
        """The value of each knob, by name."""
        return {name: knob.value for name, knob in self.knobs.items() if hasattr(knob, "value")}

    def turn(self, **values: Any) -> None:
        """Turn several knobs and draw once. Raises ValueError for a knob that does not exist, or a
        value that it does not offer; all knobs then stay as they were.
        """
        before = self.values()
        try:
            self._set(values)
        except ValueError:
            self._set(before)
            raise
        self._redraw()

    def _check(self, names: Iterable[str]) -> None:
        if unknown := sorted(set(names) - set(known := self.values())):
            raise ValueError(f"there is no knob {unknown[0]!r}, the knobs are {', '.join(known)}")

    def _set(self, values: Values) -> None:
        """Turn knobs twice, because the range of one may depend on another."""
        self._check(values)
        self._busy = True
        for _ in range(2):
            for name, value in values.items():
                turn_knob(self.knobs[name], value)
            with suppress(ValueError):  # drawing says why
                self._fit(self.knobs)
        self._busy = False
        for name, value in values.items():
            if (knob := self.knobs[name]).value != value:
                options = [one for _, one in getattr(knob, "options", ())]
                allowed = f"it offers {options}" if options else f"it stops at {knob.value!r}"
                raise ValueError(f"the knob {name!r} cannot be at {value!r}: {allowed}")

    def _redraw(self, _: object = None) -> None:
        if self._busy:
            return
        with self.at_work():
            self._fit(self.knobs)
            shown = self._draw(**self.values())
            self.words.value = status(shown.words)
            for surface, figure in zip(self.figures, shown.figures, strict=True):
                replace_figure(surface, figure)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Meanwhile the page says so and knobs draw nothing; a ValueError is shown on the page."""
        self.working.value = WORKING
        self._busy = True
        try:
            yield
        except ValueError as problem:
            style = f'role="alert" style="white-space:pre-wrap;{TEXT_COLOUR}"'
            self.words.value = f"<pre {style}>{html.escape(str(problem))}</pre>"
        finally:
            self.working.value = ""
            self._busy = False

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        """The widget, and for pages without widgets the first figure and the knobs' values."""
        bundle = super()._repr_mimebundle_(**kwargs) or {}
        text = f"explorer at {_listed(self.values())} (its knobs need a running notebook)"
        for surface in self.figures:
            _send(surface)
        first = self.figures[0]
        shown = first.figure if isinstance(first, PlainFigure) else go.Figure(first)
        return bundle | {"text/plain": text} | still(shown)


def sliders(
    draw: Callable[..., go.Figure], choices: Mapping[str, Sequence[float]], *, start: Values
) -> Panel:
    """A slider per parameter of `draw`, over its choices from its start on, and its figure."""
    knobs = {name: slider(values, values[0]) for name, values in choices.items()}
    return Panel(knobs, lambda **values: Shown((draw(**values),)), start=start)


def status(words: str) -> str:
    """Words under the knobs, as HTML that a screen reader reads out when it changes."""
    style = f'role="status" aria-live="polite" style="{TEXT_COLOUR}"'
    return f"<div {style}>{words}</div>" if words else ""


def counted(guesses: float) -> str:
    """So many guesses, in words."""
    return "1 guess" if guesses == 1 else f"{guesses:.0f} guesses"


def bullets(lines: Sequence[str], verdict: str = "") -> str:
    """A list of lines, each HTML itself, below a verdict in bold."""
    items = "".join(f"<li>{line}</li>" for line in lines)
    return f"<b>{verdict}</b><ul>{items}</ul>"


def surface_of(figure: go.Figure) -> Surface:
    """What shows a figure and others after it: plotly's widget, or without anywidget, which that
    needs, plain output.
    """
    try:
        return go.FigureWidget(figure)
    except ImportError:
        return PlainFigure(figure)


def _notes(surfaces: Sequence[Surface]) -> list[ipywidgets.HTML]:
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


def _listed(values: Values) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())


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


def _send(surface: Surface) -> None:
    """Send the page once more what a figure shows: it may have missed it while loading plotly."""
    if isinstance(surface, PlainFigure):
        return  # plain output needs no plotly of the widget's
    surface._repr_mimebundle_()
    surface.send_state(["_widget_layout", "_widget_data"])


def _frame(surface: Surface, height: int | None) -> ipywidgets.Box:
    """A frame of fixed height, scrolled where the surface is larger, that is empty until a page
    shows it: a page that is still loading plotly would draw a figure as nothing, for good.
    """
    pixels = f"{height}px" if height else None
    look = ipywidgets.Layout(height=pixels, width="100%", overflow="auto", flex="0 0 auto")
    box = ipywidgets.Box([], layout=look)
    box._view_count = 0  # from now on the page reports how often it shows the frame

    def fill(_: object) -> None:
        box.unobserve(fill, names="_view_count")
        _send(surface)
        box.children = (surface,)

    box.observe(fill, names="_view_count")
    return box
