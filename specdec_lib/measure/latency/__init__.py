"""Seconds per pass as a function of rows and context, measured; the overhead ledger; tokens per
second predicted from both.

`curves` times every model over rows and contexts, `fit_lines` says how far a line describes it,
`with_roofline` what the machine would allow. `ledger` splits the seconds of real rounds into parts.
`specdec measure latency` measures all of it into data/measured.
"""

from specdec_lib.measure.latency.curves import curves, fit_lines, tables
from specdec_lib.measure.latency.ledger import ledger, shares
from specdec_lib.measure.latency.machine import machine_name, with_roofline
from specdec_lib.measure.latency.measuring import Ranges, measure_all, store_table, stored_tables
from specdec_lib.measure.latency.passes import prices, time_passes
from specdec_lib.measure.latency.predicting import observe
from specdec_lib.measure.latency.speeds import few, grid

__all__ = [
    "Ranges",
    "curves",
    "few",
    "fit_lines",
    "grid",
    "ledger",
    "machine_name",
    "measure_all",
    "observe",
    "prices",
    "shares",
    "store_table",
    "stored_tables",
    "tables",
    "time_passes",
    "with_roofline",
]
