"""Seconds per pass as a function of rows and context, measured; the overhead ledger; tokens per
second predicted from both. `specdec measure latency` measures all of it into data/measured.
"""

from specdec_lib.measure.latency.machine import machine_name
from specdec_lib.measure.latency.measuring import Ranges, measure_all, stored_tables
from specdec_lib.measure.latency.passes import curves, fit_lines, pass_tables, prices, time_passes
from specdec_lib.measure.latency.speeds import few, grid
