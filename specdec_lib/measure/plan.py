"""The fastest setting for a pair of models on this machine and some prompts, and whether
speculation pays at all.

Passes are timed, every method is counted along what the target writes on development prompts, and
the best forecast, the best of another method, and a draft without a model race plain decoding on
held-out prompts.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import pandas as pd
from tqdm.auto import tqdm

from specdec_lib.core.chance import Sampler
from specdec_lib.core.files import cache_folder, write_whole
from specdec_lib.core.kinds import Within, checked
from specdec_lib.core.protocols import Draft
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.measure.cluster import Cluster
from specdec_lib.measure.comparing import notes_on
from specdec_lib.measure.contenders import our_contenders
from specdec_lib.measure.fingerprints import fingerprint
from specdec_lib.measure.machine import machine_name
from specdec_lib.measure.planning import Named, Tried, forecasts, plan_settings, timed_passes
from specdec_lib.measure.race_table import over_plain, ratio_table
from specdec_lib.measure.racing import race_prompts
from specdec_lib.measure.ratios import LEAST_FOR_WORDS, with_interval, without_few
from specdec_lib.measure.settings.exported import export_setting
from specdec_lib.measure.settings.learning import without_network
from specdec_lib.measure.settings.names import AUTOREGRESSIVE, TOKEN_BY_TOKEN
from specdec_lib.measure.settings.setting import Setting
from specdec_lib.measure.text_writing import write_texts
from specdec_lib.measure.trial import whole
from specdec_lib.measure.verdict import HARDLY
from specdec_lib.theory import Margin, PassTable, margin
from specdec_lib.workload import Ladder, Prompt

TOKENS = 64  # new tokens per prompt, at most, as usual
SETTINGS = 6  # per method, as usual
PLAIN: Named = (AUTOREGRESSIVE, TOKEN_BY_TOKEN)
FREE: Named = ("copies and recycled tokens", "no draft model")  # it learns: no replay foretells it
ADVICE = {
    "yes": "Speculate",
    "no": "Do not speculate",
    "unclear": "No clear gain, so plain decoding is simpler",
}


@dataclass(frozen=True)
class Plan:
    """What to decode with, and why.

    setting      the one with the best forecast, or plain decoding unless `pays` is "yes"
    pays         "yes", "no" or "unclear": whether it beats plain decoding on held-out prompts
    forecasts    `measure.planning.forecasts` of every setting on development prompts
    policy       per situation (`drafts.planned.situation`) the setting that is worth most
    held_out     rows of `ratio_table` over plain decoding, which is the first; the second has the
                 best forecast, the third the best of another method; the last is FREE. Empty where
                 the prices are another machine's: nothing can be clocked on it here
    margin       how sensitive the forecast gain of the second is
    """

    setting: Setting
    pays: str
    forecasts: pd.DataFrame
    policy: Mapping[int, Named]
    held_out: pd.DataFrame
    margin: Margin


@checked
def make_plan(
    ladder: Ladder,
    sampler: Sampler,
    development: Sequence[Prompt],
    held_out: Sequence[Prompt],
    *,
    keep: Path | None = None,
    tokens: int = TOKENS,
    settings: Annotated[int, Within(1)] = SETTINGS,
    seed: int = 0,
    cluster: Cluster | None = None,
    prices: Mapping[str, PassTable] | None = None,
) -> Plan:
    """The plan for these models and prompts on this machine, which should do nothing else.

    development    prompts to plan on; `held_out` are those to judge on
    keep           a folder for what is finished: the same call goes on there; None keeps nothing
    tokens         new ones per prompt, at most
    settings       that are tried of each method
    cluster        the workers of a Dask client, which write and count; this machine times
    prices         seconds of passes by model on another machine, for which the plan is then: by
                   forecast alone, with the seconds outside the models that are found here

    Raises ValueError if there are fewer than two development prompts or no held-out one.
    """
    _check_prompts(ladder, development, held_out)
    limits = {"tokens": tokens, "seed": seed}
    device = machine_name(str(ladder.target.model.device))
    given = [one.text for one in development]
    folder = keep and keep / fingerprint(device, sampler, limits, settings, given, ladder)
    places = {name: folder and folder / name for name in ("texts", "passes", "held-out")}
    write = partial(write_texts, keep=places["texts"], cluster=cluster)
    texts = write(ladder, development, sampler, seed=seed, max_new_tokens=tokens)
    passes = prices or timed_passes(ladder, development, texts, places["passes"])
    policy, tried = plan_settings(
        ladder, development, texts, passes, most=settings, keep=folder, cluster=cluster
    )
    table = forecasts(tried.trials, tried.prices)
    best, raced = _to_race(table, tried.drafts)
    rows = pd.DataFrame()
    if prices is None:
        kept = places["held-out"] and places["held-out"] / fingerprint(raced)
        rows = _race(ladder, sampler, raced, held_out, tokens, seed, kept)
        pays = _pays(rows.iloc[1])
    else:
        foreseen = table[(table.method == best[0]) & (table.setting == best[1])].iloc[0]
        pays = _pays(foreseen.rename({"speed_up": "ratio", "speed_up_low": "ratio_low"}))
    setting = _advised(pays, best, raced, sampler)
    rows = rows if rows.empty else without_few(rows)
    return Plan(setting, pays, table, policy, rows, _margin(tried, best))


def _check_prompts(
    ladder: Ladder, development: Sequence[Prompt], held_out: Sequence[Prompt]
) -> None:
    """Raises ValueError for too few prompts, or one that cannot be read, before any work."""
    if len(development) < 2 or not held_out:
        raise ValueError(
            "a plan needs 2 development prompts and a held-out one, got"
            f' {len(development)} and {len(held_out)}; a line may name its "split"'
        )
    for prompt in (*development, *held_out):
        ladder.encode(prompt)


def _advised(pays: str, best: Named, raced: Mapping[Named, Draft], sampler: Sampler) -> Setting:
    """The draft to decode with."""
    if pays == "yes":
        return Setting(best[0], raced[best], sampler)
    return Setting("plain", NoDraft(), sampler)


def _to_race(table: pd.DataFrame, tried: Mapping[Named, Draft]) -> tuple[Named, dict[Named, Draft]]:
    """The guessing setting with the best forecast, and the drafts that race: plain decoding, that
    setting, the best of another method, and FREE.
    """
    guessing = table[table.method != AUTOREGRESSIVE].drop_duplicates("method")[:2]
    names = [*zip(guessing.method, guessing.setting, strict=True)]
    return names[0], {name: tried[name] for name in (PLAIN, *names)} | {FREE: without_network()}


def _race(
    ladder: Ladder,
    sampler: Sampler,
    raced: Mapping[Named, Draft],
    prompts: Sequence[Prompt],
    tokens: int,
    seed: int,
    keep: Path | None,
) -> pd.DataFrame:
    """The rows of `ratio_table` over plain decoding of these drafts on held-out prompts."""
    settings = [
        Setting(name, draft, sampler, method=method) for (method, name), draft in raced.items()
    ]
    racing = our_contenders(ladder.target, settings)
    bar = tqdm(prompts, "held-out prompts", mininterval=1)
    timings = race_prompts(racing, ladder, bar, tokens=tokens, seed=seed, folder=keep)
    return over_plain(ratio_table([one for found in timings for one in found], {}))


def _margin(tried: Tried, best: Named) -> Margin:
    trials = tried.trials.groupby(["method", "setting"])
    prices = tried.prices
    own, plain = (whole(trials.get_group(name)) for name in (best, PLAIN))
    return margin(own, plain, prices.passes, prices.outside[best[0]], prices.outside[PLAIN[0]])


def _pays(best: pd.Series) -> str:
    """Whether a row of held-out prompts is faster than plain decoding, interval and all."""
    if best.tokens_per_round <= HARDLY or best.ratio < 1:
        return "no"
    return "yes" if best.ratio_low > 1 else "unclear"


def write_plan(
    place: Path,
    ladder: Ladder,
    sampler: Sampler,
    prompts: tuple[Sequence[Prompt], Sequence[Prompt]],
    limits: Mapping[str, int],
    *,
    source: str,
    asked: str,
    cluster: Cluster | None = None,
    prices: tuple[Path, Mapping[str, PassTable]] | None = None,
) -> None:
    """Make the plan, print it, and write its setting as JSON; finished parts are kept in the cache.

    prompts    for development, and held out
    limits     `tokens`, `settings` and `seed` of `make_plan`
    source     the set or file that the prompts come from
    asked      the runtime that was asked for: where auto took the reference, a line says why
    prices     of another machine, and the file that they are from
    """
    development, held_out = prompts
    counts = f"{len(development)} development and {len(held_out)} held-out prompts"
    print(f"{ladder.target.runtime}; {counts} of {source}", flush=True)
    for note in notes_on(ladder, asked):
        print(note, flush=True)
    keep = cache_folder() / "plan"
    asked_for = (ladder, sampler, development, held_out)
    make = partial(make_plan, *asked_for, keep=keep, cluster=cluster, prices=prices and prices[1])
    plan = make(**limits)
    write_whole(place, export_setting(plan.setting).encode())
    print(plan_in_words(plan) if prices is None else forecast_in_words(plan, prices[0]))
    print(f"The setting is written to {place}; `specdec hf {place}` shows other engines'.")


def plan_in_words(plan: Plan) -> str:
    """The best forecasts, the verdict, the best of another method, and what it hangs on."""
    _, best, *others, free = (row for _, row in plan.held_out.iterrows())
    table = plan.forecasts
    foreseen = table[(table.method == best.method) & (table.setting == best.setting)].iloc[0]
    few = " Too few prompts to rely on." if best.prompts < LEAST_FOR_WORDS else ""
    lines = (
        *_best_forecasts(table),
        f"\n{ADVICE[plan.pays]}: on {best.prompts} held-out prompts {_told(best)}.",
        f"{best.ms_per_token:.2f} ms per token; the forecast was {foreseen.ms_per_token:.2f}.{few}",
        *(f"Best forecast of another method: {_told(one)}." for one in others),
        f"Without a draft model: {_told(free)}.",
        *_hangs_on(plan.margin),
    )
    return "\n".join(lines)


def forecast_in_words(plan: Plan, prices: Path) -> str:
    """The same for the machine of these prices, on which nothing was clocked."""
    table = plan.forecasts
    guessing = table[table.method != AUTOREGRESSIVE].drop_duplicates("method")
    gains = guessing[["speed_up", "speed_up_low", "speed_up_high"]].itertuples(index=False)
    told = [
        f"{one.method} ({one.setting}) would be {with_interval(*gain)} times as fast as plain"
        " decoding"
        for one, gain in zip(guessing.itertuples(), gains, strict=True)
    ]
    lines = (
        *_best_forecasts(table),
        f"\n{ADVICE[plan.pays]}: by the prices in {prices} {told[0]}.",
        "This is a forecast, nothing was clocked; what happens outside the models is priced as it"
        " is here.",
        *(f"Best forecast of another method: {one}." for one in told[1:2]),
        *_hangs_on(plan.margin),
    )
    return "\n".join(lines)


def _best_forecasts(table: pd.DataFrame) -> tuple[str, str]:
    return (
        f"{len(table)} settings were counted on {table.prompts.max()} prompts; the best forecasts:",
        table.head(5).drop(columns="prompts").round(2).to_string(index=False),
    )


def _hangs_on(hangs: Margin) -> list[str]:
    """What a gain depends on, in lines."""
    return [
        f"On development prompts a round gives {hangs.tokens:.2f} tokens and pays from"
        f" {hangs.needed:.2f} on; by the forecast it would be {hangs.free_drafts:.2f} times as fast"
        f" as plain decoding if drafting were free, and {hangs.free_rows:.2f} times if verifying"
        " many rows took no longer than one.",
        *_break_even(hangs.dearer_drafts),
    ]


def _break_even(times: float) -> list[str]:
    """A line that says how many times as long its drafts' passes may take, if it has any."""
    if times <= 0:
        return ["It would not pay with free drafts either."]
    if math.isinf(times):
        return []
    return [f"It breaks even where its drafts' passes take {times:.2g} times as long."]


def _told(row: pd.Series) -> str:
    gain = with_interval(row.ratio, row.ratio_low, row.ratio_high)
    return f"{row.method} ({row.setting}) is {gain} times as fast as plain decoding"
