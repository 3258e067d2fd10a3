"""Controls of explorers: a menu, a slider, a button, and those of a text and how it is sampled."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from numbers import Real
from typing import Any

import ipywidgets
from traitlets import TraitError

Values = Mapping[str, Any]
LATE = {"continuous_update": False}  # a knob is looked at when it comes to rest
TEMPERATURES = (0.0, 0.2, 0.4, 0.7, 1.0, 1.3)
TOP_KS = {None: "all tokens", 50: "50 likeliest", 10: "10 likeliest"}


def slider(
    values: Iterable[float], start: float, tooltip: str = "", label: str = ""
) -> ipywidgets.SelectionSlider:
    """A slider over numbers; where it is put to another one, that joins them."""
    look = {"value": start, "description": label, "tooltip": tooltip} | LATE
    return ipywidgets.SelectionSlider(options=_named({*values, start}), **look)


def choice(
    options: Iterable[Any], tooltip: str = "", *, label: str = "", named: Callable[[Any], str] = str
) -> ipywidgets.Dropdown:
    """A drop-down list, at its first value."""
    pairs = [(named(one), one) for one in options]
    return ipywidgets.Dropdown(options=pairs, description=label, tooltip=tooltip)


def push_button(
    label: str, press: Callable[[], object], tooltip: str | None = None
) -> ipywidgets.Button:
    """A button as wide as its label."""
    button = ipywidgets.Button(description=label, tooltip=tooltip, layout={"width": "auto"})
    button.on_click(lambda _: press())
    return button


def text_knobs(prompts: Iterable[str]) -> dict[str, ipywidgets.DOMWidget]:
    """Knobs for a text and how it is sampled: temperature, top_k, seed, prompt (one of the names
    given) and a text of one's own.
    """
    about = {"placeholder": "in place of the prompt", "description": "own text", "rows": 3}
    own = "asked in place of the prompt; Tab leaves the field and draws"
    kept = "tokens that keep their probability"
    return {
        "temperature": slider(TEMPERATURES, 0.7, "of the target's distribution; 0 is greedy"),
        "top_k": choice(TOP_KS, kept, label="top-k", named=TOP_KS.__getitem__),
        "seed": slider(range(20), 0, "of all noise"),
        "prompt": choice(prompts, "held-out prompt that is answered"),
        "text": ipywidgets.Textarea(tooltip=own, **about, **LATE),
    }


def turn_knob(knob: Any, value: Any) -> None:
    """Turn a knob as far as it goes."""
    if not hasattr(knob, "options"):
        with suppress(TraitError):
            knob.value = value
        return
    values = [one for _, one in knob.options]
    number = isinstance(knob, ipywidgets.SelectionSlider) and isinstance(value, Real)
    if number and value not in values:
        values = sorted([*values, value])
        knob.options = _named(values)
    if value in values:
        knob.index = values.index(value)  # the value None would choose nothing


def _named(values: Iterable[Any]) -> list[tuple[str, float]]:
    return [(f"{value:.4g}", value) for value in sorted(values)]
