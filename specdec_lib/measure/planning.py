"""Forecasts: rounds of drafts along the target's text, priced by measured passes; and the policy
that takes, in every situation, the draft that is worth most.

Only the drafts run, so that many settings are tried in the time in which a race tries a few. What
the target's own choice of a token costs is left out: the same for every method, and at temperatures
above 0 up to some milliseconds a token.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple, cast

import pandas as pd
from tqdm.auto import tqdm

from specdec_lib.core.chance import Sampler
from specdec_lib.core.decode import Round
from specdec_lib.core.protocols import Draft
from specdec_lib.drafts.planned import SITUATIONS, Planned, situation
from specdec_lib.measure.cluster import Cluster, spread_rows
from specdec_lib.measure.fingerprints import fingerprint
from specdec_lib.measure.latency.passes import ROWS, curves, pass_tables, time_passes
from specdec_lib.measure.latency.predict import fit_overheads
from specdec_lib.measure.ratios import Ratio, summarise
from specdec_lib.measure.recorded_target import RecordedTarget, replay_draft
from specdec_lib.measure.row_cache import Row, RowCache, key_of, records
from specdec_lib.measure.settings.bench import ON_TREES, OURS, bench_settings
from specdec_lib.measure.settings.exported import export_setting, import_setting
from specdec_lib.measure.settings.names import AUTOREGRESSIVE
from specdec_lib.measure.settings.setting import Setting
from specdec_lib.measure.target_text import TargetText, find_text
from specdec_lib.measure.trial import Trial, counted_trial, whole, work_table
from specdec_lib.measure.tuned_methods import spread
from specdec_lib.theory import Overhead, PassTable, Tally, best_policy, smoothed
from specdec_lib.workload import Ladder, Prompt

BUILT_ON = 3  # trees that staged drafts and tails are built on: those with the best forecasts
FIRST = 2  # prompts that these are chosen on
REPEATS = 9  # of every timed pass
PLANNED = "planned"
Named = tuple[str, str]  # method and setting


class Prices(NamedTuple):
    """Seconds of passes by model, and seconds outside the models by method."""

    passes: Mapping[str, PassTable]
    outside: Mapping[str, Overhead]


class Tried(NamedTuple):
    """The trials of some drafts, these by method and setting, and prices."""

    trials: pd.DataFrame
    drafts: dict[Named, Draft]
    prices: Prices


def timed_passes(
    ladder: Ladder, prompts: Sequence[Prompt], texts: Sequence[TargetText], keep: Path | None
) -> dict[str, PassTable]:
    """Seconds of the target's `score` and of the drafts' passes, after half as many tokens as the
    shortest text has and as many as the longest.  Raises ValueError if a model has no room for it.
    """
    lengths = [len(ladder.encode(one)) + len(find_text(texts, one).tokens) for one in prompts]
    most = ladder.max_positions - len(ROWS) - max(ROWS)
    contexts = sorted({max(1, min(most, length)) for length in (min(lengths) // 2, max(lengths))})

    def measure() -> list[Row]:
        timed = time_passes(ladder.models, rows=ROWS, contexts=contexts, repeats=REPEATS)
        return records(curves(timed))

    table = pd.DataFrame(RowCache(keep).rows("passes", measure))
    target = pass_tables(table, column="seconds")[ladder.target.name]
    return pass_tables(table) | {ladder.target.name: target}


def settings(
    ladder: Ladder, sampler: Sampler, methods: Sequence[str], most: int, built_on: Sequence[str]
) -> dict[Named, Draft]:
    """At most `most` settings of each method, spread over its grid."""
    found: dict[Named, Draft] = {}
    for method in methods:
        grid = bench_settings(ladder, sampler, method, built_on)
        found |= {(method, one.name): one.draft for one in spread(grid, most)}
    return found


def counted_trials(
    ladder: Ladder, prompt: Prompt, texts: Sequence[TargetText], tried: Mapping[Named, Draft]
) -> list[Trial]:
    """The rounds of each draft along a text, with what they did by the situation in which they
    began.  Raises ValueError for drafts that learn.
    """
    text = find_text(texts, prompt)
    given = ladder.encode(prompt)
    recorded = RecordedTarget.of(ladder.target, given, text.tokens, len(text.tokens))
    found = []
    for (method, setting), draft in tried.items():
        context = recorded.context
        by_situation = defaultdict[int, list[Round]](list)
        for one in replay_draft(recorded, draft, text.chance).rounds:
            by_situation[situation(context)].append(one)
            context = context.extended(one.emitted)
        named = (method, setting)
        trial = counted_trial(named, text.sampler, prompt, by_situation, ladder.target.name)
        found.append(trial)
    return found


def try_settings(
    ladder: Ladder,
    prompts: Sequence[Prompt],
    texts: Sequence[TargetText],
    tried: Mapping[Named, Draft],
    keep: Path | None = None,
    cluster: Cluster | None = None,
) -> pd.DataFrame:
    """`work_table` of `counted_trials` of every prompt; finished prompts are kept in a folder.

    cluster    the workers of a Dask client, which count all but the first `FIRST` prompts: seconds
               outside the models are those of this machine alone
    """
    kept = RowCache(keep and keep / fingerprint(tried))
    here = prompts if cluster is None else prompts[:FIRST]
    warm = False
    found: list[Row] = []

    def run(prompt: Prompt) -> list[Row]:
        nonlocal warm
        if not warm:  # first calls take longer
            counted_trials(ladder, prompt, texts, tried)
            warm = True
        return [trial.row() for trial in counted_trials(ladder, prompt, texts, tried)]

    for prompt in tqdm(here, "texts", mininterval=1):
        found += kept.rows(key_of(prompt), partial(run, prompt))
    if cluster is not None:
        sampler = texts[0].sampler
        sent = [
            (*named, export_setting(Setting("sent", draft, sampler)))
            for named, draft in tried.items()
        ]
        found += spread_rows(
            counted_rows,
            [(key_of(prompt), (prompt, find_text(texts, prompt))) for prompt in prompts[FIRST:]],
            ladder,
            {"sent": sent},
            RowCache(kept.folder and kept.folder / "counts"),
            cluster=cluster,
            label="texts on workers",
        )
    return work_table(map(Trial.from_row, found))


def counted_rows(
    ladder: Ladder, item: tuple[Prompt, TargetText], *, sent: Sequence[tuple[str, str, str]]
) -> list[Row]:
    """`counted_trials` of one prompt, without seconds.

    sent    methods, settings and, as `export_setting` writes it, each draft
    """
    prompt, text = item
    tried = {
        (method, setting): import_setting(written, ladder).draft
        for method, setting, written in sent
    }
    trials = counted_trials(ladder, prompt, [text], tried)
    return [replace(trial, outside_seconds={}).row() for trial in trials]


def forecasts(
    trials: pd.DataFrame, prices: Prices, *, beside: str = AUTOREGRESSIVE
) -> pd.DataFrame:
    """A row per setting, the fastest first: method, setting, prompts, tokens_per_round,
    ms_per_token, and speed_up over a method of one setting, with its interval over prompts.
    """
    keys = ["method", "setting"]
    counts = []
    for (*key, prompt), own in trials.groupby([*keys, "prompt"], sort=False):
        work = whole(own)
        seconds = work.seconds(prices.passes, prices.outside[str(key[0])])
        counts.append((*key, prompt, work.tokens, work.rounds, seconds))
    columns = [*keys, "prompt", "tokens", "rounds", "seconds"]
    ratios = {
        "tokens_per_round": Ratio("tokens", "rounds", ends=False),
        "ms_per_token": Ratio("seconds", "tokens", times=1000, ends=False),
        "speed_up": Ratio("tokens", "seconds", relative=True),
    }
    counted = pd.DataFrame(counts, columns=columns)
    found = summarise(counted, keys, ratios, baseline={"method": beside})
    found.insert(2, "prompts", found.pop("prompts"))
    return found.sort_values("ms_per_token", kind="stable", ignore_index=True)


def follow_policy(
    trials: pd.DataFrame, prices: Prices, tried: Mapping[Named, Draft]
) -> tuple[dict[int, Named], Planned]:
    """The best policy over the tried settings, by situation, and the draft that follows it; plain
    decoding and the best setting alone stand beside, for where the text proves otherwise.
    """
    tallies = {name: [Tally(0.0, 0.0, 0.0) for _ in SITUATIONS] for name in tried}
    for key, own in trials.groupby(["method", "setting", "situation"]):
        method, setting, place = cast(tuple[str, str, int], key)
        work = whole(own)
        seconds = work.seconds(prices.passes, prices.outside[method])
        tallies[method, setting][place] = Tally(work.rounds, work.tokens, seconds)
    rounds = [sum(its[place].rounds for its in tallies.values()) for place in SITUATIONS]
    means = {name: smoothed(its) for name, its in tallies.items()}
    policy = best_policy(means, [count / sum(rounds) for count in rounds])
    fastest = forecasts(trials, prices).iloc[0]
    plain = next(name for name in tried if name[0] == AUTOREGRESSIVE)
    parts = dict.fromkeys((*policy.choice, (fastest.method, fastest.setting), plain))
    planned = Planned(
        tuple(tried[name] for name in parts),
        tuple(tuple(one.tokens for one in means[name]) for name in parts),
        tuple(tuple(one.seconds for one in means[name]) for name in parts),
        policy.price,
    )
    return dict(zip(SITUATIONS, policy.choice, strict=True)), planned


def plan_settings(
    ladder: Ladder,
    prompts: Sequence[Prompt],
    texts: Sequence[TargetText],
    passes: Mapping[str, PassTable],
    *,
    most: int,
    keep: Path | None = None,
    cluster: Cluster | None = None,
) -> tuple[dict[int, Named], Tried]:
    """Try plain decoding and at most `most` settings of every method on these prompts, and last the
    planned draft that follows the best policy over them. Returns that policy and what was tried.
    """
    known = [method for method in OURS if method not in ON_TREES]
    run = partial(try_settings, ladder, prompts, texts, keep=keep, cluster=cluster)
    first = settings(ladder, texts[0].sampler, (AUTOREGRESSIVE, *known), most, ())
    trials = run(first)
    few = trials[trials.prompt.isin(trials.prompt.unique()[:FIRST])]
    few = few[few.method.isin((AUTOREGRESSIVE, "tree"))]
    ranked = forecasts(few, Prices(passes, fit_overheads(trials)))
    trees = [*ranked.setting[ranked.method == "tree"][:BUILT_ON]]
    rest = settings(ladder, texts[0].sampler, ON_TREES, most, trees)
    tried = first | rest
    trials = pd.concat([trials, run(rest)], ignore_index=True)
    policy, draft = follow_policy(trials, Prices(passes, fit_overheads(trials)), tried)
    planned: dict[Named, Draft] = {(PLANNED, "policy"): draft}
    trials = pd.concat([trials, run(planned)], ignore_index=True)
    return policy, Tried(trials, tried | planned, Prices(passes, fit_overheads(trials)))
