"""Sliders over figure functions, never the only way to see a result."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ipywidgets
import plotly.graph_objects as go

from specdec_lib import figures
from specdec_lib.chance import Chance, Sampler
from specdec_lib.context import Context
from specdec_lib.decode import rounds
from specdec_lib.draft import Draft
from specdec_lib.theory import Rates, best_tree
from specdec_lib.workload import Ladder


def sliders(draw: Callable[..., go.Figure], choices: Mapping[str, Sequence[Any]], *, start: Mapping[str, Any]) -> ipywidgets.VBox:
    """One slider per parameter of `draw`, and its figure below, drawn anew when a slider comes to rest.

    choices    parameter name to the values its slider offers; usable with the arrow keys
    start      where each slider stands at first

    Raises ValueError unless each start is among its choices.
    """
    for name, values in choices.items():
        if start.get(name) not in values:
            raise ValueError(f"the slider {name!r} must start at one of {list(values)}, got {start.get(name)!r}")
    look = {"continuous_update": False, "style": {"description_width": "8em"}}
    made = {name: ipywidgets.SelectionSlider(options=list(values), value=start[name], description=name, **look) for name, values in choices.items()}
    shown = go.FigureWidget(draw(**{name: slider.value for name, slider in made.items()}))

    def redraw(_: object) -> None:
        figure = draw(**{name: slider.value for name, slider in made.items()})
        with shown.batch_update():
            shown.data = ()
            shown.add_traces(figure.data)
            shown.update_layout(figure.layout, overwrite=True)

    for slider in made.values():
        slider.observe(redraw, names="value")
    return ipywidgets.VBox([*made.values(), shown])


def one_round(ladder: Ladder, draft: Draft, context: Context, *, seed: int, temperature: float) -> go.Figure:
    """The tree of one round after `context`, with the path that the target accepts."""
    chance = Chance(seed, Sampler(temperature))
    played, _ = next(rounds(ladder.target, draft, context, chance, max_new_tokens=ladder.target.max_positions))
    labels = [ladder.text(token) for token in played.tree.tokens]
    kept = "".join(ladder.text(token) for token in played.emitted)
    title = f"{played.accepted} of {played.proposed} guesses accepted, {len(played.emitted)} tokens emitted: {kept!r}"
    return figures.tree(played.tree, labels=labels, path=played.path, title=title)


def best_shape(rates: Rates, *, budget: int, depth: int, width: int) -> go.Figure:
    """The best tree of a budget under these rates, no deeper than `depth` and with at most `width` children per node."""
    allowed = [list(vector)[:width] for vector in rates]
    tree = best_tree(allowed, budget, depth)
    title = f"{tree.guesses} guesses, {tree.depth} deep"
    return figures.shapes(figures.slots({"best static": tree}, allowed), title=title)
