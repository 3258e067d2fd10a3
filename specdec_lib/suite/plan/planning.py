"""`specdec plan`: finds the fastest setting for a pair of models on this machine and these prompts,
says whether speculation pays at all, and writes the setting as JSON.

Passes are timed, every method is counted along what the target writes on development prompts, and
the setting with the best forecast, the best of another method, and a draft that needs no draft
model race plain decoding on held-out prompts, on which nothing was chosen. Without --target and
--draft it takes the embedded models. Run it where nothing else runs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pandas as pd
import torch
from tqdm.auto import tqdm

from specdec_lib.core.chance import Sampler
from specdec_lib.core.commandline import Parser
from specdec_lib.core.files import cache_folder, check_output, write_whole
from specdec_lib.core.kinds import Within, checked
from specdec_lib.core.protocols import Draft
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.measure.compare.command import add_models
from specdec_lib.measure.compare.verdict import HARDLY
from specdec_lib.measure.intervals import with_interval
from specdec_lib.measure.latency.machine import machine_name
from specdec_lib.measure.planning import Tried, forecasts, plan_settings, timed_passes
from specdec_lib.measure.race.contenders import AUTOREGRESSIVE, ours
from specdec_lib.measure.race.families import TOKEN_BY_TOKEN, with_int8_drafts
from specdec_lib.measure.race.harness import race_prompts
from specdec_lib.measure.race.learning import without_network
from specdec_lib.measure.race.lineup import Say
from specdec_lib.measure.race.table import over_plain, ratio_table
from specdec_lib.measure.sweep.grid import Setting
from specdec_lib.measure.sweep.identity import fingerprint
from specdec_lib.measure.sweep.ratios import without_few
from specdec_lib.measure.trials import Named, whole, written_texts
from specdec_lib.models.loading import RUNTIMES
from specdec_lib.suite.hf.settings import export_setting
from specdec_lib.theory import Margin, margin
from specdec_lib.workload import Ladder, Prompt, load_ladder, load_prompts

TOKENS, SETTINGS = 64, 6  # new tokens per prompt at most, and settings per method, as usual
BESIDE = 2  # settings that are held against plain decoding
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
    policy       per situation (`drafts.combined.situation`) the setting that is worth most
    held_out     rows of `ratio_table` over plain decoding, which is the first; the second has the
                 best forecast, the third the best of another method; the last is FREE
    margin       what the forecast gain of the second hangs on
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
    tokens: int = TOKENS,
    settings: Annotated[int, Within(1)] = SETTINGS,
    seed: int = 0,
    keep: Path | None = None,
    say: Say = lambda line: None,
) -> Plan:
    """The plan for these models and prompts on this machine, which should do nothing else.

    development    prompts to plan on; `held_out` are those to judge on
    tokens         new ones per prompt, at most
    settings       that are tried of each method
    keep           a folder for what is finished: the same call goes on there
    say            called with a line when something is settled

    Raises ValueError if there are fewer than two development prompts or no held-out one.
    """
    if len(development) < 2 or not held_out:
        got = f"{len(development)} and {len(held_out)}"
        raise ValueError(f"a plan needs 2 development prompts and a held-out one, got {got}")
    limits = {"tokens": tokens, "seed": seed}
    device = machine_name(str(ladder.target.model.device))
    same = (device, sampler, limits, settings, [one.text for one in development], ladder)
    folder = keep and keep / fingerprint(*same)
    texts = [*written_texts(ladder, sampler, development, limits, folder and folder / "texts")]
    passes = timed_passes(ladder, texts, folder and folder / "passes")
    asked = {"most": settings, "keep": folder}
    policy, tried = plan_settings(ladder, sampler, texts, passes, **asked)
    table = forecasts(tried.trials, tried.prices)
    best, raced = _to_race(table, tried.drafts)
    say(f"{len(tried.drafts)} settings were counted on {len(texts)} prompts; the best forecasts:")
    say(table.head(5).drop(columns="prompts").round(2).to_string(index=False))
    kept = folder and folder / "held-out" / fingerprint(raced)
    rows = _race(ladder, sampler, raced, held_out, limits, kept)
    pays = _pays(rows.iloc[1])
    name, draft = (best[0], raced[best]) if pays == "yes" else ("plain", NoDraft())
    setting, judged = Setting(name, draft, sampler), without_few(rows)
    return Plan(setting, pays, table, policy, judged, _margin(tried, best))


def _to_race(table: pd.DataFrame, tried: Mapping[Named, Draft]) -> tuple[Named, dict[Named, Draft]]:
    """The setting with the best forecast but for plain decoding, and with plain decoding, the best
    of another method and FREE the drafts that race.
    """
    guessing = table[table.method != AUTOREGRESSIVE].drop_duplicates("method")[:BESIDE]
    names = [(one.method, one.setting) for one in guessing.itertuples()]
    plain = (AUTOREGRESSIVE, TOKEN_BY_TOKEN)
    return names[0], {name: tried[name] for name in (plain, *names)} | {FREE: without_network()}


def _race(
    ladder: Ladder,
    sampler: Sampler,
    raced: Mapping[Named, Draft],
    prompts: Sequence[Prompt],
    limits: Mapping[str, int],
    keep: Path | None,
) -> pd.DataFrame:
    """The rows of `ratio_table` over plain decoding of these drafts on held-out prompts."""
    racing = [
        ours(ladder.target, draft, sampler, method=method, setting=setting)
        for (method, setting), draft in raced.items()
    ]
    bar = tqdm(prompts, "held-out prompts", mininterval=1)
    timings = race_prompts(racing, ladder, bar, **limits, folder=keep)
    return over_plain(ratio_table([one for found in timings for one in found], {}))


def _margin(tried: Tried, best: Named) -> Margin:
    trials, prices = tried.trials, tried.prices
    own, plain = (
        trials[(trials.method == method) & (trials.setting == setting)]
        for method, setting in (best, (AUTOREGRESSIVE, TOKEN_BY_TOKEN))
    )
    overheads = (prices.outside[best[0]], prices.outside[AUTOREGRESSIVE])
    return margin(whole(own), whole(plain), prices.passes, *overheads)


def _pays(best: pd.Series) -> str:
    """Whether a row of held-out prompts is faster than plain decoding, interval and all."""
    if best.tokens_per_round <= HARDLY or best.ratio < 1:
        return "no"
    return "yes" if best.ratio_low > 1 else "unclear"


def main(arguments: list[str] | None = None) -> None:
    """Parse the command line, measure, print the plan and write its setting."""
    parser = Parser("plan", __doc__.partition(": ")[2], writes=None)
    add_models(parser, "float32", limit=10, max_new_tokens=TOKENS)
    add = parser.add_argument
    add("--runtime", default="auto", choices=RUNTIMES, help="of our loop (default: fast if it can)")
    add("--threads", type=int, help="of torch; by default torch's own choice")
    told = f"of each method, counted on development prompts (default: {SETTINGS})"
    add("--settings", type=int, default=SETTINGS, help=told)
    add("--json", type=Path, default=Path("plan.json"), help="where the setting is written")
    parser.add_common("--temperature", 0.0)
    parser.add_common("--top-k")
    parser.add_common("--seed", 0)
    given = parser.parse_args(arguments)
    check_output(given.json)
    if given.threads is not None:
        torch.set_num_threads(given.threads)
    sampler = Sampler(given.temperature, top_k=given.top_k)
    development, held_out = (
        load_prompts(given.prompts, split, given.limit) for split in ("development", "held-out")
    )
    named = ("tokenizer", "device", "dtype", "runtime")
    ladder = load_ladder(given.target, given.draft, **{name: vars(given)[name] for name in named})
    ladder = with_int8_drafts(ladder)
    counts = f"{len(development)} development and {len(held_out)} held-out prompts"
    print(f"{ladder.target.runtime}; {counts} of {given.prompts}", flush=True)
    how = {"tokens": given.max_new_tokens, "settings": given.settings, "seed": given.seed}
    how |= {"keep": cache_folder() / "plan", "say": lambda line: print(line, flush=True)}
    plan = make_plan(ladder, sampler, development, held_out, **how)
    write_whole(given.json, export_setting(plan.setting).encode())
    print(told_plan(plan))
    print(
        f"The setting is written to {given.json}; `specdec hf {given.json}` shows other engines'."
    )


def told_plan(plan: Plan) -> str:
    """The plan in words: the verdict, the runner-up, and what the verdict hangs on."""
    _, best, *others, free = plan.held_out.itertuples(index=False)
    foreseen = plan.forecasts.set_index(["method", "setting"]).loc[(best.method, best.setting)]
    hangs = plan.margin
    advice = f"{ADVICE[plan.pays]}: on {best.prompts} held-out prompts {_told(best)}"
    lines = [
        f"\n{advice} as plain decoding.",
        f"{best.ms_per_token:.2f} ms per token; the forecast was {foreseen.ms_per_token:.2f}.",
        *(f"Runner-up: {_told(one)}." for one in others),
        f"Without a draft model: {_told(free)}.",
        f"On development prompts a round gives {hangs.tokens:.2f} tokens and pays from"
        f" {hangs.needed:.2f} on; it would be {hangs.free_drafts:.2f} times as fast as plain"
        f" decoding if drafting were free, and {hangs.free_rows:.2f} times if verifying many rows"
        " took no longer than one.",
    ]
    if hangs.dearer_drafts <= 0:
        lines.append("It would not pay with free drafts either.")
    elif hangs.dearer_drafts < float("inf"):
        times = f"{hangs.dearer_drafts:.2g} times"
        lines.append(f"It breaks even where its drafts' passes take {times} as long.")
    return "\n".join(lines)


def _told(row: tuple) -> str:
    gain = with_interval(row.ratio, row.ratio_low, row.ratio_high)
    return f"{row.method} ({row.setting}) is {gain} times as fast"
