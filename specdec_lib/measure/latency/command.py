"""`specdec measure latency`: measures seconds per pass, per round and per setting, into four tables
of data/measured: latency, ledger, speeds and sweeps, each with the name of the machine.

Curves of every model of the ladder in each runtime, with the roofline beside them; where the
seconds of a round go; some twenty settings, greedy and sampled, on held-out code prompts beside
what development prompts and pass times said of them; one setting of each kind over temperatures and
domains.
"""

import torch

from specdec_lib.core.commandline import Parser
from specdec_lib.measure.latency.curves import fit_lines
from specdec_lib.measure.latency.measuring import PLACE, TABLES, Ranges, measure_all, store_table
from specdec_lib.models.loading import RUNTIMES
from specdec_lib.workload import load_ladder

SHOWN = ["draft", "temperature", "predicted", "measured", "error", "speed_up"]


def main(arguments: list[str] | None = None) -> None:
    """Parse the command line, measure, write each table as soon as it is there, and print what came
    of it.
    """
    usual, parser = Ranges(), Parser("measure latency", __doc__.partition(": ")[2])
    add = parser.add_argument
    add("--tables", nargs="+", choices=TABLES, default=TABLES, help="(default: all)")
    runtimes = "the last one is that of speeds and sweeps"
    add("--runtimes", nargs="+", choices=RUNTIMES, default=("reference", "fast"), help=runtimes)
    add("--repeats", type=int, default=usual.repeats, help="timed passes per place of a curve")
    shares = "for speeds; half for sweeps, a quarter for the ledger"
    parser.add_common("--limit", usual.prompts, shares)
    parser.add_common("--max-new-tokens", usual.max_new_tokens)
    add("--threads", type=int, help="of torch (default: as many as it takes by itself)")
    parser.add_common("--out", PLACE)
    given = parser.parse_args(arguments)
    if given.threads is not None:
        torch.set_num_threads(given.threads)
    ladders = {name: load_ladder(device="cpu", runtime=name) for name in given.runtimes}
    limits = {"prompts": given.limit, "max_new_tokens": given.max_new_tokens}
    ranges = Ranges(repeats=given.repeats, **limits)
    for name in given.tables:
        table = measure_all(ladders, ranges, names=[name])[name]
        if name == "latency":
            print(fit_lines(table).to_string(index=False))
        if name == "speeds":
            print(table[SHOWN].round(3).to_string(index=False))
            errors = table.error.abs()
            print(
                f"prediction against measurement over {len(table)} settings: median error"
                f" {errors.median():.1%}, largest {errors.max():.1%}"
            )
        print(store_table(table, name, folder=given.out))
