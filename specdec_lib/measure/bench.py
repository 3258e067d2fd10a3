"""Every method against what a user would pick instead, by the clock, where nothing else runs.

Under each sampler methods are tuned on development prompts and race on held-out ones. What is
finished is kept by prompt, so that a run goes on where it was.
"""

import platform
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path

import pandas as pd
import torch
import transformers
from tqdm.auto import tqdm

from specdec_lib.core.chance import Sampler
from specdec_lib.core.files import cache_folder, check_output
from specdec_lib.measure.fingerprints import fingerprint
from specdec_lib.measure.latency.time_breakdown import method_ledger
from specdec_lib.measure.machine import machine_name
from specdec_lib.measure.pages import replace_marked
from specdec_lib.measure.race_table import (
    MARKS,
    MEASURED,
    race_files,
    race_rows,
    ratio_table,
    shown_races,
    speeds,
    write_table,
)
from specdec_lib.measure.racing import race_prompts
from specdec_lib.measure.ratios import without_few
from specdec_lib.measure.row_cache import RowCache
from specdec_lib.measure.settings.bench import ON_TREES, OURS
from specdec_lib.measure.settings.ladder_drafts import with_int8_drafts
from specdec_lib.measure.target_text import by_domain
from specdec_lib.measure.trial import Trial
from specdec_lib.measure.tuned_methods import (
    BenchPlan,
    Lineup,
    Say,
    contenders,
    prompts_in_turn,
    tune_lineup,
)
from specdec_lib.workload import Ladder, load_ladder

SAMPLERS = (Sampler(0), Sampler(1.0, top_k=50), Sampler(1.0))  # the last for plain and best only
SMOKE = BenchPlan(prompts=(1, 1, 1), development=1, tokens=20, stages=(1, 1), most=4)
SHOWN = """temperature top_k domain prompts method runtime ms_per_token tokens_per_round baseline
    ratio ratio_low ratio_high chosen""".split()


def benchmark(
    ladders: Mapping[str, Ladder], plan: BenchPlan, say: Say, keep: Path | None = None
) -> Iterator[tuple[list[Trial], Lineup, pd.DataFrame]]:
    """Under one sampler after the other: the timings of every method, what was tuned, and where
    the seconds of our methods go (`method_ledger`, on a development prompt of each domain).

    ladders    by runtime, the reference first; methods are tuned on the last one
    say        called with a line when something is settled
    keep       a folder for what is finished: the same code, machine, models and plan, but for the
               numbers of held-out prompts, go on there
    """
    *_, ladder = ladders.values()
    if keep is not None:
        models = {runtime: one.models for runtime, one in ladders.items()}
        same = asdict(replace(plan, prompts=(), others=0))
        keep = keep / fingerprint(machine_name(), same, models)
        say(f"what is finished is kept in {keep}, and a run that was stopped goes on there")
    chosen = ""
    few = prompts_in_turn("development", 1, plan.source)
    for sampler, count in zip(SAMPLERS, plan.prompts, strict=True):
        whole = sampler.temperature == 0 or sampler.top_k is not None or not chosen
        needed = ("tree", chosen) if chosen in ON_TREES else (chosen,)
        asked = (ladders, sampler, plan, OURS if whole else needed, say)
        folder = keep and keep / f"T{sampler.temperature:g}-k{sampler.top_k or 0}"
        [row] = RowCache(folder).rows("lineup", lambda asked=asked: [asdict(tune_lineup(*asked))])
        lineup = Lineup(**row)
        main, others = contenders(ladders, sampler, lineup)
        prompts = prompts_in_turn("held-out", count, plan.source)
        many = plan.others * len(by_domain(prompts))
        timings: list[Trial] = []
        for racing, own in ([*main, *others], prompts[:many]), (main, prompts[many:]):
            for found in race_prompts(
                racing,
                ladder,
                tqdm(own, "prompts"),
                tokens=plan.tokens,
                seed=plan.seed,
                folder=folder,
                warm_up=plan.tokens,
            ):
                timings += found
        tuned = {one.method: one.draft for one in main if one.draft is not None}
        spent = method_ledger(ladder, sampler, tuned, few, tokens=plan.tokens, seed=plan.seed)
        spent = spent.rename(columns={"draft": "method"}).assign(top_k=sampler.top_k or 0)
        yield timings, lineup, spent
        chosen = lineup.chosen or chosen


def race_all(
    edition: str, plan: BenchPlan, out: Path | None, *, smoke: bool = False
) -> pd.DataFrame:
    """Race every method in an edition, write the tables and print the main one, which comes back.

    out      the folder of the tables; the pages' tables follow where it is data/measured
    smoke    nothing is kept or written
    """
    runtimes = ("int8",) if edition == "int8" else ("reference", "fast")
    ladders = {name: load_ladder(device="cpu", runtime=name) for name in runtimes}
    ladders[runtimes[-1]] = with_int8_drafts(ladders[runtimes[-1]])
    name = machine_name()
    keep = None if smoke else cache_folder() / "race"
    found = list(benchmark(ladders, plan, lambda line: print(line, flush=True), keep))
    timings = [timing for own, *_ in found for timing in own]
    chosen = {
        (own[0].sampler.temperature, own[0].sampler.top_k or 0): lineup.chosen
        for own, lineup, _ in found
    }
    versions = f"python {platform.python_version()}, torch {torch.__version__}"
    versions += f", transformers {transformers.__version__}"
    where = {"machine": name, "threads": torch.get_num_threads(), "versions": versions}
    raced = prompts_in_turn("held-out", max(plan.prompts), plan.source)
    domains = {prompt.name: prompt.domain for prompt in raced}
    table = without_few(ratio_table(timings, chosen, domains).assign(edition=edition, **where))
    print(table[SHOWN].round(2).to_string(index=False))
    if smoke or out is None:
        print("nothing was kept")
        return table
    per_prompt = race_rows(timings)
    per_prompt["least_seconds"] = per_prompt.seconds
    tables = (table, per_prompt, pd.concat([own for *_, own in found]))
    for (place, columns), one in zip(race_files(out, name).items(), tables, strict=True):
        write_table(place, one.assign(edition=edition), columns)
    if out == MEASURED:
        for mark, page, shown in shown_races(edition):
            replace_marked(mark, speeds(shown), page)
    print(f"written to {out}")
    return table


def check_places(edition: str, out: Path) -> None:
    """Raise ValueError if a file that `race_all` writes cannot be written."""
    pages = [page for page, _ in MARKS[edition].values()] if out == MEASURED else []
    for place in (*race_files(out, machine_name()), *pages):
        check_output(place)
