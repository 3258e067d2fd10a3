"""Acceptance by depth, rank, source and confidence, with at-risk counts and intervals.

A guess is at risk only where its parent was reached, so a rate stands beside how many were. What a
limit cuts off a tree was never at risk; guesses after a stop token were verified and count.
Intervals are 95 %, by bootstrap over prompts; fewer than 10 prompts have none (NaN).
"""

from specdec_lib.measure.acceptance.prediction import (
    compare_predictions,
    errors,
    position_rates,
    predict_tokens,
    predicted_shapes,
    ranks_by_temperature,
    replayed_tokens,
)
from specdec_lib.measure.acceptance.rates import (
    collect,
    expected_calibration_error,
    hazards,
    rank_rates,
    rates,
    rates_by_confidence,
    tokens,
    with_gaps,
)
