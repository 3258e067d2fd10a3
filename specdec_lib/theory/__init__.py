"""Closed forms of tokens per round, speed-up, best trees, cascades, and a pass's ideal seconds."""

from specdec_lib.theory.chains import (
    best_relay,
    chain_tokens,
    counted_speed_up,
    phi,
    relay_speed_up,
    vertical_tokens,
)
from specdec_lib.theory.choosing import Margin, Tally, best_policy, margin, smoothed
from specdec_lib.theory.costs import (
    A40,
    H100,
    RTX_4090,
    Machine,
    ModelShape,
    arithmetic_intensity,
    bytes_moved,
    pass_flops,
    roofline_seconds,
)
from specdec_lib.theory.planner import (
    Gain,
    Verify,
    best_chain_speed_up,
    chain_break_even,
    chain_map,
    tree_gains,
    tree_work,
)
from specdec_lib.theory.trees import (
    Rates,
    best_budget,
    best_tree,
    expected_tokens,
    monotone,
    tokens_by_budget,
    tree_table,
)
from specdec_lib.theory.work import Overhead, PassTable, Work, plain_work
