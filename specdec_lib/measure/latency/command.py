"""`specdec measure latency`: measures seconds per pass, per round and per setting, into four tables
of data/measured: latency, ledger, speeds and sweeps, each with the name of the machine.
"""

import torch

from specdec_lib.core.commandline import Parser
from specdec_lib.core.files import check_output
from specdec_lib.measure.latency.measuring import MEASURES, Ranges, store_table, table_file
from specdec_lib.measure.latency.passes import fit_lines
from specdec_lib.models.loading import RUNTIMES
from specdec_lib.workload import load_ladder

SHOWN = ["draft", "temperature", "predicted", "measured", "error", "speed_up"]


def main(arguments: list[str] | None = None) -> None:
    """Measure, write each table as soon as it is there, and print what came of it."""
    usual, parser = Ranges(), Parser("measure latency", __doc__.partition(": ")[2])
    runtimes = {"choices": RUNTIMES, "default": ("reference", "fast")}
    told = "the last one is that of speeds and sweeps"
    parser.add_argument("--runtimes", nargs="+", **runtimes, help=told)
    told = "timed passes per place of a curve"
    parser.add_argument("--repeats", type=int, default=usual.repeats, help=told)
    parser.add_common(
        "--limit", usual.prompts, "for speeds; half for sweeps, a quarter for the ledger"
    )
    told = "of torch (default: as many as it takes by itself)"
    parser.add_argument("--threads", type=int, help=told)
    given = parser.parse_args(arguments)
    if given.threads is not None:
        torch.set_num_threads(given.threads)
    for name in MEASURES:
        check_output(table_file(name))
    ladders = {name: load_ladder(device="cpu", runtime=name) for name in given.runtimes}
    ranges = Ranges(repeats=given.repeats, prompts=given.limit)
    for name, measure in MEASURES.items():
        table = measure(ladders, ranges, True)
        if name == "latency":
            print(fit_lines(table).to_string(index=False))
        if name == "speeds":
            print(table[SHOWN].round(3).to_string(index=False))
        print(store_table(table, name))
