"""Sliders over figure functions, never the only way to see a result."""

from specdec_lib.show.widgets.explore_acceptance import acceptance_explorer
from specdec_lib.show.widgets.explore_cascades import cascade_explorer
from specdec_lib.show.widgets.explore_costs import break_even_explorer, latency_explorer
from specdec_lib.show.widgets.explore_plans import Source, best_shape, faster_draft, plan_explorer
from specdec_lib.show.widgets.explore_rounds import round_steps
from specdec_lib.show.widgets.explore_stages import stage_explorer
from specdec_lib.show.widgets.explore_trees import one_round, tree_explorer
from specdec_lib.show.widgets.panel import sliders
