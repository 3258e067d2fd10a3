"""Acceptance by depth, rank, source and confidence, of guesses whose parent was reached."""

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
