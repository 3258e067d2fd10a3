"""Sliders over figure functions, never the only way to see a result."""

from specdec_lib.measure.machine_prices import Machines
from specdec_lib.show.widgets.bookmark import Bookmark
from specdec_lib.show.widgets.explore_acceptance import acceptance_explorer
from specdec_lib.show.widgets.explore_cascades import cascade_explorer
from specdec_lib.show.widgets.explore_costs import break_even_explorer, latency_explorer
from specdec_lib.show.widgets.explore_drafts import (
    best_shape,
    one_round,
    stage_explorer,
    tree_explorer,
)
from specdec_lib.show.widgets.explore_plans import Source, plan_explorer
from specdec_lib.show.widgets.explore_prices import price_explorer
from specdec_lib.show.widgets.explore_rounds import round_steps
from specdec_lib.show.widgets.panel import sliders
from specdec_lib.show.widgets.watch_race import RacePanel, race_to_watch
