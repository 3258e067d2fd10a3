"""`specdec plan`: finds the fastest setting for a pair of models on this machine and these prompts,
says whether speculation pays at all, and writes the setting as JSON.

Every method is tuned on development prompts, the best settings race there, and the two fastest race
plain decoding on held-out prompts, on which nothing was tuned. Without --target and --draft it
takes the embedded models. Run it where nothing else runs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pandas as pd
import torch
from tqdm.auto import tqdm

from specdec_lib.core.chance import Sampler
from specdec_lib.core.commandline import Parser
from specdec_lib.core.files import cache_folder, check_output, write_whole
from specdec_lib.core.protocols import Draft
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.measure.compare.command import add_models
from specdec_lib.measure.compare.verdict import HARDLY, LEAST
from specdec_lib.measure.latency.ledger import method_ledger
from specdec_lib.measure.latency.machine import machine_name
from specdec_lib.measure.race.benchmark import kept_lineup
from specdec_lib.measure.race.contenders import AUTOREGRESSIVE, Contender, ours
from specdec_lib.measure.race.families import TOKEN_BY_TOKEN, with_int8_drafts
from specdec_lib.measure.race.harness import (
    TargetText,
    Timing,
    kept_timings,
    race,
    target_texts,
)
from specdec_lib.measure.race.lineup import Lineup, Say, best_drafts, tune_contenders, tune_lineup
from specdec_lib.measure.race.table import counterfactuals, over_plain, ratio_table
from specdec_lib.measure.sweep.grid import Setting
from specdec_lib.measure.sweep.identity import fingerprint
from specdec_lib.models.loading import RUNTIMES
from specdec_lib.suite.hf.settings import export_setting
from specdec_lib.workload import Ladder, Prompt, load_ladder, load_prompts

FIRST = 2  # development prompts of the first of two stages of tuning
BESIDE = 2  # methods that are held against plain decoding
LEDGER_PROMPTS = 2
ADVICE = {
    "yes": "Speculate",
    "no": "Do not speculate",
    "unclear": "No clear gain, so plain decoding is simpler",
}


@dataclass(frozen=True)
class PlanOptions:
    """How a plan is made: new tokens per prompt at most, settings per method that are tried, and
    the seed of all noise.
    """

    tokens: int = 64
    settings: int = 4
    seed: int = 0


@dataclass(frozen=True)
class Plan:
    """What to decode with, and why.

    setting        the fastest on development prompts, or plain decoding unless `pays` is "yes"
    pays           "yes", "no" or "unclear": whether it beats plain decoding on held-out prompts
    development    a row per method, the fastest first: method, setting, ms_per_token
    held_out       rows of `ratio_table` over plain decoding, which is the first; the second is the
                   best on development prompts, the third its runner-up
    where          `counterfactuals` of the two
    """

    setting: Setting
    pays: str
    development: pd.DataFrame
    held_out: pd.DataFrame
    where: pd.DataFrame


def make_plan(
    ladder: Ladder,
    sampler: Sampler,
    development: Sequence[Prompt],
    held_out: Sequence[Prompt],
    options: PlanOptions = PlanOptions(),
    *,
    keep: Path | None = None,
    say: Say = lambda line: None,
) -> Plan:
    """The plan for these models and prompts on this machine, which should do nothing else.

    development    prompts to tune on; `held_out` are those to judge on
    keep           a folder for what is finished: the same call goes on there
    say            called with a line when something is settled

    Raises ValueError if there are fewer than two development prompts or no held-out one.
    """
    if len(development) < 2 or not held_out:
        got = f"{len(development)} and {len(held_out)}"
        raise ValueError(f"a plan needs 2 development prompts and a held-out one, got {got}")
    device = machine_name(str(ladder.target.model.device))
    same = (device, sampler, options, [one.text for one in development], ladder.models)
    folder = keep and keep / fingerprint(*same)
    limits = {"tokens": options.tokens, "seed": options.seed}

    def tune() -> Lineup:
        texts = list(target_texts(ladder, development, sampler, **limits))
        return _tuned(ladder, sampler, texts, options, say)

    lineup = kept_lineup(folder, tune)
    order = sorted(lineup.best, key=lambda method: lineup.best[method].ms_per_token)
    drafts = best_drafts(ladder, sampler, lineup)
    raced = {name: drafts[name] for name in (AUTOREGRESSIVE, *order[:BESIDE])}
    racing = _contenders(ladder, sampler, raced, lineup)
    rows = _race_table(racing, ladder, sampler, held_out, limits, folder)
    pays, best = _pays(rows.iloc[1]), rows.method[1]
    name, draft = (best, drafts[best]) if pays == "yes" else ("plain", NoDraft())
    tuned = [(one, lineup.best[one].setting, lineup.best[one].ms_per_token) for one in order]
    table = pd.DataFrame(tuned, columns=["method", "setting", "ms_per_token"])
    book = method_ledger(ladder, sampler, raced, development[:LEDGER_PROMPTS], **limits)
    where = counterfactuals(book, rows).droplevel(["temperature", "top_k"])
    return Plan(Setting(name, draft, sampler), pays, table, rows, where)


def _race_table(
    racing: Sequence[Contender],
    ladder: Ladder,
    sampler: Sampler,
    prompts: Sequence[Prompt],
    limits: dict[str, int],
    folder: Path | None,
) -> pd.DataFrame:
    """The rows of `Plan.held_out`; prompts that were kept are not run again."""
    timings, warm = [], False

    def run(prompt: Prompt) -> list[Timing]:
        nonlocal warm
        options = {"seed": limits["seed"]} | ({"warm_up": 0} if warm else {})
        warm = True
        texts = target_texts(ladder, [prompt], sampler, **limits)
        return next(race(racing, texts, ladder.target, **options))

    for prompt in tqdm(prompts, "held-out prompts", mininterval=1):
        timings += kept_timings(folder, prompt, len(racing), partial(run, prompt))
    return over_plain(ratio_table(timings, {}))


def _contenders(
    ladder: Ladder, sampler: Sampler, drafts: Mapping[str, Draft], lineup: Lineup
) -> list[Contender]:
    settings = {name: one.setting for name, one in lineup.best.items()}
    return [
        ours(ladder.target, draft, sampler, method=name, setting=settings.get(name, TOKEN_BY_TOKEN))
        for name, draft in drafts.items()
    ]


def _tuned(
    ladder: Ladder, sampler: Sampler, texts: Sequence[TargetText], options: PlanOptions, say: Say
) -> Lineup:
    """Every method at its best setting, with its time in a last race of all methods."""
    first = min(FIRST, len(texts) - 1)
    tuning = {"stages": (first, len(texts) - first), "most": options.settings, "say": say}
    lineup = tune_lineup({"": ladder}, sampler, texts, seed=options.seed, hugging=False, **tuning)
    say("all methods, each at its best setting")
    final = _contenders(ladder, sampler, best_drafts(ladder, sampler, lineup), lineup)
    stages = {"stages": [len(texts)], "seed": options.seed}
    for one, milliseconds in tune_contenders(final, texts, ladder.target, **stages):
        say(f"  {one.method}: {milliseconds:.2f} ms per token")
        if one.method in lineup.best:
            tuned = replace(lineup.best[one.method], ms_per_token=milliseconds)
            lineup.best[one.method] = tuned
    return lineup


def _pays(best: pd.Series) -> str:
    """Whether a row of held-out prompts is faster than plain decoding, interval and all."""
    if best.tokens_per_round <= HARDLY or best.ratio < 1:
        return "no"
    return "yes" if best.prompts >= LEAST and best.ratio_low > 1 else "unclear"


def main(arguments: list[str] | None = None) -> None:
    """Parse the command line, measure, print the plan and write its setting."""
    usual, parser = PlanOptions(), Parser("plan", __doc__.partition(": ")[2], writes=None)
    add_models(parser, "float32", limit=10, max_new_tokens=usual.tokens)
    add = parser.add_argument
    add("--runtime", default="auto", choices=RUNTIMES, help="of our loop (default: the faster)")
    add("--threads", type=int, help="of torch; by default torch's own choice")
    told = f"of each method, tried on development prompts (default: {usual.settings})"
    add("--settings", type=int, default=usual.settings, help=told)
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
    options = PlanOptions(given.max_new_tokens, given.settings, given.seed)
    places = {"keep": cache_folder() / "plan", "say": lambda line: print(line, flush=True)}
    plan = make_plan(ladder, sampler, development, held_out, options, **places)
    write_whole(given.json, export_setting(plan.setting).encode())
    print(told_plan(plan))
    print(
        f"The setting is written to {given.json}; `specdec hf {given.json}` shows other engines'."
    )


def told_plan(plan: Plan) -> str:
    """The plan in words: the verdict, the runner-up, and what a free host or draft would change."""
    _, best, *others = plan.held_out.itertuples(index=False)
    foreseen, advice = plan.development.ms_per_token[0], ADVICE[plan.pays]
    lines = [
        f"\n{advice}: on {best.prompts} held-out prompts {_told(best)} as plain decoding.",
        f"{best.ms_per_token:.2f} ms per token; on development prompts it took {foreseen:.2f}.",
    ]
    lines += [f"Runner-up: {_told(one)}." for one in others]
    if best.method in plan.where.index:
        spent = plan.where.loc[best.method]
        lines.append(
            f"Its time: {spent.verify:.0%} the target's passes, {spent.drafting:.0%} drafting,"
            f" {spent.host:.0%} the program; it would be {spent.free_drafting:.2f} times as fast as"
            f" plain decoding with a free draft, {spent.free_host:.2f} with a free program."
        )
    return "\n".join(lines)


def _told(row: tuple) -> str:
    gain = f"{row.ratio:.2f}"
    if row.prompts >= LEAST:
        gain += f" ({row.ratio_low:.2f}–{row.ratio_high:.2f})"
    return f"{row.method} ({row.setting}) is {gain} times as fast"
