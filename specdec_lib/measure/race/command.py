"""`specdec bench`: times every method against what a user would pick instead, into
data/measured/race_<machine>.csv. Run it where nothing else runs.
"""

import time
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict, replace

import pandas as pd
import torch

from specdec_lib.core.commandline import Parser
from specdec_lib.core.files import cache_folder, check_output, replace_marked
from specdec_lib.measure.latency import machine_name
from specdec_lib.measure.race.benchmark import SMOKE, BenchPlan, benchmark
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

SHOWN = """temperature top_k domain prompts method runtime ms_per_token tokens_per_round baseline
    ratio ratio_low ratio_high chosen""".split()


def main(arguments: list[str] | None = None) -> None:
    """Parse the command line, measure, write the tables and print the main one."""
    given = _parsed(arguments)
    started = time.perf_counter()
    if given.threads:
        torch.set_num_threads(given.threads)
    runtimes = _runtimes(given)
    ladders = {name: load_ladder(device=given.device, runtime=name) for name in runtimes}
    ladders[runtimes[-1]] = with_int8_drafts(ladders[runtimes[-1]])
    plan = SMOKE if given.smoke else BenchPlan(seed=given.seed)
    plan = replace(
        plan,
        hugging=given.edition == "exact",
        most=given.settings or plan.most,
        tokens=given.max_new_tokens or plan.tokens,
        prompts=tuple(given.limit or plan.prompts),
        others=plan.others if given.others is None else given.others,
    )
    name = machine_name(str(ladders[runtimes[0]].target.model.device))
    places = [given.out / f"race_{name}{end}.csv" for end in ("", "_prompts", "_ledger")]
    for place in (*places, MARKS[given.edition][1]):
        check_output(place)
    keep = None if given.smoke else cache_folder() / "race"
    found = list(benchmark(ladders, plan, lambda line: print(line, flush=True), keep))
    timings = [timing for own, *_ in found for timing in own]
    chosen = {(own[0].temperature, own[0].top_k): lineup.chosen for own, lineup, _ in found}
    table = ratio_table(timings, chosen)
    table = without_few(table.assign(machine=name, edition=given.edition, **where()))
    print(table[SHOWN].round(2).to_string(index=False))
    if not given.smoke:
        write_table(places[0], table, COLUMNS)
        if given.out == MEASURED:
            for mark, page, raced in shown_races(given.edition):
                replace_marked(mark, speeds(raced), page)
        per_prompt = pd.DataFrame(map(asdict, timings)).assign(edition=given.edition)
        per_prompt["least_seconds"] = per_prompt.seconds
        write_table(places[1], per_prompt, PER_PROMPT)
        ledger = pd.concat([own for *_, own in found]).assign(edition=given.edition)
        write_table(places[2], ledger, LEDGER)
    kept = "nothing was kept" if given.smoke else f"written to {given.out}"
    print(f"{time.perf_counter() - started:.0f} s in all; {kept}")


def _runtimes(given: Namespace) -> Sequence[str]:
    """Our runtimes of an edition on a device, the reference first; the last is tuned on."""
    if given.edition == "int8":
        return ("int8",)
    on_cpu = given.device == "cpu" or (given.device == "auto" and not torch.cuda.is_available())
    return ("reference", "fast") if on_cpu else ("reference",)


def _parsed(arguments: list[str] | None) -> Namespace:
    parser = Parser("bench", __doc__.partition(": ")[2])
    add = parser.add_argument
    add("--smoke", action="store_true", help="everything once, on a few prompts; nothing is kept")
    add("--threads", type=int, help="of torch; by default torch's own choice")
    told = "of the models: exact beside Hugging Face, or int8, which is another model"
    add("--edition", choices=MARKS, default="exact", help=f"{told} (default: exact)")
    add("--device", default="auto", help='"auto", "cpu", "cuda", …')
    limits = "held-out prompts of each domain: greedy, T = 1 with top-k 50, T = 1 (the best only)"
    add("--limit", type=int, nargs=3, metavar=("GREEDY", "TOP_K", "FREE"), help=limits)
    add("--others", type=int, help="of these prompts, those that the slower baselines run too")
    add("--settings", type=int, help="of each method, tried on development prompts (default: all)")
    parser.add_common("--max-new-tokens")
    parser.add_common("--seed", 0)
    parser.add_common("--out", MEASURED)
    return parser.parse_args(arguments)
