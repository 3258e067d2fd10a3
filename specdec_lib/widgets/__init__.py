"""Sliders over figure functions, never the only way to see a result."""

from specdec_lib.widgets.cascades import cascade_explorer
from specdec_lib.widgets.knobs import slider
from specdec_lib.widgets.panel import Panel, Shown, replace, sliders
from specdec_lib.widgets.rates import acceptance_explorer
from specdec_lib.widgets.rounds import best_shape, one_round
from specdec_lib.widgets.speeds import break_even_explorer, faster_draft, latency_explorer
from specdec_lib.widgets.stages import stage_explorer
from specdec_lib.widgets.steps import round_steps
from specdec_lib.widgets.trees import tree_explorer

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
