"""`specdec bench`: times every method against what a user would pick instead, into
data/measured/race_<machine>.csv. Run it where nothing else runs.
"""

import platform
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

import pandas as pd
import torch
import transformers

from specdec_lib.core.commandline import Parser
from specdec_lib.core.files import cache_folder, check_output, replace_marked, write_whole
from specdec_lib.measure.latency import machine_name
from specdec_lib.measure.race.benchmark import RUNTIMES, BenchPlan, benchmark
from specdec_lib.measure.race.families import with_int8_drafts
from specdec_lib.measure.race.table import (
    LEDGER,
    MARKS,
    MEASURED,
    ratio_table,
    shown_races,
    speeds,
)
from specdec_lib.measure.sweep.ratios import without_few
from specdec_lib.workload import load_ladder

SHOWN = """temperature top_k prompts method runtime ms_per_token tokens_per_round baseline ratio
    ratio_low ratio_high""".split()
COLUMNS = """method baseline edition temperature top_k domain prompts tokens repetition
    ms_per_token ratio ratio_low ratio_high tokens_per_round divergences margin runtime setting
    baseline_runtime baseline_setting load machine threads versions""".split()
PER_PROMPT = """method edition runtime temperature top_k prompt tokens timed_tokens seconds rounds
    repetition margin load""".split()


def main(arguments: list[str] | None = None) -> None:
    """Parse the command line, measure, write the tables and print the main one."""
    parser, usual = Parser("bench", __doc__.partition(": ")[2]), BenchPlan()
    add = parser.add_argument
    add("--threads", type=int, help="of torch; by default torch's own choice")
    told = "of the models: exact beside Hugging Face, or int8, which is another model"
    add("--edition", choices=MARKS, default="exact", help=f"{told} (default: exact)")
    add("--settings", type=int, help="of each method, tried on development prompts (default: all)")
    parser.add_common("--limit", usual.prompts, "held-out, of each domain")
    parser.add_common("--max-new-tokens", usual.tokens)
    parser.add_common("--out", MEASURED)
    given = parser.parse_args(arguments)
    if given.threads:
        torch.set_num_threads(given.threads)
    ladder = with_int8_drafts(load_ladder(device="cpu", runtime=RUNTIMES[given.edition]))
    limits = {"prompts": given.limit, "tokens": given.max_new_tokens, "most": given.settings}
    plan, name = BenchPlan(given.edition, **limits), machine_name()
    places = [given.out / f"race_{name}{end}.csv" for end in ("", "_prompts", "_ledger")]
    for place in (*places, *(page for page, _ in MARKS[given.edition].values())):
        check_output(place)
    found = [*benchmark(ladder, plan, partial(print, flush=True), cache_folder() / "race")]
    timings = [timing for own, _ in found for timing in own]
    versions = f"python {platform.python_version()}, torch {torch.__version__}"
    versions += f", transformers {transformers.__version__}"
    here = {"machine": name, "threads": torch.get_num_threads(), "versions": versions}
    table = without_few(ratio_table(timings).assign(**here))
    print(table[SHOWN].round(2).to_string(index=False))
    per_prompt, ledger = pd.DataFrame(map(asdict, timings)), pd.concat([own for _, own in found])
    tables = (table, COLUMNS), (per_prompt, PER_PROMPT), (ledger, LEDGER)
    for place, (own, columns) in zip(places, tables, strict=True):
        write_table(place, own.assign(edition=given.edition), columns)
    for mark, page, raced in shown_races(given.edition) if given.out == MEASURED else ():
        replace_marked(mark, speeds(raced), page)
    print(f"written to {given.out}")


def write_table(path: Path, table: pd.DataFrame, columns: Sequence[str]) -> None:
    """Write a CSV file, whole or not at all, in which rows of other editions stay."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_file():
        before = pd.read_csv(path)
        others = before[~before.edition.isin(set(table.edition))]
        table = pd.concat([one for one in (others, table) if len(one)])
    form = {"index": False, "float_format": "%.6g", "lineterminator": "\r\n"}
    write_whole(path, table.to_csv(columns=list(columns), **form).encode())
