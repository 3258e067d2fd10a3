"""Against what a user would pick instead: paired, interleaved, on the same prompts."""

from specdec_lib.measure.race.contenders import (
    AUTOREGRESSIVE,
    BASELINES,
    OURS,
    Contender,
    Played,
    Portions,
    ours,
)
from specdec_lib.measure.race.pairing import Timing, timed, warm
from specdec_lib.measure.race.table import COLUMNS, raw, rows, write
from specdec_lib.measure.race.texts import Text, divergence, first_difference, texts
from specdec_lib.measure.race.tuning import Ranked, tuned

__all__ = [
    "AUTOREGRESSIVE",
    "BASELINES",
    "COLUMNS",
    "OURS",
    "Contender",
    "Played",
    "Portions",
    "Ranked",
    "Text",
    "Timing",
    "divergence",
    "first_difference",
    "ours",
    "raw",
    "rows",
    "texts",
    "timed",
    "tuned",
    "warm",
    "write",
]
