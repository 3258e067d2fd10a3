"""Sliders over figure functions, never the only way to see a result."""

from specdec_lib.show.widgets.explore_acceptance import acceptance_explorer
from specdec_lib.show.widgets.explore_break_even import break_even_explorer
from specdec_lib.show.widgets.explore_cascades import cascade_explorer
from specdec_lib.show.widgets.explore_passes import latency_explorer
from specdec_lib.show.widgets.explore_rounds import round_steps
from specdec_lib.show.widgets.explore_stages import stage_explorer
from specdec_lib.show.widgets.explore_trees import tree_explorer
from specdec_lib.show.widgets.panel import sliders
from specdec_lib.show.widgets.slider_figures import best_shape, faster_draft, one_round
