"""The widths of a tree as sliders, one per depth, and as a text; each follows the other, and the
tree takes the shape that was turned last: by widths, or the best of a budget.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from operator import mul
from typing import Any

import ipywidgets

from specdec_lib.measure.settings.explorers import TreeSize
from specdec_lib.show.widgets.knobs import LATE, slider, turn_knob

BY_BUDGET = "budget"
BY_WIDTHS = "widths per depth"
MOST_GUESSES = 64  # that are drawn
DEPTHS = range(1, 7)  # that have a slider
NAMES = tuple(f"width_{depth}" for depth in DEPTHS)
MOST = 8  # children per node on a slider; the text may ask for more
BEGIN = "4,2,1,1"
PER_NODE = "children per node above depth {}; 0 ends the tree there"
PER_DEPTH = "children per node at each depth, as many depths as you like, such as 4,2,1,1"


class WidthKnobs:
    """Keeps sliders and text in step; it remembers where they were when they last were."""

    def __init__(self) -> None:
        self._text: str | None = None
        self._sliders: tuple[int, ...] = ()
        self._size: tuple[int, int] | None = None

    def knobs(self) -> dict[str, ipywidgets.DOMWidget]:
        """A slider per depth and the text, by name."""
        made: dict[str, ipywidgets.DOMWidget] = {}
        for name, depth in zip(NAMES, DEPTHS, strict=True):
            least = 1 if depth == 1 else 0
            tip = PER_NODE.format(depth)
            made[name] = slider(range(least, MOST + 1), least, tip, f"width, depth {depth}")
        text = ipywidgets.Text(BEGIN, placeholder=BEGIN, tooltip=PER_DEPTH, **LATE)
        return {**made, "widths": text}

    def follow(self, made: Mapping[str, Any]) -> None:
        """Bring sliders, text and shape in step with what was turned."""
        sliders = tuple(made[name].value for name in NAMES)
        text = made["widths"].value
        size = made["budget"].value, made["depth"].value
        begins = self._text is None
        if not begins and sliders != self._sliders:
            text = widths_text(widths_after(text, self._sliders, sliders))
        if not begins and text != self._text:
            made["shape"].value = BY_WIDTHS
        elif not begins and size != self._size:
            made["shape"].value = BY_BUDGET
        made["widths"].value = text
        if text != self._text:
            self._show(made, widths_in(text))
        self._text = text
        self._sliders = tuple(made[name].value for name in NAMES)
        self._size = size

    def _show(self, made: Mapping[str, Any], widths: Sequence[int]) -> None:
        """Put the sliders where a text is; one that says nothing leaves them."""
        if widths:
            padded = [*widths, *[0] * len(NAMES)]
            for name, width in zip(NAMES, padded, strict=False):
                turn_knob(made[name], width)


def widths_after(text: str, before: Sequence[int], after: Sequence[int]) -> list[int]:
    """The widths of a text once sliders were moved: a deeper level gets those above it, a level of
    0 loses those below.
    """
    widths = [*widths_in(text)] or [width for width in before if width]
    for place, (old, new) in enumerate(zip(before, after, strict=True)):
        if old == new:
            continue
        widths += [1] * (place + 1 - len(widths)) if new else []
        widths[place : place + 1] = [new] if new else []
        if not new:
            del widths[place:]
    return widths


def widths_text(widths: Sequence[int]) -> str:
    """Widths as a text."""
    return ",".join(map(str, widths))


def widths_in(text: str) -> tuple[int, ...]:
    """The widths in a text such as "4,2,1,1"; none if it holds anything else, or a 0."""
    words = text.replace(",", " ").split()
    widths = tuple(map(int, words)) if all(map(str.isdecimal, words)) else ()
    return () if 0 in widths else widths


def size_of_widths(text: str) -> TreeSize:
    """The size of a tree with the widths in a text such as "4,2,1,1", else ValueError."""
    widths = widths_in(text)
    guesses = sum(accumulate(widths, mul))
    if not guesses or guesses > MOST_GUESSES:
        raise ValueError(
            "widths are numbers from 1 on, such as 4,2,1,1, of up to"
            f" {MOST_GUESSES} guesses; got {text!r}"
        )
    return TreeSize(guesses, len(widths), widths)
