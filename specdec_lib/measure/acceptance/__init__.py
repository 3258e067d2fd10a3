"""Acceptance by depth, rank, source and confidence, with at-risk counts and intervals.

A guess is at risk only where its parent was reached. Intervals are 95 %, over prompts;
fewer than 10 prompts have none (NaN).
"""

from specdec_lib.measure.acceptance.prediction import (
    compare_predictions,
    errors,
    first_guess_rates,
    position_rates,
    predict_tokens,
    predicted_shapes,
    ranks_by_temperature,
    ranks_of_models,
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
