"""Sliders over figure functions, never the only way to see a result."""

from specdec_lib.widgets.cascades import cascade_explorer
from specdec_lib.widgets.panel import Panel, Shown, replace, slider, sliders
from specdec_lib.widgets.rounds import best_shape, one_round
from specdec_lib.widgets.speeds import faster_draft

__all__ = ["Panel", "Shown", "best_shape", "cascade_explorer", "faster_draft", "one_round", "replace", "slider", "sliders"]
