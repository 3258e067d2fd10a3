"""Which draft to take: drafts run along the target's own text, their rounds are counted and priced
by measured passes, and a policy takes, in every situation, the draft that is worth most.

Only the drafts run, so that many settings are tried in the time in which a race tries a few. What
the target's own choice of a token costs is left out: the same for every method, and at temperatures
above 0 up to some milliseconds a token.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
from specdec_lib.measure.race.harness import WARM_UP, TargetText
from specdec_lib.measure.sweep.identity import fingerprint
from specdec_lib.measure.sweep.kept import Kept, Row
from specdec_lib.theory import Overhead, PassTable, Tally, Work, best_policy, smoothed
from specdec_lib.workload import Ladder, Prompt

Named = tuple[str, str]  # method and setting
Text = tuple[Prompt, TargetText]
Drafts = Mapping[Named, Draft]
REPEATS = 9  # of every timed pass
PLANNED = "planned"
POLICY: Named = (PLANNED, "policy")


def settings(
    ladder: Ladder, sampler: Sampler, methods: Sequence[str], most: int, built_on: Sequence[str]
) -> dict[Named, Draft]:
    """At most so many settings of each method, spread over its grid."""
    found: dict[Named, Draft] = {}
    for method in methods:
        grid = drafts(ladder, sampler, method, built_on)
        found |= {(method, name): grid[name] for name in spread([*grid], most)}
    return found


def trial_rows(
    ladder: Ladder, sampler: Sampler, text: TargetText, tried: Drafts, warm_up: bool
) -> list[Row]:
    """The rounds of each draft along a text, a row per draft and situation in which some began:
    method, setting, situation, tokens, rounds, guesses, passes (model, rows, context tokens, count)
    and outside, seconds outside the drafts' passes and the target.

    warm_up    replay a few tokens before: first calls take longer

    Raises ValueError for drafts that learn.
    """
    own = OwnText.of(ladder.target, text.prompt, text.tokens, len(text.tokens))
    few = OwnText.of(ladder.target, text.prompt, text.tokens, min(WARM_UP, len(text.tokens)))
    chance, rows = Chance(text.seed, sampler), []
    for (method, setting), draft in tried.items():
        if warm_up:
            replay_draft(few, draft, chance)
        by: dict[int, list[Round]] = {}
        context = Context.of(text.prompt)
        for one in replay_draft(own, draft, chance).rounds:
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
    texts: Sequence[Text],
    tried: Drafts,
    keep: Path | None = None,
) -> pd.DataFrame:
    """`trial_rows` of every text, with the prompt's name and `work`; finished texts are kept in a
    folder.
    """
    found, kept, cold = [], Kept(keep and keep / fingerprint(tried)), True

    def run(text: TargetText) -> list[Row]:
        nonlocal cold
        rows, cold = trial_rows(ladder, sampler, text, tried, cold), False
        return rows

    for prompt, text in tqdm(texts, "texts", mininterval=1):
        for row in kept.rows(prompt, partial(run, text)):
            passes = {tuple(place): count for *place, count in row.pop("passes")}
            counts = (row["tokens"], row["rounds"], row["guesses"])
            work = Work(*counts, passes, ladder.target.name)
            found.append(row | {"prompt": prompt.name, "work": work})
    return pd.DataFrame(found)


def whole(trials: pd.DataFrame) -> Work:
    """The work of all rows together."""
    return reduce(add, trials.work)


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
    drafts: Drafts
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


def fit_outside(trials: pd.DataFrame) -> dict[str, Overhead]:
    """Per method the seconds outside the models, fitted to all its settings."""
    return {
        method: fit_overhead(
            [Observation(whole(own), own.outside.sum()) for _, own in its.groupby("setting")]
        )
        for method, its in trials.groupby("method", sort=False)
    }


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


def follow_policy(tried: Tried) -> Planned:
    """The draft that follows the best policy over what was tried; plain decoding and the best
    setting alone stand beside, for where the text proves otherwise.
    """
    tallies = {name: [Tally(0.0, 0.0, 0.0) for _ in SITUATIONS] for name in tried.drafts}
    for (method, setting, place), own in tried.trials.groupby(["method", "setting", "situation"]):
        work = whole(own)
        tally = Tally(work.rounds, work.tokens, tried.prices.seconds(method, work))
        tallies[method, setting][place] = tally
    rounds = [sum(its[place].rounds for its in tallies.values()) for place in SITUATIONS]
    means = {name: smoothed(its) for name, its in tallies.items()}
    policy = best_policy(means, [count / sum(rounds) for count in rounds])
    fastest = forecasts(tried.trials, tried.prices).iloc[0]
    plain = next(name for name in tried.drafts if name[0] == AUTOREGRESSIVE)
    parts = dict.fromkeys((*policy.choice, (fastest.method, fastest.setting), plain))
    columns = (
        tuple(tuple(getattr(one, column) for one in means[name]) for name in parts)
        for column in ("tokens", "seconds")
    )
    return Planned(tuple(tried.drafts[name] for name in parts), *columns, policy.price)


def plan_settings(
    ladder: Ladder,
    sampler: Sampler,
    texts: Sequence[Text],
    passes: Mapping[str, PassTable],
    *,
    most: int,
    keep: Path | None = None,
) -> Tried:
    """Plain decoding, at most so many settings of every method, and the planned draft over all of
    them, on these texts.
    """

    def more(trials: pd.DataFrame | None, known: Drafts, drafts: Drafts) -> Tried:
        own = try_settings(ladder, sampler, texts, drafts, keep)
        both = pd.concat([trials, own], ignore_index=True)
        return Tried(both, {**known, **drafts}, Prices(passes, fit_outside(both)))

    alone = [method for method in OURS if method not in ON_TREES]
    first = more(None, {}, settings(ladder, sampler, (AUTOREGRESSIVE, *alone), most, ()))
    ranked = forecasts(first.trials, first.prices)
    trees = [*ranked.setting[ranked.method == "tree"][:BUILT_ON]]
    fixed = more(*first[:2], settings(ladder, sampler, ON_TREES, most, trees))
    return more(*fixed[:2], {POLICY: follow_policy(fixed)})
