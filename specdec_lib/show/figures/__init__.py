"""A table in, a plotly figure out; the only writer of figure files.

Every figure of a table raises ValueError if the table lacks a column or a row, has a mark twice, or
an interval does not hold its value. Colour never carries a meaning alone.
"""
# ruff: noqa: F401 - a face: what it imports is what it offers

from specdec_lib.show.figures.acceptance import (
    acceptance,
    calibration_curve,
    gap_table,
    kinds,
    match_rates,
    predicted_tokens,
    yields,
)
from specdec_lib.show.figures.break_even import break_even, chain_lengths
from specdec_lib.show.figures.cascade import (
    ewif_by_drafters,
    lenience,
    position,
    sensitivity,
    surface,
    swi_by_drafters,
)
from specdec_lib.show.figures.gains import cascade_ablation, rivals, walltime
from specdec_lib.show.figures.latency import latency, pass_at, round_ledger
from specdec_lib.show.figures.roofline import roofline
from specdec_lib.show.figures.rounds import distributions, origins
from specdec_lib.show.figures.saving import save, still
from specdec_lib.show.figures.shapes import budget_curves, budget_speed_ups, shapes, slots
from specdec_lib.show.figures.speeds import (
    predicted_speeds,
    setting_speed_ups,
    speed_surface,
    speed_sweep,
    versus,
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
