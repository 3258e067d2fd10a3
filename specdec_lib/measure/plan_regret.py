"""What a plan loses against the best of all settings that were tried, and the planned draft beside
each of them.

Settings are chosen on development prompts (the plan), or on one half of the held-out prompts (the
best), and compared on the other half. Tokens and passes are counted along the target's own text;
passes are priced as they are timed here and now, and the rest as the clock says.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, replace
from itertools import chain, product
from pathlib import Path

import pandas as pd
import torch
from tqdm.auto import tqdm

from specdec_lib.core.chance import Sampler
from specdec_lib.core.files import DATA, cache_folder
from specdec_lib.measure.cluster import Cluster, LadderRecipe
from specdec_lib.measure.fingerprints import fingerprint
from specdec_lib.measure.machine import clocked_here, machine_name
from specdec_lib.measure.planning import (
    PLANNED,
    forecasts,
    plan_settings,
    timed_passes,
    try_settings,
)
from specdec_lib.measure.ratios import sampling_of
from specdec_lib.measure.settings.ladder_drafts import with_int8_drafts
from specdec_lib.measure.settings.staged import SAMPLERS
from specdec_lib.measure.target_text import TargetText
from specdec_lib.measure.text_writing import write_texts
from specdec_lib.models.fast.model import FastModel
from specdec_lib.theory import PassTable
from specdec_lib.workload import Ladder, Prompt, load_ladder

PLACE = DATA / "measured" / "regret.csv"
SPEED_UP = ["speed_up", "speed_up_low", "speed_up_high"]
# of a text, and of each method
TOKENS = 64
SETTINGS = 5
EMBEDDED = "SmolLM2-135M and its drafts"
RECIPE = LadderRecipe(device="cpu", runtime="fast", int8_drafts=True)
HALVES = ["first", "second"]  # of the held-out prompts
BEST = "best fixed, in hindsight"
COLUMNS = """pair sampling domain method setting prompts tokens_per_round forecast ms_per_token
    first second speed_up speed_up_low speed_up_high slower slower_low slower_high threads machine
    state""".split()


def measure_regret(
    given: Mapping[str, tuple[Sequence[Prompt], Sequence[Prompt]]],
    cluster: Cluster | None = None,
) -> pd.DataFrame:
    """`regret_rows` of each of `pairs`, sampler and domain.

    given      by domain its development and its held-out prompts
    cluster    the workers of a Dask client, which write and count for the embedded ladder, as
               `RECIPE` loads it; other pairs are made here
    """
    rows = []
    for name, ladder, samplers, domains, tokens in pairs([*given]):
        workers = cluster if name == EMBEDDED else None
        for sampler, domain in tqdm([*product(samplers, domains)], name):
            same = (machine_name(), sampler, given[domain], tokens, ladder)
            keep = cache_folder() / "regret" / fingerprint(*same)
            splits = given[domain]
            prompts = [*chain(*splits)]
            texts = write_texts(
                ladder,
                prompts,
                sampler,
                max_new_tokens=tokens,
                keep=keep / "texts",
                cluster=workers,
            )
            passes = timed_passes(ladder, prompts, texts, keep)
            own = regret_rows(ladder, *splits, texts, passes, keep=keep, cluster=workers)
            labels = {"sampling": sampling_of(*astuple(sampler)), "domain": domain}
            rows.append(own.assign(pair=name, **labels))
            tqdm.write(summarise_regret(rows[-1]).round(3).to_string(index=False))
    return pd.concat(rows).assign(**clocked_here())[COLUMNS]


def pairs(
    domains: Sequence[str],
) -> Iterator[tuple[str, Ladder, Sequence[Sampler], Sequence[str], int]]:
    """Name, models, samplers, domains and tokens of a text: of the embedded ladder; of its middle
    model as a target, with the draft; and of both with random weights, where every token is a round
    (greedily such a model repeats itself).
    """
    exact = load_ladder(device="cpu", runtime="fast")
    yield EMBEDDED, with_int8_drafts(exact), SAMPLERS, domains, TOKENS
    small = replace(exact, target=exact.middle, middle=None, katz=None)
    yield "4 layers and 1", with_int8_drafts(small), SAMPLERS, domains[:2], TOKENS
    torch.manual_seed(0)
    target, draft = (
        FastModel(type(one.model)(one.model.config), one.name)
        for one in (small.target, small.draft)
    )
    nothing = with_int8_drafts(replace(small, target=target, draft=draft))
    yield "random weights", nothing, SAMPLERS[1:], domains[:1], 12


def regret_rows(
    ladder: Ladder,
    development: Sequence[Prompt],
    held_out: Sequence[Prompt],
    texts: Sequence[TargetText],
    passes: Mapping[str, PassTable],
    *,
    most: int = SETTINGS,
    keep: Path | None = None,
    cluster: Cluster | None = None,
) -> pd.DataFrame:
    """A row per setting and for the planned draft: method, setting, forecast (milliseconds per
    token on the development prompts), ms_per_token, tokens_per_round on the held-out ones, first
    and second (milliseconds on each half of these), speed_up over plain decoding, and slower: its
    time ÷ that of the planned draft; both with intervals over prompts.
    """
    if len(held_out) < 2:
        raise ValueError(f"regret needs 2 held-out prompts, got {len(held_out)}")
    _, tried = plan_settings(
        ladder, development, texts, passes, most=most, keep=keep, cluster=cluster
    )
    found = try_settings(ladder, held_out, texts, tried.drafts, keep, cluster)
    names = [prompt.name for prompt in held_out]

    def by_setting(rows: pd.DataFrame, **options: str) -> pd.DataFrame:
        return forecasts(rows, tried.prices, **options).set_index(["method", "setting"])

    table = by_setting(found)
    halves = {half: found[found.prompt.isin(names[place::2])] for place, half in enumerate(HALVES)}
    for name, rows in {"forecast": tried.trials, **halves}.items():
        table[name] = by_setting(rows).ms_per_token
    table[["slower", "slower_high", "slower_low"]] = 1 / by_setting(found, beside=PLANNED)[SPEED_UP]
    return table.reset_index()


def summarise_regret(table: pd.DataFrame) -> pd.DataFrame:
    """Three rows per pair, sampler and domain: the plan (the setting with the best forecast), the
    planned draft, and the fixed setting that was best in hindsight.

    Columns: `pair`, `sampling`, `domain`, `choice`, `setting`, `settings` (how many were tried),
    `prompts`, `ms_per_token`, the speed-up over plain decoding with its interval, and `regret`: by
    how much the choice is slower than the setting that was best on the other half of the held-out
    prompts, as the mean over both halves; 0.1 is 10 % slower.
    """
    rows = []
    keys = ["pair", "sampling", "domain"]
    for key, own in table.groupby(keys, sort=False):
        fixed = own[own.method != PLANNED]
        first, second = (fixed.iloc[fixed[half].argmin()] for half in HALVES)
        choices = {
            "the plan": own.iloc[own.forecast.argmin()],
            "planned draft": own[own.method == PLANNED].iloc[0],
            BEST: fixed.iloc[fixed.ms_per_token.argmin()],
        }
        for name, one in choices.items():
            regret = (one.second / first.second + one["first"] / second["first"]) / 2 - 1
            row = dict(zip(keys, key, strict=True)) | {"choice": name}
            row |= {"setting": f"{one.method}: {one.setting}", "settings": len(fixed)}
            row |= dict(one[["prompts", "ms_per_token", *SPEED_UP]])
            rows.append(row | {"regret": regret})
    return pd.DataFrame(rows)


def beside_best(table: pd.DataFrame) -> pd.DataFrame:
    """Per pair, sampler and domain the plan and the planned draft beside the fixed setting that was
    best in hindsight on the same prompts: `choice` (one row where both are the same), and `ratio`,
    the time per token ÷ the best setting's, with its 95 % interval where that was measured.
    """
    rows = []
    keys = ["pair", "sampling", "domain"]
    for key, own in table.groupby(keys, sort=False):
        fixed = own[own.method != PLANNED]
        best = fixed.iloc[fixed.ms_per_token.argmin()]
        plan = own.iloc[own.forecast.argmin()]
        ends = 1 / best[["slower_high", "slower", "slower_low"]].to_numpy(float)
        about = dict(zip(keys, key, strict=True)) | {"prompts": best.prompts}
        same = plan.method == PLANNED
        called = "the plan, which is the planned draft" if same else "the planned draft"
        names = ("ratio_low", "ratio", "ratio_high")
        rows.append({**about, "choice": called, **dict(zip(names, ends, strict=True))})
        if not same:
            ratio = plan.ms_per_token / best.ms_per_token
            nothing = dict.fromkeys(names, math.nan)
            rows.append({**about, "choice": "the plan, fixed", **nothing, "ratio": ratio})
    return pd.DataFrame(rows)
