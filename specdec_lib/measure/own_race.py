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
from specdec_lib.measure.quiet import SPARE
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

SPEED = {
    "ms_per_token": Ratio("seconds", "timed_tokens", times=1000),
    "speed_up": Ratio("timed_tokens", "seconds", relative=True),
}


def race_own(
    named: str, edition: str, plan: BenchPlan, *, as_ours: bool
) -> tuple[pd.DataFrame, Record]:
    """Race the draft of this name under both samplers of the record table: a row per prompt and
    contender, and the draft's record, which is exact if every text of it is plain decoding's own.

    edition    of the target, "exact" or "int8"; drafts of the ladder are in int8
    as_ours    on as many prompts as our records stand on, not on the plan's

    Raises ValueError, before anything is timed, if the name stands for no draft.
    """
    if as_ours:
        count = prompts_of_record(edition)
        plan = replace(plan, prompts=(count, count))
    own = find_own(named)
    ladder = racing_ladder(edition)
    lineups = [_lineup(own, ladder, sampler, edition) for sampler in SAMPLERS]
    counts = plan.prompts[: len(SAMPLERS)]
    trials = []
    for settings, count in zip(lineups, counts, strict=True):
        trials += _raced(ladder, settings, plan, count)
    table = with_sampling(race_rows(trials))
    mine = table[table.method == named]
    record = Record(
        machine=machine_name(),
        target=EXACT.get(edition, edition),
        draft=f"`{named}`",
        prompts=f"{mine.groupby('sampling').prompt.nunique().min()} {plan.source or 'embedded'}",
        milliseconds=milliseconds_of(mine),
        exact=bool(mine.same.all()),
        date=time.strftime("%Y-%m-%d"),
    )
    return table, record


def race_in_words(table: pd.DataFrame, named: str) -> str:
    """What every contender took, by sampler, and how busy the machine was."""
    parts = []
    for sampling, rows in table.groupby("sampling", sort=False):
        parts.append(f"\n{sampling}, {rows.prompt.nunique()} prompts:")
        parts += [_speeds(rows).to_string(index=False), _beside_ours(rows, named)]
    others = table.cores.mean() - torch.get_num_threads()
    if others > SPARE:
        parts.append(
            f"other programs kept {others:.1f} cores busy: run it again where nothing else runs"
        )
    return "\n".join(parts)


def why_no_record(plan: BenchPlan, *, as_ours: bool) -> str:
    """Why a race gives no row of the record table; "" if it gives one."""
    usual = BenchPlan()
    if not as_ours:
        return "it stands on other numbers of prompts than ours"
    if plan.source is not None:
        return "its prompts are others"
    if (plan.tokens, plan.seed) != (usual.tokens, usual.seed):
        return f"{usual.tokens} tokens and seed {usual.seed} are asked for"
    return ""


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
    ours = chosen_settings(idea_settings(ladder, sampler, stored.model.iloc[0]), wanted)
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
