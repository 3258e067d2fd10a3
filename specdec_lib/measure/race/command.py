"""`specdec bench`: times every method against what a user would pick instead, into
data/measured/race_<machine>.csv. Run it where nothing else runs.
"""

from argparse import Namespace
from dataclasses import asdict
from functools import partial

import pandas as pd
import torch

from specdec_lib.core.commandline import Parser
from specdec_lib.core.files import cache_folder, check_output, replace_marked
from specdec_lib.measure.latency import machine_name
from specdec_lib.measure.race.benchmark import BenchPlan, benchmark
from specdec_lib.measure.race.families import with_int8_drafts
from specdec_lib.measure.race.readme import MARKS, shown_races, speeds
from specdec_lib.measure.race.table import (
    COLUMNS,
    LEDGER,
    MEASURED,
    PER_PROMPT,
    ratio_table,
    where,
    write_table,
)
from specdec_lib.measure.sweep.ratios import without_few
from specdec_lib.workload import load_ladder

# of an edition, the reference first; methods are tuned on the last
RUNTIMES = {"exact": ("reference", "fast"), "int8": ("int8",)}
SHOWN = """temperature top_k domain prompts method runtime ms_per_token tokens_per_round baseline
    ratio ratio_low ratio_high""".split()


def main(arguments: list[str] | None = None) -> None:
    """Parse the command line, measure, write the tables and print the main one."""
    given = _parsed(arguments)
    if given.threads:
        torch.set_num_threads(given.threads)
    runtimes = RUNTIMES[given.edition]
    ladders = {name: load_ladder(device="cpu", runtime=name) for name in runtimes}
    ladders[runtimes[-1]] = with_int8_drafts(ladders[runtimes[-1]])
    limits = {"prompts": given.limit, "tokens": given.max_new_tokens, "most": given.settings}
    plan = BenchPlan(**limits, seed=given.seed, hugging=given.edition == "exact")
    name = machine_name()
    places = [given.out / f"race_{name}{end}.csv" for end in ("", "_prompts", "_ledger")]
    for place in (*places, *(page for page, _ in MARKS[given.edition].values())):
        check_output(place)
    found = [*benchmark(ladders, plan, partial(print, flush=True), cache_folder() / "race")]
    timings = [timing for own, _ in found for timing in own]
    table = without_few(ratio_table(timings).assign(machine=name, **where()))
    print(table[SHOWN].round(2).to_string(index=False))
    tables = {
        places[0]: (table, COLUMNS),
        places[1]: (pd.DataFrame(map(asdict, timings)), PER_PROMPT),
        places[2]: (pd.concat([ledger for _, ledger in found]), LEDGER),
    }
    for place, (own, columns) in tables.items():
        write_table(place, own.assign(edition=given.edition), columns)
    for mark, page, raced in shown_races(given.edition) if given.out == MEASURED else ():
        replace_marked(mark, speeds(raced), page)
    print(f"written to {given.out}")


def _parsed(arguments: list[str] | None) -> Namespace:
    parser, usual = Parser("bench", __doc__.partition(": ")[2]), BenchPlan()
    add = parser.add_argument
    add("--threads", type=int, help="of torch; by default torch's own choice")
    told = "of the models: exact beside Hugging Face, or int8, which is another model"
    add("--edition", choices=MARKS, default="exact", help=f"{told} (default: exact)")
    add("--settings", type=int, help="of each method, tried on development prompts (default: all)")
    parser.add_common("--limit", usual.prompts, "held-out, of each domain")
    parser.add_common("--max-new-tokens", usual.tokens)
    parser.add_common("--seed", usual.seed)
    parser.add_common("--out", MEASURED)
    return parser.parse_args(arguments)
