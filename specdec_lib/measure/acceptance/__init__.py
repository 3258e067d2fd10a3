"""Records in, acceptance by depth, rank, source and confidence out, with at-risk counts and
intervals.

Two tidy tables come out of the records (`collect`): a row per guess that was looked at, and a row
per round. All else is counted from them. A guess is at risk only where the walk came to its parent:
deeper guesses are seen by survivors, the easy contexts, only; so a rate stands beside how many were
at risk, and never mixes with the rounds that ended above.

What is counted at the end of a text: a limit shortens the tree before it is verified, so what it
takes away was never at risk. A stop token shortens only what is emitted: guesses behind it were
verified and count here, as in `Round.accepted` and `Round.tried`.

Intervals are 95 %, by bootstrap over the prompts that had something at risk. One prompt alone has
none (NaN); where all were accepted, or none, it has no width, however few they were.

From a text's ranks (`taken_ranks`) follows what any fixed tree yields along it (`replayed`), and
predictions are held against measurements with `predictions`, `compared` and `errors`; `specdec
acceptance` does so at full size.
"""

from specdec_lib.measure.acceptance.gaps import with_gaps
from specdec_lib.measure.acceptance.prediction import (
    PREDICTORS,
    compared,
    errors,
    predictions,
    shapes,
)
from specdec_lib.measure.acceptance.rates import (
    calibration,
    expected_calibration_error,
    hazards,
    rank_rates,
    rates,
    tokens,
)
from specdec_lib.measure.acceptance.records import collect
from specdec_lib.measure.acceptance.replay import (
    position_rates,
    replayed,
    replayed_guesses,
    replayed_tokens,
    taken_ranks,
    texts_of,
)

__all__ = [
    "PREDICTORS",
    "calibration",
    "collect",
    "compared",
    "errors",
    "expected_calibration_error",
    "hazards",
    "position_rates",
    "predictions",
    "rank_rates",
    "rates",
    "replayed",
    "replayed_guesses",
    "replayed_tokens",
    "shapes",
    "taken_ranks",
    "texts_of",
    "tokens",
    "with_gaps",
]
