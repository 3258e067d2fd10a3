"""Acceptance by depth, rank, source and confidence, with at-risk counts and intervals.

`collect` turns records into two tidy tables: a row per guess that was looked at, and a row per
round. All else is counted from them. A guess is at risk only where its parent was reached: deeper
guesses are seen by survivors, the easy contexts, only; so a rate stands beside how many were at
risk, and never mixes with the rounds that ended above.

The end of a text: a limit shortens the tree before it is verified, so what it takes away was never
at risk. A stop token shortens only what is emitted: guesses after it were verified and count here,
as in `Round.accepted` and `Round.tried`.

Intervals are 95 %, by bootstrap over the prompts that had something at risk. One prompt alone has
none (NaN); where all were accepted, or none, it has no width, however few they were.
"""

from specdec_lib.measure.acceptance.gaps import with_gaps
from specdec_lib.measure.acceptance.prediction import (
    compare_predictions,
    errors,
    predicted_shapes,
    predictions,
)
from specdec_lib.measure.acceptance.ranks import position_rates, replayed_tokens
from specdec_lib.measure.acceptance.rates import (
    calibration,
    expected_calibration_error,
    hazards,
    rank_rates,
    rates,
    tokens,
)
from specdec_lib.measure.acceptance.records import collect
from specdec_lib.measure.replay.shape_rounds import ranks_by_temperature

__all__ = [
    "calibration",
    "collect",
    "compare_predictions",
    "errors",
    "expected_calibration_error",
    "hazards",
    "position_rates",
    "predicted_shapes",
    "predictions",
    "rank_rates",
    "ranks_by_temperature",
    "rates",
    "replayed_tokens",
    "tokens",
    "with_gaps",
]
