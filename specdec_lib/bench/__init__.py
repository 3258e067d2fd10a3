"""Against what a user would pick instead: paired, interleaved, on the same prompts."""

from specdec_lib.bench.contenders import AUTOREGRESSIVE, BASELINES, OURS, Contender, Played, Portions, ours
from specdec_lib.bench.pairing import Timing, timed, warm
from specdec_lib.bench.table import COLUMNS, raw, rows, write
from specdec_lib.bench.texts import Text, divergence, first_difference, texts
from specdec_lib.bench.tuning import Ranked, tuned

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
