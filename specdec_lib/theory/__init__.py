"""Closed forms: acceptance to tokens per round to speed-up, best tree for a budget, roofline seconds.

Numbers in, numbers out: nothing here runs a model, so a prediction can be held against what was measured.
"""

from specdec_lib.theory.chains import (
    Verify,
    chain_law,
    chain_operations,
    chain_speed_up,
    chain_tokens,
    speed_up,
    staged_cost,
    survival_tokens,
    tokens_limit,
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
from specdec_lib.theory.rates import Rates, monotone
from specdec_lib.theory.shapes import Shape
from specdec_lib.theory.trees import Plan, best_budget, best_tree, expected_tokens, tokens_by_budget, tree_table

__all__ = [
    "RTX_4090",
    "Machine",
    "ModelShape",
    "Plan",
    "Rates",
    "Shape",
    "Verify",
    "arithmetic_intensity",
    "best_budget",
    "best_tree",
    "bytes_moved",
    "chain_law",
    "chain_operations",
    "chain_speed_up",
    "chain_tokens",
    "expected_tokens",
    "monotone",
    "pass_bytes",
    "pass_flops",
    "roofline_seconds",
    "speed_up",
    "staged_cost",
    "survival_tokens",
    "tokens_by_budget",
    "tokens_limit",
    "tree_table",
]
