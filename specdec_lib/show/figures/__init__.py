"""A table in, a plotly figure out; the only writer of figure files.

Figure functions are pure and return a figure in the screen template, legible on a light and on a
dark page; `save` writes it as HTML, as an image on white paper and as the table behind it. Colour
never carries a meaning alone.
"""

from specdec_lib.core.files import figures_folder as folder
from specdec_lib.show.figures.ablations import ablation, passes, stages
from specdec_lib.show.figures.agreement import calibration, predicted
from specdec_lib.show.figures.bench import versus
from specdec_lib.show.figures.cascades import ewif, lenience, position, sensitivity
from specdec_lib.show.figures.charts import laws
from specdec_lib.show.figures.curves import acceptance, budget_curves
from specdec_lib.show.figures.gains import cascade_ablation, walltime
from specdec_lib.show.figures.gaps import gap_table, gaps, kinds
from specdec_lib.show.figures.latency import latency, ledger
from specdec_lib.show.figures.maps import break_even, chain_lengths
from specdec_lib.show.figures.paper import paper_and_ours, relative_performance
from specdec_lib.show.figures.places import pass_at
from specdec_lib.show.figures.rivals import rivals
from specdec_lib.show.figures.roofs import roofline
from specdec_lib.show.figures.saving import save, still
from specdec_lib.show.figures.settings import surface
from specdec_lib.show.figures.shapes import shapes, slots, speed_ups
from specdec_lib.show.figures.speeds import (
    predicted_speeds,
    setting_speed_ups,
    speed_surface,
    speed_sweep,
)
from specdec_lib.show.figures.steps import step
from specdec_lib.show.figures.swi import swi
from specdec_lib.show.figures.tables import compared, emitted, nodes, walk
from specdec_lib.show.figures.text import origins
from specdec_lib.show.figures.theme import PAPER, SCREEN, colours
from specdec_lib.show.figures.trees import mask, tree
from specdec_lib.show.figures.yields import yields

__all__ = [
    "PAPER",
    "SCREEN",
    "ablation",
    "acceptance",
    "break_even",
    "budget_curves",
    "calibration",
    "cascade_ablation",
    "chain_lengths",
    "colours",
    "compared",
    "emitted",
    "ewif",
    "folder",
    "gap_table",
    "gaps",
    "kinds",
    "latency",
    "laws",
    "ledger",
    "lenience",
    "mask",
    "nodes",
    "origins",
    "paper_and_ours",
    "pass_at",
    "passes",
    "position",
    "predicted",
    "predicted_speeds",
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
