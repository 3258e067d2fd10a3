"""A table in, a plotly figure out; the only writer of figure files.

Every figure of a table raises ValueError if the table lacks a column or a row, has a mark twice, or
an interval does not hold its value.

Figure functions are pure and return a figure in the screen template, legible on a light and on a
dark page; `save` writes it as HTML, as an image on white paper and as the table behind it. Colour
never carries a meaning alone.
"""

from specdec_lib.show.figures.acceptance import (
    acceptance,
    calibration,
    gap_table,
    gaps,
    kinds,
    predictions,
    yields,
)
from specdec_lib.show.figures.benchmarks import versus
from specdec_lib.show.figures.break_even import break_even, chain_lengths
from specdec_lib.show.figures.cascade import lenience, position, sensitivity, surface
from specdec_lib.show.figures.drafter_sets import ewif, swi
from specdec_lib.show.figures.gains import cascade_ablation, rivals, walltime
from specdec_lib.show.figures.latency import latency, ledger, pass_at
from specdec_lib.show.figures.roofline import roofline
from specdec_lib.show.figures.rounds import distributions, origins
from specdec_lib.show.figures.saving import save, still
from specdec_lib.show.figures.shapes import budget_curves, shapes, slots, speed_ups
from specdec_lib.show.figures.speeds import (
    predicted_speeds,
    setting_speed_ups,
    speed_surface,
    speed_sweep,
)
from specdec_lib.show.figures.staged import (
    ablation,
    paper_and_ours,
    passes,
    relative_performance,
    stages,
)
from specdec_lib.show.figures.steps import step
from specdec_lib.show.figures.tables import emitted_tokens, nodes, outcomes, walk
from specdec_lib.show.figures.trees import mask, tree

__all__ = [
    "ablation",
    "acceptance",
    "break_even",
    "budget_curves",
    "calibration",
    "cascade_ablation",
    "chain_lengths",
    "distributions",
    "emitted_tokens",
    "ewif",
    "gap_table",
    "gaps",
    "kinds",
    "latency",
    "ledger",
    "lenience",
    "mask",
    "nodes",
    "origins",
    "outcomes",
    "paper_and_ours",
    "pass_at",
    "passes",
    "position",
    "predicted_speeds",
    "predictions",
    "relative_performance",
    "rivals",
    "roofline",
    "save",
    "sensitivity",
    "setting_speed_ups",
    "shapes",
    "slots",
    "speed_surface",
    "speed_sweep",
    "speed_ups",
    "stages",
    "step",
    "still",
    "surface",
    "swi",
    "tree",
    "versus",
    "walk",
    "walltime",
    "yields",
]
