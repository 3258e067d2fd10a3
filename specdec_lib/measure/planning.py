"""Forecasts: what trials of drafts would take by the clock, priced by measured passes; and the
policy that takes, in every situation, the draft that is worth most.

What the target's own choice of a token costs is left out: the same for every method, and at
temperatures above 0 up to some milliseconds a token.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from specdec_lib.core.chance import Sampler
from specdec_lib.core.protocols import Draft
from specdec_lib.drafts.combined import SITUATIONS, Planned
from specdec_lib.measure.intervals import bootstrap, named_interval
from specdec_lib.measure.latency.passes import ROWS, curves, pass_tables, time_passes
from specdec_lib.measure.latency.speeds import fit_overheads
from specdec_lib.measure.race.contenders import AUTOREGRESSIVE
from specdec_lib.measure.race.families import ON_TREES, OURS
from specdec_lib.measure.sweep.kept import Kept
from specdec_lib.measure.trials import Named, Text, settings, try_settings, whole
from specdec_lib.theory import Overhead, PassTable, Tally, Work, best_policy, smoothed
from specdec_lib.workload import Ladder

BUILT_ON = 3  # trees that staged drafts and tails are built on: those with the best forecasts
FIRST = 2  # texts that these are chosen on
REPEATS = 9  # of every timed pass
PLANNED = "planned"
POLICY: Named = (PLANNED, "policy")


@dataclass(frozen=True)
class Prices:
    """Seconds of passes by model, and seconds outside the models by method."""

    passes: Mapping[str, PassTable]
    outside: Mapping[str, Overhead]

    def seconds(self, method: str, work: Work) -> float:
        """Seconds of the work of a method."""
        return work.seconds(self.passes, self.outside[method])


class Tried(NamedTuple):
    """The trials of some drafts, these by method and setting, and prices."""

    trials: pd.DataFrame
    drafts: dict[Named, Draft]
    prices: Prices


def timed_passes(ladder: Ladder, texts: Sequence[Text], keep: Path | None) -> dict[str, PassTable]:
    """Seconds of the target's `score` and of the drafts' passes, after half as many tokens as the
    shortest text has and as many as the longest.

    Raises ValueError if a model has too few positions for that.
    """
    lengths = [len(text.prompt) + len(text.tokens) for _, text in texts]
    most = ladder.max_positions - len(ROWS) - max(ROWS)
    contexts = sorted({max(1, min(most, length)) for length in (min(lengths) // 2, max(lengths))})

    def measure() -> list[dict[str, object]]:
        timed = time_passes(ladder.models, rows=ROWS, contexts=contexts, repeats=REPEATS)
        return curves(timed).to_dict("records")

    table = pd.DataFrame(Kept(keep).rows(texts[0][0], measure))
    target = pass_tables(table, column="seconds")[ladder.target.name]
    return pass_tables(table) | {ladder.target.name: target}


def forecasts(
    trials: pd.DataFrame, prices: Prices, *, beside: str = AUTOREGRESSIVE
) -> pd.DataFrame:
    """A row per setting, the fastest first: method, setting, prompts, tokens_per_round,
    ms_per_token, and speed_up over a method of one setting, with its interval over prompts.
    """
    by = trials.groupby(["method", "setting", "prompt"], sort=False)
    works = by.work.agg(lambda its: reduce(add, its)).reset_index()
    works["seconds"] = [
        prices.seconds(method, work) for method, work in zip(works.method, works.work, strict=True)
    ]
    works["tokens"] = [work.tokens for work in works.work]
    alone = works[works.method == beside].set_index("prompt")
    rows = []
    for (method, setting), own in works.groupby(["method", "setting"], sort=False):
        base = alone.loc[own.prompt]
        gain = bootstrap(base.seconds, base.tokens, own.seconds, own.tokens)
        row = {"method": method, "setting": setting, "prompts": len(own)}
        row["tokens_per_round"] = own.tokens.sum() / sum(work.rounds for work in own.work)
        row["ms_per_token"] = 1000 * own.seconds.sum() / own.tokens.sum()
        rows.append(row | named_interval("speed_up", gain))
    return pd.DataFrame(rows).sort_values("ms_per_token", kind="stable", ignore_index=True)


def follow_policy(
    trials: pd.DataFrame, prices: Prices, tried: Mapping[Named, Draft]
) -> tuple[dict[int, Named], Planned]:
    """The best policy over the tried settings, by situation, and the draft that follows it; plain
    decoding and the best setting alone stand beside, for where the text proves otherwise.
    """
    tallies = {name: [Tally(0.0, 0.0, 0.0) for _ in SITUATIONS] for name in tried}
    for (method, setting, place), own in trials.groupby(["method", "setting", "situation"]):
        work = whole(own)
        tally = Tally(work.rounds, work.tokens, prices.seconds(method, work))
        tallies[method, setting][place] = tally
    rounds = [sum(its[place].rounds for its in tallies.values()) for place in SITUATIONS]
    means = {name: smoothed(its) for name, its in tallies.items()}
    policy = best_policy(means, [count / sum(rounds) for count in rounds])
    fastest = forecasts(trials, prices).iloc[0]
    plain = next(name for name in tried if name[0] == AUTOREGRESSIVE)
    parts = dict.fromkeys((*policy.choice, (fastest.method, fastest.setting), plain))
    columns = (
        tuple(tuple(getattr(one, column) for one in means[name]) for name in parts)
        for column in ("tokens", "seconds")
    )
    planned = Planned(tuple(tried[name] for name in parts), *columns, policy.price)
    return dict(zip(SITUATIONS, policy.choice, strict=True)), planned


def plan_settings(
    ladder: Ladder,
    sampler: Sampler,
    texts: Sequence[Text],
    passes: Mapping[str, PassTable],
    *,
    most: int,
    keep: Path | None = None,
) -> tuple[dict[int, Named], Tried]:
    """Plain decoding and at most so many settings of every method, on these texts; the best policy
    over them, and the planned draft that follows it, tried as the last.
    """
    known = [method for method in OURS if method not in ON_TREES]
    first = settings(ladder, sampler, (AUTOREGRESSIVE, *known), most, ())
    trials = try_settings(ladder, sampler, texts, first, keep and keep / "first")
    prices = Prices(passes, fit_overheads(trials))
    few = trials[trials.prompt.isin(trials.prompt.unique()[:FIRST])]
    ranked = forecasts(few[few.method.isin((AUTOREGRESSIVE, "tree"))], prices)
    trees = [*ranked.setting[ranked.method == "tree"][:BUILT_ON]]
    rest = settings(ladder, sampler, ON_TREES, most, trees)
    more = try_settings(ladder, sampler, texts, rest, keep and keep / "rest")
    fixed = pd.concat([trials, more], ignore_index=True)
    policy, draft = follow_policy(fixed, Prices(passes, fit_overheads(fixed)), first | rest)
    own = try_settings(ladder, sampler, texts, {POLICY: draft}, keep and keep / "policy")
    every = pd.concat([fixed, own], ignore_index=True)
    drafts = first | rest | {POLICY: draft}
    return policy, Tried(every, drafts, Prices(passes, fit_overheads(every)))
