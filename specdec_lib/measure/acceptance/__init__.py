"""Acceptance by depth, rank, source and confidence, of guesses whose parent was reached."""
# ruff: noqa: I001 - two lines import from one module

from specdec_lib.measure.acceptance.prediction import compare_predictions, errors, position_rates
from specdec_lib.measure.acceptance.prediction import predict_tokens, predicted_shapes
from specdec_lib.measure.acceptance.prediction import ranks_by_temperature, replayed_tokens
from specdec_lib.measure.acceptance.rates import collect, expected_calibration_error, hazards
from specdec_lib.measure.acceptance.rates import rank_rates, rates, rates_by_confidence, tokens
from specdec_lib.measure.acceptance.rates import with_gaps
