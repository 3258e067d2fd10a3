"""The overhead ledger: where the seconds of a round go, and what the stopwatch costs.

Parts: "verify", the target's passes; "draft passes", those of each other model; "choice and noise",
the rule and every decision of chance; "KV moves", what `score` does around a pass (finding paths,
masks, moving keys and values); "tree", building, cutting and merging guesses, the softmax that
orders greedy ones included; "n-gram", parts that guess without a model; "host", all else.
"""

from collections.abc import Mapping, Sequence
from itertools import product

import pandas as pd
from tqdm.auto import tqdm

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import refuse_learners
from specdec_lib.core.protocols import Draft, LanguageModel, Rule
from specdec_lib.core.verify import look_up
from specdec_lib.measure.latency.stopwatch import (
    CHOOSING,
    PARTS,
    Stopwatch,
    timed_chance,
    timed_parts,
)
from specdec_lib.measure.race.contenders import time_rounds
from specdec_lib.workload import Ladder, Prompt, seeds

WARM_TOKENS = 16


def round_parts(
    target: LanguageModel,
    drafts: Mapping[str, Draft],
    prompts: Sequence[Context | Sequence[int]],
    chances: Sequence[Chance],
    *,
    max_new_tokens: int = 64,
    rule: Rule = look_up,
    stop_tokens: Sequence[int] = (),
    progress: bool = True,
) -> pd.DataFrame:
    """The seconds of every generation by part, a row per draft, prompt, part and model: draft,
    temperature, prompt (its number), rounds; part, model ("" where it is no model's), seconds;
    wall_seconds, of the whole generation with the ledger, and plain_seconds, without it.

    Both runs follow each other, now one first, now the other; the reading of the prompt is in
    neither. Each draft first decodes a little of the first prompt, which is not counted.
    """
    if not drafts or not prompts or len(prompts) != len(chances):
        got = f"{len(drafts)}, {len(prompts)} and {len(chances)}"
        raise ValueError(f"a ledger needs a draft, a prompt and a chance per prompt, got {got}")
    refuse_learners("a ledger", *drafts.values())
    limits = {"rule": rule, "stop_tokens": tuple(stop_tokens)}
    few, found = min(WARM_TOKENS, max_new_tokens), []
    for draft in drafts.values():
        time_rounds(target, draft, prompts[0], chances[0], max_new_tokens=few, **limits)
    limits["max_new_tokens"] = max_new_tokens
    turns = list(product(enumerate(zip(prompts, chances, strict=True)), enumerate(drafts.items())))
    bar = tqdm(turns, "ledger", disable=not progress, mininterval=1)
    for (number, (prompt, chance)), (place, (name, draft)) in bar:
        labels = {"draft": name, "temperature": chance.sampler.temperature, "prompt": number}
        first = (number + place) % 2 == 1
        rows = _generation((target, draft, prompt, chance), limits, first)
        found += [labels | row for row in rows]
    return pd.DataFrame(found)


def _generation(
    asked: tuple[LanguageModel, Draft, Context | Sequence[int], Chance],
    limits: dict,
    watched_first: bool,
) -> list[dict[str, object]]:
    """One generation with the ledger and one without, as rows."""
    watch, walls = Stopwatch(), {}
    for watched in (watched_first, not watched_first):
        if watched:
            *models, prompt, chance = asked
            parts = (*timed_parts(*models, watch), prompt, timed_chance(chance, watch))
            own = limits | {"rule": watch.timed(limits["rule"], CHOOSING)}
            done, walls["wall_seconds"] = time_rounds(*parts, **own, on_start=watch.lap)
            lap = watch.lap()
        else:
            _, walls["plain_seconds"] = time_rounds(*asked, **limits)
    return [
        {"rounds": len(done), "part": part, "model": model, "seconds": seconds} | walls
        for (part, model), seconds in lap.items()
    ]


def method_ledger(
    ladder: Ladder,
    sampler: Sampler,
    drafts: Mapping[str, Draft],
    prompts: Sequence[Prompt],
    *,
    tokens: int,
    seed: int = 0,
    progress: bool = True,
) -> pd.DataFrame:
    """`shares` of a round of each method's draft on these prompts, with the sampler's columns."""
    texts = [ladder.encode(prompt) for prompt in prompts]
    chances = [Chance(own, sampler) for own in seeds(prompts, seed)]
    limits = {"max_new_tokens": tokens, "stop_tokens": ladder.stop_tokens, "progress": progress}
    table = shares(round_parts(ladder.target, drafts, texts, chances, **limits))
    return table.rename(columns={"draft": "method"}).assign(top_k=sampler.top_k or 0)


def shares(table: pd.DataFrame) -> pd.DataFrame:
    """Per draft, temperature, part and model of `round_parts`: round_seconds, and share of the wall
    time; also accounted, all parts of a draft ÷ its wall time, and watch_cost, its wall time ÷ that
    without the ledger, less 1.
    """
    found = []
    for (draft, temperature), group in table.groupby(["draft", "temperature"], sort=False):
        once = group.drop_duplicates("prompt")
        count, wall, plain = once[["rounds", "wall_seconds", "plain_seconds"]].sum()
        sums = group.groupby(["part", "model"], sort=False).seconds.sum().reset_index()
        sums = sums.sort_values("part", key=lambda parts: parts.map(PARTS.index), kind="stable")
        whole = {"accounted": group.seconds.sum() / wall, "watch_cost": wall / plain - 1}
        times = {"round_seconds": sums.seconds / count, "share": sums.seconds / wall}
        sums.insert(0, "draft", draft)
        sums.insert(1, "temperature", temperature)
        found.append(sums.drop(columns="seconds").assign(**times, **whole))
    return pd.concat(found, ignore_index=True)
