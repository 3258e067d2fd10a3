"""`specdec measure latency`: seconds per pass, per round and per setting, into four
tables of data/measured.

The tables are latency, ledger, speeds and sweeps, each with the name of the machine.

Curves of every model of the ladder in each runtime, with the roofline beside them; where the
seconds of a round go; some twenty settings, greedy and sampled, on held-out code prompts beside
what development prompts and pass times said of them; one setting of each kind over temperatures and
domains.
"""

from pathlib import Path

import torch

from specdec_lib.core.commandline import Parser
from specdec_lib.measure.latency.curves import fitted
from specdec_lib.measure.latency.measuring import (
    PLACE,
    TABLES,
    Ranges,
    store,
    timed_curves,
    timed_ledger,
    timed_speeds,
    timed_sweeps,
)
from specdec_lib.measure.latency.predicting import median_and_largest
from specdec_lib.workload import load_ladder

RUNTIMES = ("reference", "fast")


def main(arguments: list[str] | None = None) -> None:
    """Parse the command line, measure, write each table as soon as it is there, and print what came
    of it.
    """
    usual = Ranges()
    parser = Parser("measure latency", __doc__.partition(": ")[2])
    parser.add_argument(
        "--tables", nargs="+", choices=TABLES, default=TABLES, help="what to measure (default: all)"
    )
    parser.add_argument(
        "--runtimes",
        nargs="+",
        choices=RUNTIMES,
        default=RUNTIMES,
        help="the last one is that of speeds and sweeps",
    )
    parser.add_argument(
        "--repeats", type=int, default=usual.repeats, help="timed passes per place of a curve"
    )
    parser.add_argument(
        "--prompts",
        type=int,
        default=usual.prompts,
        help="of each split, for speeds; half for sweeps, a quarter for the ledger",
    )
    parser.add_argument("--max-new-tokens", type=int, default=usual.max_new_tokens)
    parser.add_argument(
        "--threads",
        type=int,
        default=None,
        help="of torch (default: as many as it takes by itself)",
    )
    parser.add_argument("--into", type=Path, default=PLACE, help="folder of the tables")
    given = parser.parse_args(arguments)
    if given.threads is not None:
        torch.set_num_threads(given.threads)
    ladders = {name: load_ladder(device="cpu", runtime=name) for name in given.runtimes}
    runtime, ladder = given.runtimes[-1], ladders[given.runtimes[-1]]
    ranges = Ranges(
        repeats=given.repeats, prompts=given.prompts, max_new_tokens=given.max_new_tokens
    )
    if "latency" in given.tables:
        table = timed_curves(ladders, ranges)
        print(
            fitted(table).to_string(index=False),
            store(table, "latency", folder=given.into),
            sep="\n",
        )
    if "ledger" in given.tables:
        print(store(timed_ledger(ladders, ranges), "ledger", folder=given.into))
    if "speeds" in given.tables:
        speeds = timed_speeds(ladder, ranges).assign(runtime=runtime)
        print(
            speeds[["draft", "temperature", "predicted", "measured", "error", "speed_up"]]
            .round(3)
            .to_string(index=False)
        )
        middle, largest = median_and_largest(speeds.error)
        print(
            f"prediction against measurement over {len(speeds)} settings: median error"
            f" {middle:.1%}, largest {largest:.1%}"
        )
        print(store(speeds, "speeds", folder=given.into))
    if "sweeps" in given.tables:
        print(
            store(timed_sweeps(ladder, ranges).assign(runtime=runtime), "sweeps", folder=given.into)
        )
