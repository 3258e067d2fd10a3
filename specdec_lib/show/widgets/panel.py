"""An explorer on the page: knobs, and the figures and words that follow them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import starmap, zip_longest
from typing import Any, NamedTuple

import ipywidgets
import plotly.graph_objects as go

from specdec_lib.show.saving import still
from specdec_lib.show.widgets.bookmark import Bookmark
from specdec_lib.show.widgets.knobs import Values, push_button, shown_value, slider, turn_knob
from specdec_lib.show.widgets.surfaces import (
    PlainFigure,
    frame_of,
    missing_notes,
    replace_figure,
    send_again,
    surface_of,
)
from specdec_lib.show.widgets.words import WORKING, alert, status

LABEL_WIDTH = "9em"  # the longest label is "acceptance rate"
ROW = ipywidgets.Layout(flex_flow="row wrap", align_items="center")
GRID = ipywidgets.Layout(
    grid_template_columns="repeat(auto-fill, minmax(330px, 1fr))",
    grid_gap="2px 18px",
    align_items="center",
    width="100%",
)
LINE = 100  # characters of a field as wide as the page, about
SETTING = "to paste into a shell, or into a cell: it brings the explorer back to where it is"


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
    presets    a button per name that turns some knobs at once, to what the mapping has when it is
               pressed
    actions    further buttons by name, beside those
    bookmark   how a setting comes back, which stands on the page as text
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
        actions: Mapping[str, ipywidgets.Button] | None = None,
        bookmark: Bookmark | None = None,
        heights: Sequence[int] = (),
    ) -> None:
        self.knobs: dict[str, Any] = dict(knobs)  # of many kinds
        self._draw = draw
        self._fit = fit
        self._presets = presets or {}
        self._bookmark = bookmark
        self._busy = False
        for name, knob in self.knobs.items():
            label_knob(knob, name)
        for name in self.values():
            self.knobs[name].observe(self._redraw, names="value")
        self._set(start or {})
        shown = draw(**self.values())
        self.words = ipywidgets.HTML(status(shown.words))
        self.figures = tuple(surface_of(figure) for figure in shown.figures)
        self._start = self.values()
        self._still: tuple[go.Figure, str] | None = None
        for values in self._presets.values():
            self._check(values)
        self.buttons = {
            name: push_button(name, partial(self._press, name))
            for name in ("reset", *self._presets)
        } | dict(actions or {})
        self.working = ipywidgets.HTML()
        self.setting = setting_field()
        self._mark()
        super().__init__(self._children(heights))
        self.add_class("specdec-panel")

    def _children(self, heights: Sequence[int]) -> list[ipywidgets.DOMWidget]:
        """What stands below each other on the page."""
        grid = ipywidgets.GridBox(list(self.knobs.values()), layout=GRID)
        grid.add_class("specdec-knobs")
        row = ipywidgets.HBox([*self.buttons.values(), self.working], layout=ROW)
        frames = starmap(frame_of, zip_longest(self.figures, heights))
        setting = [] if self._bookmark is None else [self.setting]
        return [*missing_notes(self.figures), grid, row, self.words, *setting, *frames]

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

    def settle(self, **values: Any) -> None:
        """Turn knobs to where the explorer begins on this machine, as `turn` does; reset goes back
        there. The image for pages without widgets stays that of the setting before, so that what
        is stored in a notebook does not hang on where it ran.
        """
        still = self._standing()
        self.turn(**values)
        self._still = still
        self._start = self.values()
        self._mark()

    def _press(self, name: str) -> None:
        """What the button of a preset does."""
        self.turn(**(self._start if name == "reset" else self._presets[name]))

    def _mark(self) -> None:
        """Write the setting as text that brings it back, and what each button of a preset does."""
        for name, values in {"reset": self._start, **self._presets}.items():
            self.buttons[name].tooltip = self._listed(values)
        if self._bookmark is not None:
            text = self._bookmark.text(self.values(), self._start)
            self.setting.value = text
            self.setting.rows = sum(1 + len(line) // LINE for line in text.splitlines())

    def _listed(self, values: Values) -> str:
        """Values in words, as the knobs show them."""
        shown = (f"{name} {shown_value(self.knobs[name], one)}" for name, one in values.items())
        return ", ".join(shown)

    def _check(self, names: Iterable[str]) -> None:
        if unknown := sorted(set(names) - set(known := self.values())):
            raise ValueError(f"there is no knob {unknown[0]!r}, the knobs are {', '.join(known)}")

    def _set(self, values: Values) -> None:
        """Turn knobs twice, because the range of one may depend on another."""
        self._check(values)
        self._busy = True
        try:
            for _ in range(2):
                for name, value in values.items():
                    turn_knob(self.knobs[name], value)
                with suppress(ValueError):  # drawing says why
                    self._fit(self.knobs)
        finally:
            self._busy = False
        for name, value in values.items():
            if (knob := self.knobs[name]).value != value:
                options = [one for _, one in getattr(knob, "options", ())]
                allowed = f"it offers {options}" if options else f"it stops at {knob.value!r}"
                raise ValueError(f"the knob {name!r} cannot be at {value!r}: {allowed}")

    def _redraw(self, _: object = None) -> None:
        if self._busy:
            return
        self._still = None  # what is turned now is what stands in
        with self.at_work():
            self._fit(self.knobs)
            self._mark()
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
            self.words.value = alert(problem)
        finally:
            self.working.value = ""
            self._busy = False

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        """The widget, and for pages without widgets the first figure and the knobs' values."""
        bundle = super()._repr_mimebundle_(**kwargs) or {}
        for surface in self.figures:
            send_again(surface)
        figure, text = self._still or self._standing()
        return bundle | {"text/plain": text} | still(figure)

    def _standing(self) -> tuple[go.Figure, str]:
        """What stands in where widgets cannot run: the first figure, and where the knobs are."""
        first = self.figures[0]
        shown = first.figure if isinstance(first, PlainFigure) else go.Figure(first)
        text = f"explorer at {self._listed(self.values())} (its knobs need a running notebook)"
        return shown, text


def label_knob(knob: Any, name: str) -> None:
    """Give a knob its name where it has no label of its own, and a width for labels to line up."""
    knob.description = knob.description or name
    # the tooltip is for a pointer or a screen reader
    knob.tooltip = knob.tooltip or knob.description
    knob.layout.width = "auto"
    if hasattr(knob, "value"):
        knob.style.description_width = LABEL_WIDTH
    else:
        knob.layout.width = "max-content"  # a button


def setting_field() -> ipywidgets.Textarea:
    """The field that holds a setting as text to copy."""
    field = ipywidgets.Textarea(description="This setting", tooltip=SETTING)
    field.layout.width = "auto"
    field.style.description_width = LABEL_WIDTH
    field.add_class("specdec-setting")
    return field


def sliders(
    draw: Callable[..., go.Figure],
    choices: Mapping[str, Sequence[float]],
    *,
    start: Values,
    bookmark: Bookmark | None = None,
) -> Panel:
    """A slider per parameter of `draw`, over its choices from its start on, and its figure."""
    knobs = {name: slider(values, values[0]) for name, values in choices.items()}
    return Panel(knobs, lambda **values: Shown((draw(**values),)), start=start, bookmark=bookmark)
