"""Closed forms: acceptance to tokens per round to speed-up, cascades, best tree for a budget,
roofline seconds.

Numbers in, numbers out: nothing here runs a model, so a prediction can be held against what was
measured.
"""

from specdec_lib.theory.cascades import (
    BestLengths,
    best_relay,
    ewif,
    horizontal_speed_up,
    phi,
    relay_speed_up,
    swi,
    vertical_speed_up,
    vertical_tokens,
)
from specdec_lib.theory.chains import (
    Verify,
    chain_law,
    chain_speed_up,
    chain_tokens,
    speed_up,
    survival_tokens,
)
from specdec_lib.theory.costs import (
    RTX_4090,
    Machine,
    ModelShape,
    arithmetic_intensity,
    bytes_moved,
    pass_bytes,
    pass_flops,
    roofline_seconds,
)
from specdec_lib.theory.generating import (
    CascadeShape,
    ExpectedRound,
    cascade_speed_up,
    expected_round,
)
from specdec_lib.theory.maps import BreakEven, MapCell, chain_break_even, chain_map
from specdec_lib.theory.rates import Rates, monotone
from specdec_lib.theory.speed import (
    Gain,
    Overhead,
    PassTable,
    Work,
    best_chain_speed_up,
    plain_work,
    tree_gains,
    tree_work,
)
from specdec_lib.theory.trees import (
    Plan,
    best_budget,
    best_tree,
    expected_tokens,
    tokens_by_budget,
    tree_table,
)

__all__ = [
    "RTX_4090",
    "BestLengths",
    "BreakEven",
    "CascadeShape",
    "ExpectedRound",
    "Gain",
    "Machine",
    "MapCell",
    "ModelShape",
    "Overhead",
    "PassTable",
    "Plan",
    "Rates",
    "Verify",
    "Work",
    "arithmetic_intensity",
    "best_budget",
    "best_chain_speed_up",
    "best_relay",
    "best_tree",
    "bytes_moved",
    "cascade_speed_up",
    "chain_break_even",
    "chain_law",
    "chain_map",
    "chain_speed_up",
    "chain_tokens",
    "ewif",
    "expected_round",
    "expected_tokens",
    "horizontal_speed_up",
    "monotone",
    "pass_bytes",
    "pass_flops",
    "phi",
    "plain_work",
    "relay_speed_up",
    "roofline_seconds",
    "speed_up",
    "survival_tokens",
    "swi",
    "tokens_by_budget",
    "tree_gains",
    "tree_table",
    "tree_work",
    "vertical_speed_up",
    "vertical_tokens",
]
