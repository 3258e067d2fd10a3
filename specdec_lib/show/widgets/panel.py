"""What every explorer is made of: knobs, and the figures and words that they draw anew."""

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ipywidgets
import plotly.graph_objects as go
from plotly.basedatatypes import BasePlotlyType
from traitlets import TraitError

from specdec_lib.show import figures
from specdec_lib.show.widgets.knobs import check_names, slider

BOX = ipywidgets.Layout(flex_flow="row wrap", align_items="center")
GRID = ipywidgets.Layout(
    grid_template_columns="repeat(auto-fill, minmax(330px, 1fr))", grid_gap="2px 18px", width="100%"
)
INKED = "color:var(--jp-content-font-color1, inherit)"  # the page's own, light or dark
Knob = ipywidgets.ValueWidget | ipywidgets.Button
Surface = go.FigureWidget | ipywidgets.Output


@dataclass(frozen=True)
class Shown:
    """What an explorer shows: figures from top to bottom, and words above them, as HTML."""

    figures: tuple[go.Figure, ...]
    words: str = ""


class Panel(ipywidgets.VBox):
    """Knobs, and below them what they draw, anew when one of them comes to rest.

    knobs      by the name under which `draw` takes its value; buttons act themselves and are no
               parameters
    draw       their values in, what is shown out, always as many figures; where it raises
               ValueError, that is said and the figures stay
    presets    a button per name that turns some knobs at once
    heights    pixels kept for each figure, which is scrolled where it is larger: the page does not
               jump; without it a figure has its own

    Every knob is reached and turned with the keyboard. Where widgets cannot run (a code host, a
    page made from the notebook) the first figure stands as an image; where plotly's own widget
    cannot be made, figures are drawn as plain output.
    Raises ValueError unless there is a height per figure or none, and as `turn` for a preset of a
    knob that is not there.
    """

    def __init__(
        self,
        knobs: Mapping[str, Knob],
        draw: Callable[..., Shown],
        *,
        presets: Mapping[str, Mapping[str, Any]] | None = None,
        heights: Sequence[int] = (),
    ) -> None:
        self.knobs = dict(knobs)
        self._valued = {
            name: knob
            for name, knob in self.knobs.items()
            if isinstance(knob, ipywidgets.ValueWidget)
        }
        self._draw, self._start, self._resting = draw, self.values(), False
        for values in (presets or {}).values():
            check_names(values, self._valued)
        first = draw(**self.values())
        if heights and len(heights) != len(first.figures):
            raise ValueError(
                f"{len(first.figures)} figures need as many heights or none, got {list(heights)}"
            )
        self.words, self.figures = (
            ipywidgets.HTML(told(first.words)),
            tuple(map(_surface, first.figures)),
        )
        self._last = first.figures
        framed = [
            _framed(surface, height)
            for surface, height in zip(
                self.figures, heights or [None] * len(self.figures), strict=True
            )
        ]
        for knob in self._valued.values():
            knob.observe(self._redraw, names="value")
        buttons = {"reset": self._start} | dict(presets or {})
        row = ipywidgets.HBox(
            [self._button(name, values) for name, values in buttons.items()], layout=BOX
        )
        super().__init__(
            [ipywidgets.GridBox(list(self.knobs.values()), layout=GRID), row, self.words, *framed]
        )
        self.add_class("specdec-panel")

    def values(self) -> dict[str, Any]:
        """What each knob is turned to."""
        return {name: knob.value for name, knob in self._valued.items()}

    def turn(self, **values: Any) -> None:
        """Turn several knobs and draw once.

        Raises ValueError for a knob that is not there, or a value that it does not have; all knobs
        then stand where they stood.
        """
        check_names(values, self._valued)
        before, self._resting = self.values(), True
        try:
            self._set(values)
        except ValueError:
            self._set(before)
            raise
        finally:
            self._resting = False
            self._redraw()

    def _set(self, values: Mapping[str, Any]) -> None:
        """Turn knobs twice, as what one may be turned to may hang on another.

        Raises ValueError if one does not stand where it should.
        """
        refused: dict[str, Exception | str] = {}
        for _ in range(2):
            refused.clear()
            for name, value in values.items():
                try:
                    self._valued[name].value = value
                except TraitError as problem:
                    refused[name] = problem
        for name, value in values.items():
            if name in refused or self._valued[name].value != value:
                why = refused.get(name, f"it stops at {self._valued[name].value!r}")
                raise ValueError(f"the knob {name!r} cannot be turned to {value!r}: {why}")

    def _button(self, name: str, values: Mapping[str, Any]) -> ipywidgets.Button:
        button = ipywidgets.Button(
            description=name, tooltip=_turns(name, values), layout=ipywidgets.Layout(width="auto")
        )
        button.on_click(lambda _: self.turn(**values))
        return button

    def _redraw(self, _: object = None) -> None:
        if self._resting:
            return
        try:
            shown = self._draw(**self.values())
        except ValueError as problem:
            self.words.value = refusal(problem)
            return
        self.words.value, self._last = told(shown.words), shown.figures
        for surface, figure in zip(self.figures, shown.figures, strict=True):
            replace(surface, figure)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        """The widget, and for pages without widgets the first figure and the knobs' values in
        words.
        """
        bundle = super()._repr_mimebundle_(**kwargs)
        values = ", ".join(f"{name} {value}" for name, value in self.values().items())
        image = figures.still(self._last[0])
        for surface in self.figures:
            _send(surface)
        return (
            bundle
            | {"text/plain": f"explorer at {values} (its knobs need a running notebook)"}
            | image
        )


def sliders(
    draw: Callable[..., go.Figure],
    choices: Mapping[str, Sequence[Any]],
    *,
    start: Mapping[str, Any],
) -> Panel:
    """One slider per parameter of `draw`, and its figure below, drawn anew when a slider comes to
    rest.

    choices    parameter name to the values its slider offers; usable with the arrow keys
    start      where each slider stands at first

    Raises ValueError unless each start is among its choices.
    """
    return Panel(
        {name: slider(name, values, start.get(name)) for name, values in choices.items()},
        lambda **values: Shown((draw(**values),)),
    )


def told(words: str) -> str:
    """Words under the knobs, which a screen reader says anew when they change, in the page's own
    colour, light or dark.
    """
    return f'<div role="status" aria-live="polite" style="{INKED}">{words}</div>' if words else ""


def refusal(problem: ValueError) -> str:
    """Why there is nothing new to show, as HTML."""
    return (
        f'<pre role="alert" style="white-space:pre-wrap;{INKED}">{html.escape(str(problem))}</pre>'
    )


def replace(surface: Surface, figure: go.Figure) -> None:
    """Show another figure on the same surface."""
    if isinstance(surface, ipywidgets.Output):
        surface.outputs = ()
        surface.append_display_data(figure)
        return
    with surface.batch_update():  # one message, and one drawing
        if _goes_on(surface.data, figure.data):
            for old, new in zip(surface.data, figure.data, strict=True):
                _overwrite(old, new, keep=("type", "uid"))
        else:
            surface.data = ()
            surface.add_traces(figure.data)
        same = (
            surface.layout.template == figure.layout.template
        )  # mostly, and it is the slowest to set
        _overwrite(surface.layout, figure.layout, keep=("template",) if same else ())


def _goes_on(before: Sequence[BasePlotlyType], after: Sequence[BasePlotlyType]) -> bool:
    """Whether traces are of the same kinds and nothing is taken away: in the page plotly keeps what
    it made of a range that is gone.
    """
    if [trace.type for trace in before] != [trace.type for trace in after]:
        return False
    return all(
        set(old.to_plotly_json()) - {"uid"} <= set(new.to_plotly_json())
        for old, new in zip(before, after, strict=True)
    )


def _overwrite(old: BasePlotlyType, new: BasePlotlyType, *, keep: Sequence[str]) -> None:
    """Set all that one part of a figure says to what another says, and take away what that does not
    say.
    """
    wanted = dict.fromkeys(old.to_plotly_json()) | new.to_plotly_json()
    old.update({name: value for name, value in wanted.items() if name not in keep}, overwrite=True)


def _surface(figure: go.Figure) -> Surface:
    """Where a figure is shown and replaced: plotly's widget, or plain output where anywidget is not
    installed.
    """
    try:
        return go.FigureWidget(figure)
    except ImportError:
        plain = ipywidgets.Output(
            layout=ipywidgets.Layout(min_height=f"{figure.layout.height or 450}px")
        )
        plain.append_display_data(figure)
        return plain


def _send(surface: Surface) -> None:
    """Tell the page once more what a figure shows: it may have missed it while it was loading
    plotly, and a view that is made starts from it.
    """
    if not isinstance(surface, ipywidgets.Output):
        surface._repr_mimebundle_()
        surface.send_state(["_widget_layout", "_widget_data"])


def _framed(surface: Surface, height: int | None) -> ipywidgets.Box:
    """An empty frame of fixed height, scrolled where the surface is larger, that takes the surface
    in as soon as a page shows it.

    Not before: a page that is still loading plotly makes the picture of a figure from nothing, and
    it stays empty.
    """
    look = ipywidgets.Layout(
        height=f"{height}px" if height else None, width="100%", overflow="auto", flex="0 0 auto"
    )
    if isinstance(surface, ipywidgets.Output):
        return ipywidgets.Box([surface], layout=look)
    frame = ipywidgets.Box([], layout=look)
    frame._view_count = 0  # from now on the page says how often it shows the frame

    def fill(_: object) -> None:
        frame.unobserve(fill, names="_view_count")
        _send(surface)
        frame.children = (surface,)

    frame.observe(fill, names="_view_count")
    return frame


def _turns(name: str, values: Mapping[str, Any]) -> str:
    """What a button does, for its tooltip."""
    return (
        "back to where every knob stood first"
        if name == "reset"
        else ", ".join(f"{knob} {value}" for knob, value in values.items())
    )
