"""Plans by measurement: every method is tuned on development prompts, the best settings race there,
and the two fastest race plain decoding on held-out prompts, on which nothing was tuned.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
from tqdm.auto import tqdm

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.protocols import Draft
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.measure.compare.verdict import HARDLY, LEAST
from specdec_lib.measure.intervals import bootstrap, named_interval
from specdec_lib.measure.latency.ledger import round_parts, shares
from specdec_lib.measure.latency.machine import machine_name
from specdec_lib.measure.race.benchmark import kept_lineup, kept_timings
from specdec_lib.measure.race.contenders import AUTOREGRESSIVE, Contender, ours
from specdec_lib.measure.race.families import TOKEN_BY_TOKEN
from specdec_lib.measure.race.harness import TargetText, Timing, race, target_texts
from specdec_lib.measure.race.lineup import Lineup, Say, best_drafts, tune_contenders, tune_lineup
from specdec_lib.measure.race.table import ALL, counterfactuals
from specdec_lib.measure.sweep.grid import Setting
from specdec_lib.measure.sweep.identity import fingerprint
from specdec_lib.workload import Ladder, Prompt, seeds

FIRST = 2  # development prompts of the first of two stages of tuning
BESIDE = 2  # methods that are held against plain decoding
LEDGER_PROMPTS = 2


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
    held_out       a row per method that was raced there, plain decoding first, then the best and
                   the runner-up: method, setting, prompts, ms_per_token, tokens_per_round,
                   speed_up, speed_up_low, speed_up_high
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

    def texts_of(prompts: Sequence[Prompt]) -> list[TargetText]:
        return list(target_texts(ladder, prompts, sampler, **limits))

    lineup = kept_lineup(
        folder, lambda: _tuned(ladder, sampler, texts_of(development), options, say)
    )
    order = sorted(lineup.best, key=lambda method: lineup.best[method].ms_per_token)
    drafts = best_drafts(ladder, sampler, lineup)
    raced = {name: drafts[name] for name in (AUTOREGRESSIVE, *order[:BESIDE])}
    racing, timings = _contenders(ladder, sampler, raced, lineup), []
    for number, prompt in enumerate(tqdm(held_out, "held-out prompts", mininterval=1)):
        warm_up = {"warm_up": 0} if number else {}

        def run(prompt: Prompt = prompt, warm_up: dict = warm_up) -> list[Timing]:
            [found] = race(racing, texts_of([prompt]), ladder.target, seed=options.seed, **warm_up)
            return found

        timings += kept_timings(folder, prompt, len(racing), run)
    rows = _summary(timings)
    pays, best = _pays(rows.iloc[1]), rows.method[1]
    name, draft = (best, drafts[best]) if pays == "yes" else ("plain", NoDraft())
    tuned = [(one, lineup.best[one].setting, lineup.best[one].ms_per_token) for one in order]
    table = pd.DataFrame(tuned, columns=["method", "setting", "ms_per_token"])
    where = _where(ladder, sampler, raced, development, options, rows)
    return Plan(Setting(name, draft, sampler), pays, table, rows, where)


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


def _summary(timings: Sequence[Timing]) -> pd.DataFrame:
    """The rows of `Plan.held_out`."""
    table = pd.DataFrame(map(vars, timings))
    groups = dict(list(table.groupby("method", sort=False)))
    plain, rows = groups[AUTOREGRESSIVE], []
    for name, own in groups.items():
        columns = (plain.seconds, plain.timed_tokens, own.seconds, own.timed_tokens)
        found = {"method": name, "setting": own.setting.iloc[0], "prompts": len(own)}
        found["ms_per_token"] = 1000 * own.seconds.sum() / own.timed_tokens.sum()
        found["tokens_per_round"] = own.tokens.sum() / own["rounds"].sum()
        rows.append(found | named_interval("speed_up", bootstrap(*columns)))
    return pd.DataFrame(rows)


def _pays(best: pd.Series) -> str:
    """Whether a row of held-out prompts is faster than plain decoding, interval and all."""
    if best.tokens_per_round <= HARDLY or best.speed_up < 1:
        return "no"
    return "yes" if best.prompts >= LEAST and best.speed_up_low > 1 else "unclear"


def _where(
    ladder: Ladder,
    sampler: Sampler,
    drafts: Mapping[str, Draft],
    prompts: Sequence[Prompt],
    options: PlanOptions,
    rows: pd.DataFrame,
) -> pd.DataFrame:
    """`counterfactuals` of the drafts, by a ledger of a few development prompts."""
    few = prompts[:LEDGER_PROMPTS]
    texts = [ladder.encode(prompt) for prompt in few]
    chances = [Chance(own, sampler) for own in seeds(few, options.seed)]
    limits = {"max_new_tokens": options.tokens, "stop_tokens": ladder.stop_tokens}
    book = shares(round_parts(ladder.target, drafts, texts, chances, **limits))
    book = book.rename(columns={"draft": "method"}).assign(top_k=sampler.top_k or 0)
    raced = rows.rename(columns={"speed_up": "ratio"}).assign(
        temperature=sampler.temperature,
        top_k=sampler.top_k or 0,
        domain=ALL,
        baseline=AUTOREGRESSIVE,
    )
    return counterfactuals(book, raced).droplevel(["temperature", "top_k"])
