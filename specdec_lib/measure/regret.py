"""`specdec measure regret`: what a plan loses against the best of all settings that were tried,
and the planned draft beside each of them, in data/measured/regret.csv.

Settings are chosen on development prompts (the plan), or on one half of the held-out prompts (the
best), and compared on the other half. Tokens and passes are counted along the target's own text;
passes are priced as notebook 05 measured them on this machine, and the rest as the clock says.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, replace
from itertools import product
from pathlib import Path

import pandas as pd
import torch
from tqdm.auto import tqdm
from transformers import LlamaForCausalLM

from specdec_lib.core.chance import Sampler
from specdec_lib.core.commandline import Parser, write_csv
from specdec_lib.core.files import DATA, cache_folder
from specdec_lib.measure.latency import machine_name, stored_tables
from specdec_lib.measure.latency.passes import pass_tables
from specdec_lib.measure.planning import PLANNED, forecasts, plan_settings
from specdec_lib.measure.race.families import with_int8_drafts
from specdec_lib.measure.race.harness import TargetText
from specdec_lib.measure.sweep.identity import fingerprint
from specdec_lib.measure.sweep.ratios import sampling_of
from specdec_lib.measure.texts import Texts, known_texts
from specdec_lib.measure.trials import Text, try_settings
from specdec_lib.models.fast.model import FastModel
from specdec_lib.theory import PassTable
from specdec_lib.workload import DOMAINS, SPLITS, Ladder, Prompt, load_ladder, load_prompts, seeds

PLACE = DATA / "measured" / "regret.csv"
SAMPLERS = (Sampler(0), Sampler(1.0, top_k=50))
SPEED_UP = ("speed_up", "speed_up_low", "speed_up_high")
TOKENS, SETTINGS = 64, 5
BEST = "best fixed, in hindsight"
COLUMNS = """pair sampling domain method setting prompts tokens_per_round forecast ms_per_token
    first second speed_up speed_up_low speed_up_high slower slower_low slower_high""".split()


def pairs() -> Iterator[tuple[str, Ladder, Sequence[Sampler], Sequence[str], int]]:
    """Models that plans are made for: name, models, samplers, domains and tokens of a text.

    The embedded ladder; its middle model as a target of its own, with the draft; and both with
    random weights, where every token is a round (greedily such a model repeats itself).
    """
    exact = load_ladder(device="cpu", runtime="fast")
    yield "SmolLM2-135M and its drafts", with_int8_drafts(exact), SAMPLERS, DOMAINS, TOKENS
    small = replace(exact, target=exact.middle, middle=None, katz=None)
    yield "4 layers and 1", with_int8_drafts(small), SAMPLERS, DOMAINS[:2], TOKENS
    torch.manual_seed(0)
    drawn = [
        FastModel(LlamaForCausalLM(one.model.config), one.name)
        for one in (small.target, small.draft)
    ]
    nothing = replace(small, target=drawn[0], draft=drawn[1])
    yield "random weights", with_int8_drafts(nothing), SAMPLERS[1:], DOMAINS[:1], 12


def stored_passes(machine: str, target: str) -> dict[str, PassTable]:
    """The seconds of the fast target's `score`, and of the int8 drafts' passes, on a machine.

    target    the name of the model that verifies

    Raises ValueError if none are stored.
    """
    table = stored_tables(machine)["latency"]
    own = pass_tables(table, "fast", column="seconds")
    return pass_tables(table, "int8") | {target: own[target]}


def texts_of(
    ladder: Ladder, sampler: Sampler, prompts: Sequence[Prompt], tokens: int
) -> list[Text]:
    """The prompts, and what the target writes after each: stored texts where there are some, else
    written now.
    """
    known = known_texts((sampler,), prompts=prompts) if ladder.target.name == "target" else ()
    texts = known[0] if known else Texts.written(ladder, prompts, sampler, max_new_tokens=tokens)
    return [
        (one, TargetText(one.name, ladder.encode(one), texts.of(one)[:tokens], seed))
        for one, seed in zip(prompts, seeds(prompts, 0), strict=True)
    ]


def regret_rows(
    ladder: Ladder,
    sampler: Sampler,
    texts: Mapping[str, Sequence[Text]],
    passes: Mapping[str, PassTable],
    *,
    most: int = SETTINGS,
    keep: Path | None = None,
) -> pd.DataFrame:
    """A row per setting and for the planned draft: method, setting, forecast (milliseconds per
    token on the development prompts), ms_per_token, tokens_per_round on the held-out ones, first
    and second (milliseconds on each half of these), speed_up over plain decoding, and slower: its
    time ÷ that of the planned draft; both with intervals over prompts.

    texts    of "development" and "held-out" prompts
    """
    if len(texts["held-out"]) < 2:
        raise ValueError(f"regret needs 2 held-out prompts, got {len(texts['held-out'])}")
    asked = {"most": most, "keep": keep and keep / "development"}
    _, tried = plan_settings(ladder, sampler, texts["development"], passes, **asked)
    foreseen, prices = forecasts(tried.trials, tried.prices), tried.prices
    kept = keep and keep / "held-out"
    found = try_settings(ladder, sampler, texts["held-out"], tried.drafts, kept)
    keys, names = ["method", "setting"], [prompt.name for prompt, _ in texts["held-out"]]
    table = forecasts(found, prices).set_index(keys)
    table["forecast"] = foreseen.set_index(keys).ms_per_token
    for half, place in {"first": 0, "second": 1}.items():
        part = forecasts(found[found.prompt.isin(names[place::2])], prices)
        table[half] = part.set_index(keys).ms_per_token
    beside = forecasts(found, prices, beside=PLANNED).set_index(keys)
    table[["slower", "slower_high", "slower_low"]] = 1 / beside[[*SPEED_UP]]
    return table.reset_index()


def summarise_regret(table: pd.DataFrame) -> pd.DataFrame:
    """Per pair, sampler and domain three rows: the plan (the setting, or the planned draft, with
    the best forecast), the planned draft, and the fixed setting that was best in hindsight, with
    milliseconds per token, the speed-up over plain decoding, the number of settings that were
    tried, and regret: the time on one half of the held-out prompts ÷ that of the setting that was
    best on the other half, less 1, the mean of both ways.
    """
    rows = []
    for key, own in table.groupby(["pair", "sampling", "domain"], sort=False):
        fixed = own[own.method != PLANNED]
        first, second = (fixed.loc[fixed[half].idxmin()] for half in ("first", "second"))
        choices = {
            "the plan": own.loc[own.forecast.idxmin()],
            "planned draft": own[own.method == PLANNED].iloc[0],
            BEST: fixed.loc[fixed.ms_per_token.idxmin()],
        }
        for name, one in choices.items():
            regret = (one.second / first.second + one["first"] / second["first"]) / 2 - 1
            row = dict(zip(("pair", "sampling", "domain"), key, strict=True)) | {"choice": name}
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
        passes = stored_passes(machine_name(), ladder.target.name)
        for sampler, domain in tqdm([*product(samplers, domains)], name):
            same = (machine_name(), sampler, domain, given.limit, tokens, ladder)
            keep = cache_folder() / "regret" / fingerprint(*same)
            prompts = {split: load_prompts(domain, split, given.limit) for split in SPLITS}
            texts = {
                split: texts_of(ladder, sampler, some, tokens) for split, some in prompts.items()
            }
            own = regret_rows(ladder, sampler, texts, passes, keep=keep)
            labels = {"sampling": sampling_of(*astuple(sampler)), "domain": domain}
            rows.append(own.assign(pair=name, **labels))
            tqdm.write(summarise_regret(rows[-1]).round(3).to_string(index=False))
    write_csv(pd.concat(rows)[COLUMNS], PLACE, 6)
