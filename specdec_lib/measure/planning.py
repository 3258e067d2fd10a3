"""Which draft to take: drafts run along the target's own text, their rounds are counted and priced
by measured passes, and a policy takes, in every situation, the draft that is worth most.

What the target's own choice of a token costs is left out: the same for every method, and at
temperatures above 0 up to some milliseconds a token.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from operator import add
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from tqdm.auto import tqdm

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import Round
from specdec_lib.core.protocols import Draft
from specdec_lib.drafts.planned import SITUATIONS, Planned, situation
from specdec_lib.measure.intervals import bootstrap, named_interval
from specdec_lib.measure.latency.passes import ROWS, curves, pass_tables, time_passes
from specdec_lib.measure.latency.speeds import Observation, fit_overhead
from specdec_lib.measure.own_text import OwnText, replay_draft, work_of
from specdec_lib.measure.race.benchmark import BUILT_ON, spread
from specdec_lib.measure.race.contenders import AUTOREGRESSIVE
from specdec_lib.measure.race.families import ON_TREES, OURS, drafts
from specdec_lib.measure.race.harness import WARM_UP, TargetText, target_texts
from specdec_lib.measure.sweep.identity import fingerprint
from specdec_lib.measure.sweep.kept import Kept, Row
from specdec_lib.theory import PassTable, Tally, Work, best_policy, smoothed
from specdec_lib.workload import Ladder, Prompt

Named = tuple[str, str]  # method and setting
Drafts = Mapping[Named, Draft]
SETTING = ["method", "setting"]
COUNTS = ["tokens", "rounds", "seconds"]
REPEATS = 9  # of every timed pass
PLANNED = "planned"
POLICY: Named = (PLANNED, "policy")


class Tried(NamedTuple):
    """The trials of some drafts, themselves, and the price of passes."""

    trials: pd.DataFrame
    drafts: dict[Named, Draft]
    passes: Mapping[str, PassTable]


def timed_passes(
    ladder: Ladder, texts: Sequence[TargetText], keep: Path | None
) -> dict[str, PassTable]:
    """Seconds of the target's `score` and of the drafts' passes, after half as many tokens as the
    shortest text has and as many as the longest.
    """
    lengths = [len(text.prompt) + len(text.tokens) for text in texts]
    most = ladder.max_positions - len(ROWS) - max(ROWS)
    contexts = sorted({max(1, min(most, length)) for length in (min(lengths) // 2, max(lengths))})

    def measure() -> list[Row]:
        timed = time_passes(ladder.models, rows=ROWS, contexts=contexts, repeats=REPEATS)
        return curves(timed).to_dict("records")

    table = pd.DataFrame(Kept(keep).rows(texts[0].asked, measure))
    target = pass_tables(table, column="seconds")[ladder.target.name]
    return pass_tables(table) | {ladder.target.name: target}


def settings(
    ladder: Ladder, sampler: Sampler, methods: Sequence[str], most: int, built_on: Sequence[str]
) -> dict[Named, Draft]:
    """At most so many settings of each method, spread over its grid."""
    found: dict[Named, Draft] = {}
    for method in methods:
        grid = drafts(ladder, sampler, method, built_on)
        found |= {(method, name): grid[name] for name in spread([*grid], most)}
    return found


def trial_rows(ladder: Ladder, sampler: Sampler, text: TargetText, tried: Drafts) -> list[Row]:
    """The rounds of each draft along a text, a row per draft and situation in which some began:
    method, setting, situation, tokens, rounds, guesses, passes (model, rows, context tokens, count)
    and outside, seconds outside the models.  Raises ValueError for drafts that learn.
    """
    own, rows = OwnText.of(ladder.target, text.prompt, text.tokens, len(text.tokens)), []
    for (method, setting), draft in tried.items():
        by: dict[int, list[Round]] = {}
        context = Context.of(text.prompt)
        for one in replay_draft(own, draft, Chance(text.seed, sampler)).rounds:
            by.setdefault(situation(context), []).append(one)
            context = context.extended(one.emitted)
        for place, rounds in by.items():
            work = work_of(rounds, ladder.target.name)
            row = {"method": method, "setting": setting, "situation": place}
            row |= {name: getattr(work, name) for name in ("tokens", "rounds", "guesses")}
            row["passes"] = [[*pass_, count] for pass_, count in work.passes.items()]
            rows.append(row | {"outside": sum(one.overhead_seconds for one in rounds)})
    return rows


def try_settings(
    ladder: Ladder,
    sampler: Sampler,
    texts: Sequence[TargetText],
    tried: Drafts,
    passes: Mapping[str, PassTable],
    keep: Path | None = None,
) -> pd.DataFrame:
    """`trial_rows` of every text, kept in a folder, with the prompt's name, `work` and `seconds`:
    passes at their price, and the rest as the clock says, fitted to all settings of a method.
    """
    found, kept, cold = [], Kept(keep and keep / fingerprint(tried)), True

    def rows(text: TargetText) -> list[Row]:
        nonlocal cold
        if cold:  # first calls take longer
            trial_rows(ladder, sampler, replace(text, tokens=text.tokens[:WARM_UP]), tried)
        cold = False
        return trial_rows(ladder, sampler, text, tried)

    for text in tqdm(texts, "texts", mininterval=1):
        for row in kept.rows(text.asked, partial(rows, text)):
            counted = {tuple(place): count for *place, count in row.pop("passes")}
            counts = (row["tokens"], row["rounds"], row["guesses"])
            work = Work(*counts, counted, ladder.target.name)
            found.append(row | {"prompt": text.asked.name, "work": work})
    trials = pd.DataFrame(found)
    for _, its in trials.groupby("method"):
        alike = [(reduce(add, one.work), one.outside.sum()) for _, one in its.groupby("setting")]
        outside = fit_overhead([Observation(*one) for one in alike])
        trials.loc[its.index, "seconds"] = [work.seconds(passes, outside) for work in its.work]
    return trials


def forecasts(trials: pd.DataFrame, *, beside: str = AUTOREGRESSIVE) -> pd.DataFrame:
    """A row per setting, the fastest first: method, setting, prompts, tokens_per_round,
    ms_per_token, and speed_up over a method of one setting, with its interval over prompts.
    """
    sums = trials.groupby([*SETTING, "prompt"], sort=False)[COUNTS].sum().reset_index()
    alone, rows = sums[sums.method == beside].set_index("prompt"), []
    for name, own in sums.groupby(SETTING, sort=False):
        base, whole = alone.loc[own.prompt], own[COUNTS].sum()
        gain = bootstrap(base.seconds, base.tokens, own.seconds, own.tokens)
        row = dict(zip(SETTING, name, strict=True)) | {"prompts": len(own)}
        row["tokens_per_round"] = whole.tokens / whole["rounds"]
        row["ms_per_token"] = 1000 * whole.seconds / whole.tokens
        rows.append(row | named_interval("speed_up", gain))
    return pd.DataFrame(rows).sort_values("ms_per_token", kind="stable", ignore_index=True)


def follow_policy(trials: pd.DataFrame, tried: Drafts) -> Planned:
    """The draft that follows the best policy over what was tried; plain decoding and the best
    setting alone stand beside, for where the text proves otherwise.
    """
    sums = trials.groupby([*SETTING, "situation"])[["rounds", "tokens", "seconds"]].sum()
    every = pd.MultiIndex.from_tuples([(*name, place) for name in tried for place in SITUATIONS])
    sums = sums.reindex(every, fill_value=0.0)
    means = {
        name: smoothed([Tally(*sums.loc[(*name, place)]) for place in SITUATIONS]) for name in tried
    }
    rounds = sums["rounds"].groupby(level=2).sum()
    policy = best_policy(means, (rounds / rounds.sum()).tolist())
    fastest = forecasts(trials).iloc[0]
    plain = next(name for name in tried if name[0] == AUTOREGRESSIVE)
    parts = dict.fromkeys((*policy.choice, (fastest.method, fastest.setting), plain))
    columns = (
        tuple(tuple(getattr(one, column) for one in means[name]) for name in parts)
        for column in ("tokens", "seconds")
    )
    return Planned(tuple(tried[name] for name in parts), *columns, policy.price)


def plan_settings(
    ladder: Ladder,
    sampler: Sampler,
    prompts: Sequence[Prompt],
    limits: Mapping[str, int],
    *,
    most: int,
    keep: Path,
) -> Tried:
    """Plain decoding, at most so many settings of every method, and the planned draft over all of
    them, on what the target writes after these prompts within limits (tokens and seed).
    """
    texts = [*target_texts(ladder, prompts, sampler, **limits)]
    passes = timed_passes(ladder, texts, keep / "passes")

    def more(own: Drafts, before: pd.DataFrame | None = None) -> pd.DataFrame:
        trials = try_settings(ladder, sampler, texts, own, passes, keep)
        return pd.concat([before, trials], ignore_index=True)

    alone = (AUTOREGRESSIVE, *(method for method in OURS if method not in ON_TREES))
    tried = settings(ladder, sampler, alone, most, ())
    trials = more(tried)
    ranked = forecasts(trials)
    trees = [*ranked.setting[ranked.method == "tree"][:BUILT_ON]]
    built = settings(ladder, sampler, ON_TREES, most, trees)
    trials, tried = more(built, trials), tried | built
    planned = {POLICY: follow_policy(trials, tried)}
    return Tried(more(planned, trials), tried | planned, passes)
