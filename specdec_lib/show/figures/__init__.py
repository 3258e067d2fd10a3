"""Plotly figures drawn from tables; `show.tables` makes some tables, `show.saving` writes files.

Every figure of a table raises ValueError if the table lacks a column or a row, has a mark twice, or
an interval does not hold its value. Colour never carries a meaning alone.
"""

from specdec_lib.show.figures.bars import (
    chain_lengths,
    distributions,
    film_strip,
    history_bars,
    paper_and_ours,
    rivals,
    round_ledger,
    yields,
)
from specdec_lib.show.figures.cells import break_even, match_rates, roofline, speed_surface, surface
from specdec_lib.show.figures.claims import scorecard
from specdec_lib.show.figures.dots import (
    ablation,
    acceptance,
    calibration_curve,
    ewif_by_drafters,
    kinds,
    predicted_speeds,
    predicted_tokens,
    speed_sweep,
)
from specdec_lib.show.figures.ideas import (
    MEASURED,
    MODELLED,
    claim_maps,
    clock_errors,
    gains_by_method,
    idea_ratios,
    waterfall,
)
from specdec_lib.show.figures.lines import (
    budget_curves,
    budget_speed_ups,
    latency,
    pass_at,
    position,
    what_ifs,
)
from specdec_lib.show.figures.papers import (
    FORETOLD,
    PAPER,
    paper_speed_ups,
    prompt_gains,
    swi_by_prices,
    walltimes,
)
from specdec_lib.show.figures.pictures import cascade, origins, shaded_text, shapes
from specdec_lib.show.figures.races import race_moment
from specdec_lib.show.figures.rounds import mask, step, tree
from specdec_lib.show.figures.rows import (
    KIND_NAMES,
    free_drafts,
    off_switches,
    passes,
    plans,
    setting_speed_ups,
    stages,
    verifiers,
    versus,
)
from specdec_lib.show.figures.scouts import scout_pass
