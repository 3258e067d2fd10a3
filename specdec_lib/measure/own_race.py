"""The race of a draft of somebody's own: beside plain decoding and our fastest methods, prompt by
prompt on the same texts, and a row for the record table.
"""

import time
from collections.abc import Iterator
from dataclasses import replace

import pandas as pd
import torch
from tqdm.auto import tqdm

from specdec_lib.core.chance import Sampler
from specdec_lib.measure.contenders import our_contenders
from specdec_lib.measure.idea_tables import EXACT
from specdec_lib.measure.ideas import ideas_file
from specdec_lib.measure.machine import machine_name
from specdec_lib.measure.own_draft import OwnDraft, find_own
from specdec_lib.measure.race_table import RACED, race_rows
from specdec_lib.measure.racing import race_prompts
from specdec_lib.measure.ratios import Ratio, summarise, with_interval, with_sampling
from specdec_lib.measure.record_table import SAMPLERS, Record, fastest_methods, milliseconds_of
from specdec_lib.measure.settings.ideas import AUTOREGRESSIVE, chosen_settings, idea_settings
from specdec_lib.measure.settings.ladder_drafts import racing_ladder
from specdec_lib.measure.settings.setting import Setting
from specdec_lib.measure.trial import Trial
from specdec_lib.measure.tuned_methods import BenchPlan, prompts_in_turn
from specdec_lib.workload import Ladder

MODEL = "middle"  # which drafts in our methods, as in the race of ideas
IDLE = 0.25  # cores that others may keep busy before a line says so
SPEED = {
    "ms_per_token": Ratio("seconds", "timed_tokens", times=1000),
    "speed_up": Ratio("timed_tokens", "seconds", relative=True),
}


def race_own(named: str, edition: str, plan: BenchPlan) -> Record:
    """Race the draft of this name under both samplers of the record table, print what every
    contender took, and give its row; it is exact if every text of it is plain decoding's own.

    edition    of the target, "exact" or "int8"; drafts of the ladder are in int8

    Raises ValueError, before anything is timed, if the name stands for no draft.
    """
    own = find_own(named)
    ladder = racing_ladder(edition)
    lineups = {sampler: _lineup(own, ladder, sampler, edition) for sampler in SAMPLERS}
    trials = [
        trial
        for (sampler, settings), count in zip(lineups.items(), plan.prompts, strict=False)
        for trial in _raced(ladder, settings, plan, count)
    ]
    table = with_sampling(race_rows(trials))
    for sampling, rows in table.groupby("sampling", sort=False):
        print(f"\n{sampling}, {rows.prompt.nunique()} prompts:")
        print(_speeds(rows).to_string(index=False))
        print(_beside_ours(rows, named))
    others = table.cores.mean() - torch.get_num_threads()
    if others > IDLE:
        print(f"other programs kept {others:.1f} cores busy: run it again where nothing else runs")
    mine = table[table.method == named]
    return Record(
        machine=machine_name(),
        target=EXACT.get(edition, edition),
        draft=f"`{named}`",
        prompts=f"{mine.prompt.nunique()} {plan.source or 'embedded'}",
        milliseconds=milliseconds_of(mine),
        exact=bool(mine.same.all()),
        date=time.strftime("%Y-%m-%d"),
    )


def print_record(named: str, edition: str, plan: BenchPlan, *, as_ours: bool) -> int:
    """Race a draft and print its row of the record table last; the exit status comes back, 1 if a
    text of it is not the target's own.

    as_ours    on as many prompts as our records stand on, not on the plan's
    """
    if as_ours:
        count = prompts_of_record(edition)
        plan = replace(plan, prompts=(count, count))
    record = race_own(named, edition, plan)
    print(f"\n{record.row()}")
    return int(not record.exact)


def prompts_of_record(edition: str) -> int:
    """Prompts of each domain that our records of the README's machine stand on."""
    rows = _race_of_ideas(edition)
    return int(rows.groupby("domain").prompt.nunique().min())


def _race_of_ideas(edition: str) -> pd.DataFrame:
    stored = pd.read_csv(ideas_file(RACED))
    return stored[stored.edition == edition]


def _lineup(own: OwnDraft, ladder: Ladder, sampler: Sampler, edition: str) -> list[Setting]:
    """Plain decoding, our methods that are fastest under some sampler at the settings of the stored
    race, and the draft.
    """
    draft = own.draft(ladder, sampler)
    stored = _race_of_ideas(edition)
    rows = stored[stored.temperature == sampler.temperature]
    names = dict(zip(rows.method, rows.setting, strict=True))
    wanted = {method: names[method] for method in (AUTOREGRESSIVE, *fastest_methods(stored))}
    ours = chosen_settings(idea_settings(ladder, sampler, MODEL), wanted)
    return [*ours, Setting(own.named, draft, sampler, method=own.named)]


def _raced(ladder: Ladder, settings: list[Setting], plan: BenchPlan, count: int) -> Iterator[Trial]:
    """The trials on so many held-out prompts of each domain."""
    racing = our_contenders(ladder.target, settings, ladder.target.runtime)
    prompts = prompts_in_turn("held-out", count, plan.source)
    asked = {"tokens": plan.tokens, "seed": plan.seed, "strict": False}
    for trials in race_prompts(racing, ladder, tqdm(prompts, "prompts"), **asked):
        yield from trials


def _speeds(rows: pd.DataFrame) -> pd.DataFrame:
    """Per method milliseconds per token, speed ÷ plain decoding's, and whether it was exact."""
    plain = {"method": AUTOREGRESSIVE}
    found = summarise(rows, ["sampling", "method"], SPEED, baseline=plain, within=["sampling"])
    same = rows.groupby("method").same.all()
    found["exact"] = found.method.map(same).map({True: "yes", False: "no"})
    return found.drop(columns=["sampling", "prompts"]).round(2)


def _beside_ours(rows: pd.DataFrame, named: str) -> str:
    """The draft's speed ÷ that of our fastest method in this very run, in a line."""
    ours = rows[~rows.method.isin([AUTOREGRESSIVE, named])]
    sums = ours.groupby("method")[["seconds", "timed_tokens"]].sum()
    best = (sums.seconds / sums.timed_tokens).idxmin()
    base = {"method": best}
    found = summarise(rows, ["sampling", "method"], SPEED, baseline=base, within=["sampling"])
    columns = ["speed_up", "speed_up_low", "speed_up_high"]
    [ends] = found.loc[found.method == named, columns].to_numpy()
    return f"{named} ÷ ours, {best}: {with_interval(*ends)}"
