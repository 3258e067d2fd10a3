"""Controls of explorers, declared as `Knob`s that become widgets once their start is known."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

import ipywidgets

LABEL_WIDTH = "9em"  # the longest label is "acceptance rate"
SEEDS, TEMPERATURES = range(20), (0.0, 0.2, 0.4, 0.7, 1.0, 1.3)
TOP_KS = {"all tokens": None, "50 likeliest": 50, "10 likeliest": 10}


@dataclass(frozen=True)
class Knob:
    """A control that is not yet a widget.

    start      where it starts unless an explorer's caller says otherwise
    kind       of widget
    offered    what it may start at, each with its name before it; None for anything
    widen      whether a start that is none of the numbers offered joins them, in order
    digits     format specification of such a number, such as ".3g"
    look       further arguments of the widget
    """

    start: Any
    kind: type[ipywidgets.ValueWidget]
    offered: Sequence[tuple[str, Any]] | None = None
    tooltip: str = ""
    label: str = ""
    widen: bool = False
    digits: str = ""
    look: Mapping[str, Any] = field(default_factory=dict)


def slider(values: Iterable[Any], start: Any, tooltip: str = "", **about: Any) -> Knob:
    """A slider over the given values; `label`, `digits` and `widen` are as in Knob."""
    offered = [(format(value, about.get("digits", "")), value) for value in values]
    late = {"continuous_update": False}
    return Knob(start, ipywidgets.SelectionSlider, offered, tooltip, look=late, **about)


def choice(
    options: Sequence[Any] | Mapping[str, Any], start: Any, tooltip: str = "", *, label: str = ""
) -> Knob:
    """A drop-down list of values, or of labels with their values."""
    named = options if isinstance(options, Mapping) else {str(one): one for one in options}
    return Knob(start, ipywidgets.Dropdown, list(named.items()), tooltip, label)


def text_field(start: str, tooltip: str, hint: str, *, label: str = "", lines: int = 1) -> Knob:
    """A field for text, whose value changes when the field is left."""
    kind, rows = (ipywidgets.Textarea, {"rows": lines}) if lines > 1 else (ipywidgets.Text, {})
    look = {"placeholder": hint, "continuous_update": False} | rows
    return Knob(start, kind, None, tooltip, label, look=look)


def check_box(start: bool, label: str) -> Knob:
    """A box to tick, with its label behind it."""
    offered = [("no", False), ("yes", True)]
    return Knob(start, ipywidgets.Checkbox, offered, label=label, look={"indent": False})


def text_knobs(
    prompts: Sequence[str], *, temperature: float = 0.7, top_k: int | None = None
) -> dict[str, Knob]:
    """Knobs for a text and how it is sampled: temperature, top_k, seed, prompt (one of the names
    given) and a text of one's own.
    """
    heat = "of the target's distribution; 0 is greedy"
    own = "asked in place of the prompt; Tab leaves the field and draws"
    return {
        "temperature": slider(TEMPERATURES, temperature, heat, widen=True),
        "top_k": choice(TOP_KS, top_k, "tokens that keep their probability", label="top-k"),
        "seed": slider(SEEDS, 0, "of all noise", widen=True),
        "prompt": choice(prompts, prompts[0], "held-out prompt that is answered"),
        "text": text_field("", own, "in place of the prompt", label="own text", lines=3),
    }


def make_knobs(
    knobs: Mapping[str, Knob], start: Mapping[str, Any] | None = None
) -> dict[str, ipywidgets.ValueWidget]:
    """The widgets of an explorer, by name.

    start    where some knobs start instead of their own start
    Raises ValueError for a knob that does not exist, or a start that it does not offer.
    """
    at = {name: knob.start for name, knob in knobs.items()} | dict(start or {})
    check_knobs(at, knobs)
    made = {}
    for name, knob in knobs.items():
        value, place, options = at[name], {"value": at[name]}, knob.offered
        values = [one for _, one in options or ()]
        if knob.widen and value not in values:
            options = sorted([*options, (format(value, knob.digits), value)], key=itemgetter(1))
            values = [one for _, one in options]
        if options is not None and value not in values:
            raise ValueError(f"the knob {name!r} must start at one of {values}, got {value!r}")
        if knob.kind in (ipywidgets.SelectionSlider, ipywidgets.Dropdown):
            # not by value: None would choose nothing
            place = {"options": options, "index": values.index(value)}
        label = knob.label or name
        # the label in full beside the knob, and what it means for a pointer or a screen reader
        words = {"description": label, "tooltip": knob.tooltip or label}
        made[name] = knob.kind(**place, **words, **knob.look, layout={"width": "auto"})
        made[name].style.description_width = LABEL_WIDTH
    return made


def check_knobs(given: Iterable[str], known: Iterable[str]) -> None:
    """Raises ValueError for a knob that does not exist."""
    if unknown := sorted(set(given) - set(known)):
        raise ValueError(f"there is no knob {unknown[0]!r}, the knobs are {', '.join(known)}")
