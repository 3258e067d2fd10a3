"""`specdec measure regret`: what a plan loses against the best of all settings that were tried,
and the planned draft beside each of them, in data/measured/regret.csv.

Settings are chosen on development prompts (the plan), or on one half of the held-out prompts (the
best), and compared on the other half, counted and priced as `specdec plan` does.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import pandas as pd
import torch
from tqdm.auto import tqdm
from transformers import LlamaForCausalLM

from specdec_lib.core.chance import Sampler
from specdec_lib.core.commandline import Parser, write_csv
from specdec_lib.core.files import DATA, cache_folder
from specdec_lib.measure import planning
from specdec_lib.measure.latency import machine_name
from specdec_lib.measure.planning import PLANNED, SETTING, forecasts
from specdec_lib.measure.race.benchmark import SAMPLERS
from specdec_lib.measure.race.families import with_int8_drafts
from specdec_lib.measure.race.harness import target_texts
from specdec_lib.measure.sweep.identity import fingerprint
from specdec_lib.measure.sweep.ratios import sampling_of
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.models.loading import fast_model
from specdec_lib.workload import DOMAINS, Ladder, Prompt, load_ladder, load_prompts

PLACE = DATA / "measured" / "regret.csv"
CASE = ["pair", "sampling", "domain"]
SPEED_UP = ("speed_up", "speed_up_low", "speed_up_high")
BEST = "best fixed, in hindsight"
COLUMNS = """pair sampling domain method setting prompts tokens_per_round forecast ms_per_token
    first second speed_up speed_up_low speed_up_high slower slower_low slower_high""".split()


def pairs() -> Iterator[tuple[str, Ladder, Sequence[Sampler], Sequence[str], int]]:
    """Name, models, samplers, domains and tokens per text: the embedded ladder; its middle model as
    a target of its own; and random weights, where every token is a round (but greedily it repeats).
    """
    exact = load_ladder(device="cpu", runtime="fast")
    yield "SmolLM2-135M and its drafts", with_int8_drafts(exact), SAMPLERS, DOMAINS, 64
    small = replace(exact, target=exact.middle, middle=None, katz=None)
    yield "4 layers and 1", with_int8_drafts(small), SAMPLERS, DOMAINS[:2], 64
    torch.manual_seed(0)
    target, draft = (
        fast_model(CachedModel(LlamaForCausalLM(one.model.config).eval(), one.name))
        for one in (small.target, small.draft)
    )
    nothing = with_int8_drafts(replace(small, target=target, draft=draft))
    yield "random weights", nothing, SAMPLERS[1:], DOMAINS[:1], 12


def regret_rows(
    ladder: Ladder,
    sampler: Sampler,
    development: Sequence[Prompt],
    held_out: Sequence[Prompt],
    *,
    tokens: int,
    keep: Path,
    most: int = 5,
) -> pd.DataFrame:
    """A row per setting and for the planned draft: method, setting, forecast (milliseconds per
    token on the development prompts), ms_per_token, tokens_per_round on the held-out ones, first
    and second (milliseconds on each half of these), speed_up over plain decoding, and slower: its
    time ÷ that of the planned draft; both with intervals over prompts.
    """
    if len(held_out) < 2:
        raise ValueError(f"regret needs 2 held-out prompts, got {len(held_out)}")
    limits, asked = {"tokens": tokens, "seed": 0}, {"most": most, "keep": keep}
    plan = planning.plan_settings(ladder, sampler, development, limits, **asked)
    texts = [*target_texts(ladder, held_out, sampler, **limits)]
    found = planning.try_settings(ladder, sampler, texts, plan.drafts, plan.passes, keep)
    table = forecasts(found).set_index(SETTING)
    table["forecast"] = forecasts(plan.trials).set_index(SETTING).ms_per_token
    for place, half in enumerate(("first", "second")):
        own = found[found.prompt.isin([prompt.name for prompt in held_out[place::2]])]
        table[half] = forecasts(own).set_index(SETTING).ms_per_token
    slower = 1 / forecasts(found, beside=PLANNED).set_index(SETTING)[[*SPEED_UP]]
    table[["slower", "slower_high", "slower_low"]] = slower
    return table.reset_index()


def summarise_regret(table: pd.DataFrame) -> pd.DataFrame:
    """Per pair, sampler and domain three rows: the plan (whatever has the best forecast), the
    planned draft, and the fixed setting that was best in hindsight, with the number of settings
    that were tried, and regret: the time on one half of the held-out prompts ÷ that of the setting
    that was best on the other half, less 1, the mean of both ways.
    """
    rows = []
    for key, own in table.groupby(CASE, sort=False):
        fixed = own[own.method != PLANNED]
        first, second = (fixed.loc[fixed[half].idxmin()] for half in ("first", "second"))
        choices = {
            "the plan": own.loc[own.forecast.idxmin()],
            "planned draft": own[own.method == PLANNED].iloc[0],
            BEST: fixed.loc[fixed.ms_per_token.idxmin()],
        }
        for name, one in choices.items():
            regret = (one.second / first.second + one["first"] / second["first"]) / 2 - 1
            row = dict(zip(CASE, key, strict=True)) | {"choice": name}
            row |= {"setting": f"{one.method}: {one.setting}", "settings": len(fixed)}
            row |= {column: one[column] for column in ("prompts", "ms_per_token", *SPEED_UP)}
            rows.append(row | {"regret": regret})
    return pd.DataFrame(rows)


def main(arguments: list[str] | None = None) -> None:
    """Parse the command line, count, and write the table."""
    parser = Parser("measure regret", __doc__.partition(": ")[2], writes=[PLACE])
    parser.add_common("--limit", 10, "of each domain and split")
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    rows = []
    for name, ladder, samplers, domains, tokens in pairs():
        for sampler, domain in tqdm([*product(samplers, domains)], name):
            same = (machine_name(), sampler, domain, given.limit, tokens, ladder)
            keep = cache_folder() / "regret" / fingerprint(*same)
            development, held_out = (
                load_prompts(domain, split, given.limit) for split in ("development", "held-out")
            )
            own = regret_rows(ladder, sampler, development, held_out, tokens=tokens, keep=keep)
            sampling = sampling_of(sampler.temperature, sampler.top_k)
            rows.append(own.assign(pair=name, sampling=sampling, domain=domain))
            tqdm.write(summarise_regret(rows[-1]).round(3).to_string(index=False))
    write_csv(pd.concat(rows)[COLUMNS], PLACE, 6)
