"""Seconds per pass as a function of rows and context, measured; the overhead ledger; tokens per
second predicted from both. `specdec measure latency` measures all of it into data/measured.
"""

from specdec_lib.measure.latency.measuring import (
    Measuring,
    pass_prices,
    pass_times,
    stored_tables,
)
from specdec_lib.measure.latency.passes import fit_lines, pass_tables
from specdec_lib.measure.latency.predict import Ranges
from specdec_lib.measure.latency.summaries import (
    beside_here,
    free_parts,
    host_overheads,
    ledger_costs,
    pass_multiples,
    prediction_errors,
    sweep_rows,
    with_words,
)
from specdec_lib.measure.settings.latency import few_settings, latency_settings
