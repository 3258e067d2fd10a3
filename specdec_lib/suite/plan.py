"""`specdec plan`: finds the fastest setting for a pair of models on this machine and these prompts,
says whether speculation pays at all, and writes the setting as JSON.

Every method is counted along what the target writes on development prompts; the best forecasts race
plain decoding on held-out ones. Without --target and --draft it takes the embedded models. Run it
where nothing else runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path

import pandas as pd
from tqdm.auto import tqdm

from specdec_lib.core.chance import Sampler
from specdec_lib.core.commandline import Parser
from specdec_lib.core.files import cache_folder, check_output, write_whole
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.measure.compare import ADVICE, add_models, add_sampling, load_given, pays, told
from specdec_lib.measure.latency.machine import machine_name
from specdec_lib.measure.planning import Named, forecasts, plan_settings
from specdec_lib.measure.race.benchmark import Say
from specdec_lib.measure.race.contenders import AUTOREGRESSIVE
from specdec_lib.measure.race.families import TOKEN_BY_TOKEN, with_int8_drafts
from specdec_lib.measure.race.harness import race_drafts
from specdec_lib.measure.race.table import over_plain, ratio_table
from specdec_lib.measure.sweep.grid import Setting
from specdec_lib.measure.sweep.identity import fingerprint
from specdec_lib.measure.sweep.ratios import without_few
from specdec_lib.suite.hf.settings import export_setting
from specdec_lib.workload import Ladder, Prompt, load_prompts

PLAIN: Named = (AUTOREGRESSIVE, TOKEN_BY_TOKEN)
TOKENS, SETTINGS = 64, 6


@dataclass(frozen=True)
class Plan:
    """What to decode with, and why.

    setting      the one with the best forecast, or plain decoding unless `pays` is "yes"
    pays         "yes", "no" or "unclear": whether it beats plain decoding on held-out prompts
    forecasts    `measure.planning.forecasts` of every setting on development prompts
    held_out     rows of `ratio_table` over plain decoding, which is the first, of the setting with
                 the best forecast, and of the best of another method
    """

    setting: Setting
    pays: str
    forecasts: pd.DataFrame
    held_out: pd.DataFrame


def make_plan(
    ladder: Ladder,
    sampler: Sampler,
    development: Sequence[Prompt],
    held_out: Sequence[Prompt],
    *,
    keep: Path,
    tokens: int = TOKENS,
    settings: int = SETTINGS,
    seed: int = 0,
    say: Say = lambda line: None,
) -> Plan:
    """The plan for these models and prompts on this machine, which should do nothing else.

    development    prompts to plan on; `held_out` are those to judge on
    keep           a folder for what is finished: the same call goes on there
    settings       per method that are tried

    Raises ValueError if there are fewer than two development prompts or no held-out one.
    """
    if len(development) < 2 or not held_out:
        got = f"{len(development)} and {len(held_out)}"
        raise ValueError(f"a plan needs 2 development prompts and a held-out one, got {got}")
    device, limits = machine_name(str(ladder.target.model.device)), {"tokens": tokens, "seed": seed}
    keep = keep / fingerprint(device, sampler, limits, [one.text for one in development], ladder)
    found = plan_settings(ladder, sampler, development, limits, most=settings, keep=keep)
    table, tried = forecasts(found.trials), found.drafts
    say(f"{len(tried)} settings were counted on {len(development)} prompts; the best forecasts:")
    say(table.head(5).drop(columns="prompts").round(2).to_string(index=False))
    guessing = table[table.method != AUTOREGRESSIVE].drop_duplicates("method")[:2]
    best, *others = zip(guessing.method, guessing.setting, strict=True)
    raced = {name: tried[name] for name in (PLAIN, best, *others)}
    racing = {setting: (method, draft) for (method, setting), draft in raced.items()}
    bar = tqdm(held_out, "held-out prompts", mininterval=1)
    limits["folder"] = keep / fingerprint(racing)
    timings = chain.from_iterable(race_drafts(ladder, racing, sampler, bar, **limits))
    rows = over_plain(ratio_table(timings))
    verdict = pays(rows.iloc[1])
    name, draft = (best[0], raced[best]) if verdict == "yes" else ("plain", NoDraft())
    return Plan(Setting(name, draft, sampler), verdict, table, without_few(rows))


def main(arguments: list[str] | None = None) -> None:
    """Parse the command line, measure, print the plan and write its setting."""
    parser = Parser("plan", __doc__.partition(": ")[2], writes=None)
    add_models(parser, "float32", limit=10, max_new_tokens=TOKENS)
    add_sampling(parser, "auto")
    add = parser.add_argument
    counted = f"of each method, counted on development prompts (default: {SETTINGS})"
    add("--settings", type=int, default=SETTINGS, help=counted)
    add("--json", type=Path, default=Path("plan.json"), help="where the setting is written")
    given = parser.parse_args(arguments)
    check_output(given.json)
    development = load_prompts(given.prompts, "development", given.limit)
    held_out, ladder = load_given(given, "held-out")
    counts = f"{len(development)} development and {len(held_out)} held-out prompts"
    print(f"{ladder.target.runtime}; {counts} of {given.prompts}", flush=True)
    asked = {"tokens": given.max_new_tokens, "settings": given.settings, "seed": given.seed}
    asked |= {"keep": cache_folder() / "plan", "say": partial(print, flush=True)}
    sampler = Sampler(given.temperature, top_k=given.top_k)
    plan = make_plan(with_int8_drafts(ladder), sampler, development, held_out, **asked)
    write_whole(given.json, export_setting(plan.setting).encode())
    _, best, *others = plan.held_out.itertuples(index=False)
    foreseen = plan.forecasts.set_index(["method", "setting"]).loc[(best.method, best.setting)]
    advice = f"\n{ADVICE[plan.pays]}: on {best.prompts} held-out prompts {told(best)}"
    print(f"{advice} as plain decoding.")
    print(f"{best.ms_per_token:.2f} ms per token; the forecast was {foreseen.ms_per_token:.2f}.")
    for one in others:
        print(f"Runner-up: {told(one)}.")
    print(f"Written to {given.json}; `specdec hf {given.json}` shows other engines' flags.")
