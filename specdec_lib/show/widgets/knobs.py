"""Controls of explorers: a menu, a slider, a button, and those of a text and how it is sampled."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from numbers import Real
from typing import Any

import ipywidgets
from traitlets import TraitError

from specdec_lib.workload import Prompt

Values = Mapping[str, Any]
LATE = {"continuous_update": False}  # a knob is looked at when it comes to rest
TEMPERATURES = (0.0, 0.2, 0.4, 0.7, 1.0, 1.3)
FIRST = 60  # characters of a prompt in the menu
WHOLE_ROW = "auto / 1 / auto / -1"  # of the grid, from its first column to its last
EXAMPLE = (
    "In place of the prompt, for example: Explain in two sentences why the sky is blue."
    " Tab leaves the field and draws."
)
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


def text_knobs(prompts: Mapping[str, Prompt]) -> dict[str, ipywidgets.DOMWidget]:
    """Knobs for a text and how it is sampled: temperature, top_k, seed, prompt (by name, shown by
    its first words) and a text of one's own.
    """
    own = "asked in place of the prompt; Tab leaves the field and draws"
    kept = "tokens that keep their probability"
    shown = first_words(prompts)
    knobs = {
        "temperature": slider(TEMPERATURES, 0.7, "of the target's distribution; 0 is greedy"),
        "top_k": choice(TOP_KS, kept, label="top-k", named=TOP_KS.__getitem__),
        "seed": slider(range(20), 0, "of all noise"),
        "prompt": choice(prompts, "held-out prompt that is answered", named=shown.__getitem__),
        "text": ipywidgets.Textarea(
            description="Your own text", placeholder=EXAMPLE, tooltip=own, rows=2, **LATE
        ),
    }
    for name in ("prompt", "text"):
        knobs[name].layout.grid_area = WHOLE_ROW
    return knobs


def first_words(prompts: Mapping[str, Prompt]) -> dict[str, str]:
    """By a prompt's name, its domain and its first words. An opening line that several of them
    share, such as "Complete this Python function:", is left out; prompts that then look the same
    are numbered.
    """
    lines = {
        name: [line.strip() for line in prompt.text.splitlines() if line.strip()]
        for name, prompt in prompts.items()
    }
    openings = Counter(own[0] for own in lines.values())
    found: dict[str, str] = {}
    seen: Counter[str] = Counter()
    for name, own in lines.items():
        shared = openings[own[0]] > 1 and len(own) > 1
        words = " ".join(own[1:] if shared else own)
        cut = words if len(words) <= FIRST else f"{words[:FIRST].rstrip()} …"
        label = f"{prompts[name].domain}: {cut}"
        seen[label] += 1
        found[name] = label if seen[label] == 1 else f"{label} ({seen[label]})"
    return found


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


def shown_value(knob: Any, value: Any) -> str:
    """A value of a knob as the page shows it: a menu has words for it."""
    words = [label for label, one in getattr(knob, "options", ()) if one == value]
    return words[0] if words else str(value)


def _named(values: Iterable[Any]) -> list[tuple[str, float]]:
    return [(f"{value:.4g}", value) for value in sorted(values)]
