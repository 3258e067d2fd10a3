"""Seconds per pass as a function of rows and context, measured; the overhead ledger; tokens per
second predicted from both.

`curves` times every model over rows and contexts, `fitted` says how far a line describes it,
`with_roofline` what the machine would allow. `ledger` splits the seconds of real rounds into parts.
`specdec measure latency` measures all of it into data/measured.
"""

from specdec_lib.measure.latency.curves import curves, fitted, tables
from specdec_lib.measure.latency.ledger import PARTS, ledger, shares
from specdec_lib.measure.latency.machine import (
    copy_bandwidth,
    machine_name,
    measured_machine,
    peak_flops,
    with_roofline,
)
from specdec_lib.measure.latency.measuring import Ranges, all_measured, store, stored
from specdec_lib.measure.latency.passes import WARM_UPS, Clock, pass_seconds, prices, summarised
from specdec_lib.measure.latency.predicting import Played, fitted_overhead, observed, predicted
from specdec_lib.measure.latency.speeds import few, grid
from specdec_lib.measure.latency.wrapping import Stopwatch, watched, watched_chance, watched_rule

__all__ = [
    "PARTS",
    "WARM_UPS",
    "Clock",
    "Played",
    "Ranges",
    "Stopwatch",
    "all_measured",
    "copy_bandwidth",
    "curves",
    "few",
    "fitted",
    "fitted_overhead",
    "grid",
    "ledger",
    "machine_name",
    "measured_machine",
    "observed",
    "pass_seconds",
    "peak_flops",
    "predicted",
    "prices",
    "shares",
    "store",
    "stored",
    "summarised",
    "tables",
    "watched",
    "watched_chance",
    "watched_rule",
    "with_roofline",
]
