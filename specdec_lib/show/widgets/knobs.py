"""Controls of explorers, declared as `Knob`s that become widgets once their start is known."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ipywidgets

LABEL_WIDTH = "9em"  # the longest label is "acceptance rate"
LATE = {"continuous_update": False}  # a slider is looked at when it comes to rest
Values = Mapping[str, Any]
SEEDS, TEMPERATURES = range(20), (0.0, 0.2, 0.4, 0.7, 1.0, 1.3)
TOP_KS = {None: "all tokens", 50: "50 likeliest", 10: "10 likeliest"}


@dataclass(frozen=True)
class Knob:
    """A control that is not yet a widget.

    start      where it starts unless an explorer's caller says otherwise
    kind       of widget
    offered    what it may be at; None for anything
    label      in full beside it; its name if empty
    widen      whether other numbers where it may be put join those offered, in order
    named      from a value offered to its name
    look       further arguments of the widget
    """

    start: Any
    kind: type[ipywidgets.ValueWidget]
    offered: Sequence[Any] | None = None
    tooltip: str = ""
    label: str = ""
    widen: bool = False
    named: Callable[[Any], str] = str
    look: Mapping[str, Any] = field(default_factory=dict)

    def widget(self, name: str, at: Any, later: Sequence[Any] = ()) -> ipywidgets.ValueWidget:
        """The widget at its start, which can be put to what comes `later`.  Raises ValueError for
        a value that it does not offer.
        """
        place, label = {"value": at}, self.label or name
        if self.offered is not None:
            values, asked = list(self.offered), (at, *later)
            if self.widen:
                values = sorted({*values, *(one for one in asked if isinstance(one, int | float))})
            if wrong := [value for value in asked if value not in values]:
                raise ValueError(f"the knob {name!r} must be at one of {values}, got {wrong[0]!r}")
            if hasattr(self.kind, "options"):  # not by value: None would choose nothing
                options = [(self.named(value), value) for value in values]
                place = {"options": options, "index": values.index(at)}
        # the tooltip is for a pointer or a screen reader
        words = {"description": label, "tooltip": self.tooltip or label}
        made = self.kind(**place, **words, **self.look, layout={"width": "auto"})
        made.style.description_width = LABEL_WIDTH
        return made


def slider(
    values: Iterable[Any], start: Any, tooltip: str = "", *, digits: str = "", **about: Any
) -> Knob:
    """A slider over the given values, named in a format such as ".3g"; `label` and `widen` are as
    in Knob.
    """
    about |= {"named": f"{{:{digits}}}".format, "look": LATE}
    return Knob(start, ipywidgets.SelectionSlider, list(values), tooltip, **about)


def choice(options: Sequence[Any], tooltip: str = "", **about: Any) -> Knob:
    """A drop-down list, at its first value or at `start`; `label` and `named` are as in Knob."""
    given = {"start": options[0], "offered": options, "tooltip": tooltip} | about
    return Knob(kind=ipywidgets.Dropdown, **given)


def text_field(start: str, tooltip: str, hint: str, *, label: str = "", lines: int = 1) -> Knob:
    """A field for text, which counts when the field is left."""
    kind, rows = (ipywidgets.Textarea, {"rows": lines}) if lines > 1 else (ipywidgets.Text, {})
    look = {"placeholder": hint} | LATE | rows
    return Knob(start, kind, None, tooltip, label, look=look)


def check_box(start: bool, label: str) -> Knob:
    """A box to tick, with its label behind it."""
    return Knob(start, ipywidgets.Checkbox, (False, True), label=label, look={"indent": False})


def push_button(
    label: str, press: Callable[[], object], tooltip: str | None = None
) -> ipywidgets.Button:
    """A button as wide as its label."""
    button = ipywidgets.Button(description=label, tooltip=tooltip, layout={"width": "auto"})
    button.on_click(lambda _: press())
    return button


def text_knobs(
    prompts: Iterable[str], *, temperature: float = 0.7, top_k: int | None = None
) -> dict[str, Knob]:
    """Knobs for a text and how it is sampled: temperature, top_k, seed, prompt (one of the names
    given) and a text of one's own.
    """
    heat, kept = "of the target's distribution; 0 is greedy", "tokens that keep their probability"
    own = "asked in place of the prompt; Tab leaves the field and draws"
    return {
        "temperature": slider(TEMPERATURES, temperature, heat, widen=True),
        "top_k": choice(list(TOP_KS), kept, start=top_k, label="top-k", named=TOP_KS.get),
        "seed": slider(SEEDS, 0, "of all noise", widen=True),
        "prompt": choice(list(prompts), "held-out prompt that is answered"),
        "text": text_field("", own, "in place of the prompt", label="own text", lines=3),
    }


def make_knobs(
    knobs: Mapping[str, Knob | ipywidgets.DOMWidget],
    start: Values,
    presets: Collection[Values] = (),
) -> dict[str, Any]:
    """The widgets of an explorer, by name, that may later be at the presets; those that are widgets
    already stay.  Raises ValueError for a knob that does not exist, or a value it does not offer.
    """
    turned = [name for name, one in knobs.items() if isinstance(one, Knob) or hasattr(one, "value")]
    check_knobs([name for values in (start, *presets) for name in values], turned)
    found = dict(knobs)
    for name, knob in knobs.items():
        if isinstance(knob, Knob):
            later = [values[name] for values in presets if name in values]
            found[name] = knob.widget(name, start.get(name, knob.start), later)
    return found


def check_knobs(given: Iterable[str], known: Iterable[str]) -> None:
    """Raises ValueError for a knob that does not exist."""
    if unknown := sorted(set(given) - set(known)):
        raise ValueError(f"there is no knob {unknown[0]!r}, the knobs are {', '.join(known)}")
