"""The knobs of explorers: how each looks and what it may be turned to, and those that several
explorers have.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import ipywidgets

DESCRIPTION = "9em"  # the longest is "acceptance rate"
SEEDS, TEMPERATURES = range(20), (0.0, 0.2, 0.4, 0.7, 1.0, 1.3)
TOP_KS = {"all tokens": None, "50 likeliest": 50, "10 likeliest": 10}


def slider(
    name: str, values: Sequence[Any], start: Any, *, tooltip: str = ""
) -> ipywidgets.SelectionSlider:
    """A slider over some values, for mouse and arrow keys.

    Raises ValueError unless it starts at one of them.
    """
    if start not in values:
        raise ValueError(f"the slider {name!r} must start at one of {list(values)}, got {start}")
    return ipywidgets.SelectionSlider(
        options=list(values),
        value=start,
        description=name,
        continuous_update=False,
        **look(name, tooltip),
    )


def labelled(
    name: str, values: Iterable[float], start: float, *, tooltip: str = ""
) -> ipywidgets.SelectionSlider:
    """A slider over numbers and its start among them, in order, each shown with three digits."""
    steps = sorted({*values, start})
    made = slider(name, steps, start, tooltip=tooltip)
    made.options = [(f"{step:.3g}", step) for step in steps]
    made.value = start
    return made


def choice(
    name: str, options: Sequence[Any] | Mapping[str, Any], start: Any, tooltip: str
) -> ipywidgets.Dropdown:
    """A drop-down list.  Raises ValueError unless it starts at one of its options."""
    values = list(options.values()) if isinstance(options, Mapping) else list(options)
    if start not in values:
        raise ValueError(f"the knob {name!r} must start at one of {values}, got {start!r}")
    shown = list(options.items()) if isinstance(options, Mapping) else values
    return ipywidgets.Dropdown(
        options=shown, index=values.index(start), description=name, **look(name, tooltip)
    )  # a value of None chooses none


def typed(
    name: str, start: str, tooltip: str, hint: str, *, lines: int = 1
) -> ipywidgets.Text | ipywidgets.Textarea:
    """A field for text, which counts when it is left."""
    given = {
        "value": start,
        "description": name,
        "placeholder": hint,
        "continuous_update": False,
    } | look(name, tooltip)
    return ipywidgets.Text(**given) if lines == 1 else ipywidgets.Textarea(rows=lines, **given)


def of_text(
    names: Sequence[str],
    start: Mapping[str, Any],
    *,
    law: str = "of the target's law",
    noise: str = "of all noise",
) -> dict[str, Any]:
    """Which text, and how it is drawn: temperature, top_k where `start` has it, seed, prompt, and a
    text of one's own.

    names    of the prompts

    Raises ValueError as `slider` and `choice` do.
    """
    heat, seed = start["temperature"], start["seed"]
    found = {
        "temperature": slider(
            "temperature", widened(TEMPERATURES, heat), heat, tooltip=f"{law}; 0 is greedy"
        )
    }
    if "top_k" in start:
        found["top_k"] = choice("top-k", TOP_KS, start["top_k"], "tokens that the law keeps")
    continued = "continued in place of the prompt; Tab leaves the field and draws"
    return found | {
        "seed": slider("seed", widened(SEEDS, seed), seed, tooltip=noise),
        "prompt": choice("prompt", names, start["prompt"], "held-out prompt that is continued"),
        "text": typed("own text", start["text"], continued, "in place of the prompt", lines=3),
    }


def widened(values: Iterable[Any], start: Any) -> list[Any]:
    """The values and where a slider starts."""
    return sorted({*values, start})


def look(name: str, tooltip: str = "") -> dict[str, Any]:
    """How every knob looks: its name whole beside it, as wide as its column, and what it means for
    a pointer or a screen reader.
    """
    return {
        "style": {"description_width": DESCRIPTION},
        "layout": ipywidgets.Layout(width="auto"),
        "tooltip": tooltip or name,
    }


def check_names(given: Iterable[str], known: Iterable[str]) -> None:
    """Raises ValueError for a knob that is not there."""
    if unknown := sorted(set(given) - set(known)):
        raise ValueError(f"there is no knob {unknown[0]!r}, the knobs are {', '.join(known)}")
