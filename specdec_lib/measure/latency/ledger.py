"""The overhead ledger: where the seconds of a round go, and what the stopwatch costs.

Parts: "verify", the target's passes; "draft passes", those of each other model; "choice and noise",
the rule and every decision of chance; "KV moves", what `score` does around a pass (finding paths,
masks, moving keys and values); "tree", building, cutting and merging guesses, the softmax that
orders greedy ones included; "n-gram", parts that guess without a model; "host", all else.
"""

import time
from collections.abc import Mapping, Sequence
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
COLUMNS = {"prompt", "part", "model", "seconds", "rounds", "wall_seconds", "plain_seconds"}


def ledger(
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
    """The seconds of every generation by part, a row per draft, prompt, part and model.

    drafts     by name
    chances    one per prompt

    The columns are: draft, temperature, top_k, prompt (its number), tokens, rounds; part, model (""
    where it is no model's), seconds; wall_seconds, of the whole generation with the ledger, and
    plain_seconds, of the same without it. Both runs follow each other, now one first, now the
    other; the reading of the prompt is in neither. Each draft first decodes a little of the first
    prompt, which is not counted.
    Raises ValueError if there is no draft or prompt, or not one chance per prompt.
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
        start = min(WARM_TOKENS, count)
        time_rounds(target, draft, prompts[0], chances[0], max_new_tokens=start, **limits)
    limits["max_new_tokens"] = count
    total = len(drafts) * len(prompts)
    with tqdm(total=total, desc="ledger", disable=not progress, mininterval=1) as bar:
        for number, (prompt, chance) in enumerate(zip(prompts, chances, strict=True)):
            for place, (name, draft) in enumerate(drafts.items()):
                order = (False, True) if (number + place) % 2 == 0 else (True, False)
                run = (target, draft, prompt, chance)
                rows = _generation(*run, limits, order)
                sampler = chance.sampler
                labels = {"temperature": sampler.temperature, "top_k": sampler.top_k}
                found += [{"draft": name} | labels | {"prompt": number} | row for row in rows]
                bar.update()
    return pd.DataFrame(found)


def _generation(
    target: LanguageModel,
    draft: Draft,
    prompt: Context | Sequence[int],
    chance: Chance,
    limits: dict,
    order: tuple[bool, bool],
) -> list[dict[str, object]]:
    """One generation with the ledger (True) and one without, in this order, as rows."""
    watch, walls = Stopwatch(limits["clock"]), {}
    for timed in order:
        if timed:
            parts = (*timed_parts(target, draft, watch), prompt, timed_chance(chance, watch))
            own = limits | {"rule": timed_rule(limits["rule"], watch)}
            done, walls[timed] = time_rounds(*parts, **own, on_start=watch.lap)
            lap = watch.lap()
        else:
            _, walls[timed] = time_rounds(target, draft, prompt, chance, **limits)
    both = {"wall_seconds": walls[True], "plain_seconds": walls[False]}
    counts = {"tokens": sum(len(one.emitted) for one in done), "rounds": len(done)}
    return [
        counts | {"part": part, "model": model, "seconds": seconds} | both
        for (part, model), seconds in lap.seconds.items()
    ]


def shares(table: "DataFrame", by: Sequence[str] = ("draft", "temperature")) -> "DataFrame":
    """Per group, part and model: round_seconds, and share of the wall time.

    Also accounted, all parts of the group ÷ its wall time, and watch_cost, its wall time ÷ that
    without the ledger, less 1.
    Raises ValueError if the table lacks a column of `ledger`.
    """
    import pandas as pd

    if missing := {*by, *COLUMNS} - set(table.columns):
        raise ValueError(
            f"shares are of the ledger's table, this one lacks {', '.join(sorted(missing))}"
        )
    found = []
    for key, group in table.groupby(list(by), sort=False, dropna=False):
        once = group.drop_duplicates("prompt")
        count, wall, plain = once[["rounds", "wall_seconds", "plain_seconds"]].sum()
        whole = {"accounted": group.seconds.sum() / wall, "watch_cost": wall / plain - 1}
        sums = group.fillna({"model": ""}).groupby(["part", "model"], sort=False).seconds.sum()
        for part, model in sorted(sums.index, key=lambda place: PARTS.index(place[0])):
            seconds = float(sums[part, model])
            labels = dict(zip(by, key, strict=True)) | {"part": part, "model": model}
            sizes = {"round_seconds": seconds / count, "share": seconds / wall}
            found.append(labels | sizes | whole)
    return pd.DataFrame(found)
