"""Controls of explorers, declared as `Knob`s that become widgets once their start is known."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ipywidgets

LABEL_WIDTH = "9em"  # the longest label is "acceptance rate"
SEEDS, TEMPERATURES = range(20), (0.0, 0.2, 0.4, 0.7, 1.0, 1.3)
TOP_KS = {"all tokens": None, "50 likeliest": 50, "10 likeliest": 10}


@dataclass(frozen=True)
class Knob:
    """A control that is not yet a widget.

    start      where it starts unless an explorer's caller says otherwise
    widget     makes the widget from where it starts and how it looks
    offered    what it may start at; None for anything
    """

    start: Any
    widget: Callable[..., ipywidgets.ValueWidget]
    offered: Sequence[Any] | None = None
    tooltip: str = ""
    label: str = ""


def slider(
    values: Iterable[Any],
    start: Any,
    tooltip: str = "",
    *,
    label: str = "",
    digits: str = "",
    widen: bool = False,
) -> Knob:
    """A slider over the given values.

    digits    format specification of the values, such as ".3g"
    widen     whether a start that is none of the values joins them, in order
    """
    values = list(values)

    def widget(at: Any, **look: Any) -> ipywidgets.ValueWidget:
        offered = sorted({*values, at}) if widen else values
        options = [(format(value, digits), value) for value in offered]
        slider = ipywidgets.SelectionSlider
        return slider(options=options, value=at, continuous_update=False, **look)

    return Knob(start, widget, None if widen else values, tooltip, label)


def choice(
    options: Sequence[Any] | Mapping[str, Any], start: Any, tooltip: str = "", *, label: str = ""
) -> Knob:
    """A drop-down list of values, or of labels with their values."""
    named = options if isinstance(options, Mapping) else {str(one): one for one in options}
    values = list(named.values())

    def widget(at: Any, **look: Any) -> ipywidgets.ValueWidget:
        place = values.index(at)  # not value=at: None would choose nothing
        return ipywidgets.Dropdown(options=list(named.items()), index=place, **look)

    return Knob(start, widget, values, tooltip, label)


def text_field(start: str, tooltip: str, hint: str, *, label: str = "", lines: int = 1) -> Knob:
    """A field for text, whose value changes when the field is left."""
    kind, rows = (ipywidgets.Textarea, {"rows": lines}) if lines > 1 else (ipywidgets.Text, {})

    def widget(at: Any, **look: Any) -> ipywidgets.ValueWidget:
        return kind(value=at, placeholder=hint, continuous_update=False, **rows, **look)

    return Knob(start, widget, None, tooltip, label)


def check_box(start: bool, label: str) -> Knob:
    """A box to tick, with its label behind it."""

    def widget(at: Any, **look: Any) -> ipywidgets.ValueWidget:
        return ipywidgets.Checkbox(value=at, indent=False, **look)

    return Knob(start, widget, (False, True), "", label)


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
        if knob.offered is not None and at[name] not in knob.offered:
            offered = f"one of {list(knob.offered)}, got {at[name]!r}"
            raise ValueError(f"the knob {name!r} must start at {offered}")
        label = knob.label or name
        # the label in full beside the knob, and what it means for a pointer or a screen reader
        look = {"description": label, "tooltip": knob.tooltip or label}
        layout = ipywidgets.Layout(width="auto")
        made[name] = knob.widget(at[name], layout=layout, **look)
        made[name].style.description_width = LABEL_WIDTH
    return made


def check_knobs(given: Iterable[str], known: Iterable[str]) -> None:
    """Raises ValueError for a knob that does not exist."""
    if unknown := sorted(set(given) - set(known)):
        raise ValueError(f"there is no knob {unknown[0]!r}, the knobs are {', '.join(known)}")
