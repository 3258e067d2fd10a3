"""Sliders over figure functions, never the only way to see a result."""

from specdec_lib.show.widgets.cascades import cascade_explorer
from specdec_lib.show.widgets.knobs import slider
from specdec_lib.show.widgets.panel import Panel, Shown, replace, sliders
from specdec_lib.show.widgets.rates import acceptance_explorer
from specdec_lib.show.widgets.rounds import best_shape, one_round
from specdec_lib.show.widgets.speeds import break_even_explorer, faster_draft, latency_explorer
from specdec_lib.show.widgets.stages import stage_explorer
from specdec_lib.show.widgets.steps import round_steps
from specdec_lib.show.widgets.trees import tree_explorer

__all__ = [
    "Panel",
    "Shown",
    "acceptance_explorer",
    "best_shape",
    "break_even_explorer",
    "cascade_explorer",
    "faster_draft",
    "latency_explorer",
    "one_round",
    "replace",
    "round_steps",
    "slider",
    "sliders",
    "stage_explorer",
    "tree_explorer",
]
