"""The overhead ledger: where the seconds of a round go, and what the stopwatch costs.

Parts: "verify", the target's passes; "draft passes", those of each other model; "choice and noise",
the rule and every decision of chance; "KV moves", what `score` does around a pass (finding paths,
masks, moving keys and values); "tree", building, cutting and merging guesses, the softmax that
orders greedy ones included; "n-gram", parts that guess without a model; "host", all else.
"""

import time
from collections.abc import Mapping, Sequence
from itertools import product
from numbers import Integral
from typing import TYPE_CHECKING

from specdec_lib.core.chance import Chance
from specdec_lib.core.context import Context
from specdec_lib.core.protocols import Draft, LanguageModel, Rule
from specdec_lib.core.verify import look_up
from specdec_lib.measure.latency.stopwatch import (
    PARTS,
    Stopwatch,
    timed_chance,
    timed_parts,
    timed_rule,
)
from specdec_lib.measure.race.contenders import Clock, time_rounds

if TYPE_CHECKING:
    from pandas import DataFrame

WARM_TOKENS = 16


def round_parts(
    target: LanguageModel,
    drafts: Mapping[str, Draft],
    prompts: Sequence[Context | Sequence[int]],
    chances: Sequence[Chance],
    *,
    max_new_tokens: Integral = 64,
    rule: Rule = look_up,
    stop_tokens: Sequence[int] = (),
    clock: Clock = time.perf_counter,
    progress: bool = True,
) -> "DataFrame":
    """The seconds of every generation by part, a row per draft, prompt, part and model: draft,
    temperature, prompt (its number), rounds; part, model ("" where it is no model's), seconds;
    wall_seconds, of the whole generation with the ledger, and plain_seconds, without it.

    chances    one per prompt

    Both runs follow each other, now one first, now the other; the reading of the prompt is in
    neither. Each draft first decodes a little of the first prompt, which is not counted.
    """
    import pandas as pd
    from tqdm.auto import tqdm

    if not drafts or not prompts or len(prompts) != len(chances):
        raise ValueError(
            f"a ledger needs a draft, a prompt and a chance per prompt, got {len(drafts)},"
            f" {len(prompts)} and {len(chances)}"
        )
    limits = {"rule": rule, "stop_tokens": tuple(stop_tokens), "clock": clock}
    count, found = int(max_new_tokens), []
    for draft in drafts.values():
        few = min(WARM_TOKENS, count)
        time_rounds(target, draft, prompts[0], chances[0], max_new_tokens=few, **limits)
    limits["max_new_tokens"] = count
    turns = list(product(enumerate(zip(prompts, chances, strict=True)), enumerate(drafts.items())))
    bar = tqdm(turns, "ledger", disable=not progress, mininterval=1)
    for (number, (prompt, chance)), (place, (name, draft)) in bar:
        labels = {"draft": name, "temperature": chance.sampler.temperature, "prompt": number}
        first = (number + place) % 2 == 1
        rows = _generation(target, draft, prompt, chance, limits, watched_first=first)
        found += [labels | row for row in rows]
    return pd.DataFrame(found)


def _generation(
    target: LanguageModel,
    draft: Draft,
    prompt: Context | Sequence[int],
    chance: Chance,
    limits: dict,
    *,
    watched_first: bool,
) -> list[dict[str, object]]:
    """One generation with the ledger and one without, as rows."""
    watch, walls = Stopwatch(limits["clock"]), {}
    for watched in (watched_first, not watched_first):
        if watched:
            parts = (*timed_parts(target, draft, watch), prompt, timed_chance(chance, watch))
            own = limits | {"rule": timed_rule(limits["rule"], watch)}
            done, walls["wall_seconds"] = time_rounds(*parts, **own, on_start=watch.lap)
            lap = watch.lap()
        else:
            _, walls["plain_seconds"] = time_rounds(target, draft, prompt, chance, **limits)
    return [
        {"rounds": len(done), "part": part, "model": model, "seconds": seconds} | walls
        for (part, model), seconds in lap.seconds.items()
    ]


def shares(table: "DataFrame") -> "DataFrame":
    """Per draft, temperature, part and model of `round_parts`: round_seconds, and share of the wall
    time.

    Also accounted, all parts of a draft ÷ its wall time, and watch_cost, its wall time ÷ that
    without the ledger, less 1.
    """
    import pandas as pd

    found = []
    for (draft, temperature), group in table.groupby(["draft", "temperature"], sort=False):
        once = group.drop_duplicates("prompt")
        count, wall, plain = once[["rounds", "wall_seconds", "plain_seconds"]].sum()
        sums = group.groupby(["part", "model"], sort=False).seconds.sum().reset_index()
        sums = sums.sort_values("part", key=lambda parts: parts.map(PARTS.index), kind="stable")
        found.append(
            sums.assign(
                draft=draft,
                temperature=temperature,
                round_seconds=sums.seconds / count,
                share=sums.seconds / wall,
                accounted=group.seconds.sum() / wall,
                watch_cost=wall / plain - 1,
            )
        )
    columns = ["draft", "temperature", "part", "model", "round_seconds"]
    columns += ["share", "accounted", "watch_cost"]
    return pd.concat(found, ignore_index=True)[columns]
