"""The overhead ledger: where the seconds of a round go, and what looking costs.

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
from specdec_lib.core.decode import read_prompt, rounds
from specdec_lib.core.protocols import Draft, LanguageModel, Rule
from specdec_lib.core.verify import look_up
from specdec_lib.measure.latency.passes import Clock
from specdec_lib.measure.latency.wrapping import (
    CHOICE,
    DRAFTING,
    HOST,
    MOVES,
    TABLES,
    TREE,
    VERIFY,
    Lap,
    Stopwatch,
    watched,
    watched_chance,
    watched_rule,
)

if TYPE_CHECKING:
    from pandas import DataFrame

PARTS = (VERIFY, DRAFTING, CHOICE, MOVES, TREE, TABLES, HOST)
WARM_TOKENS = 16


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
    found = []
    settings = {
        "max_new_tokens": int(max_new_tokens),
        "rule": rule,
        "stop_tokens": tuple(stop_tokens),
        "clock": clock,
    }
    with tqdm(
        total=len(drafts) * len(prompts), desc="ledger", disable=not progress, mininterval=1
    ) as bar:
        for number, (prompt, chance) in enumerate(zip(prompts, chances, strict=True)):
            for place, (name, draft) in enumerate(drafts.items()):
                if number == 0:
                    run(
                        target,
                        draft,
                        prompt,
                        chance,
                        **settings | {"max_new_tokens": min(WARM_TOKENS, int(max_new_tokens))},
                    )
                labels = {
                    "draft": name,
                    "temperature": chance.sampler.temperature,
                    "top_k": chance.sampler.top_k,
                    "prompt": number,
                }
                found += _generation(
                    target,
                    draft,
                    prompt,
                    chance,
                    settings,
                    plain_first=(number + place) % 2 == 0,
                    labels=labels,
                )
                bar.update()
    return pd.DataFrame(found)


def _generation(
    target: LanguageModel,
    draft: Draft,
    prompt: Context | Sequence[int],
    chance: Chance,
    settings: dict,
    *,
    plain_first: bool,
    labels: dict,
) -> list[dict[str, object]]:
    """One generation with the ledger and one without, as rows."""
    watch = Stopwatch(settings["clock"])
    timed = {"rule": watched_rule(settings["rule"], watch), "watch": watch}
    plain: list[float] = []
    if plain_first:
        plain.append(run(target, draft, prompt, chance, **settings)[2])
    tokens, played, wall, lap = run(
        *watched(target, draft, watch), prompt, watched_chance(chance, watch), **settings | timed
    )
    if not plain_first:
        plain.append(run(target, draft, prompt, chance, **settings)[2])
    both = {"wall_seconds": wall, "plain_seconds": plain[0]}
    counts = {"tokens": tokens, "rounds": played}
    return [
        labels | counts | {"part": part, "model": model, "seconds": seconds} | both
        for (part, model), seconds in lap.seconds.items()
    ]


def run(
    target: LanguageModel,
    draft: Draft,
    prompt: Context | Sequence[int],
    chance: Chance,
    *,
    max_new_tokens: int,
    rule: Rule,
    stop_tokens: Sequence[int],
    clock: Clock,
    watch: Stopwatch | None = None,
) -> tuple[int, int, float, Lap | None]:
    """Tokens, rounds and wall seconds of one generation after its prompt was read, and the
    stopwatch's lap.
    """
    context = prompt if isinstance(prompt, Context) else Context.of(prompt)
    read_prompt(target, draft, context)
    tokens = played = 0
    if watch is not None:
        watch.lap()
    started = clock()
    for one, _ in rounds(
        target,
        draft,
        context,
        chance,
        max_new_tokens=max_new_tokens,
        rule=rule,
        stop_tokens=stop_tokens,
    ):
        tokens += len(one.emitted)
        played += 1
    wall = clock() - started
    return tokens, played, wall, None if watch is None else watch.lap()


def shares(table: "DataFrame", by: Sequence[str] = ("draft", "temperature")) -> "DataFrame":
    """Per group, part and model: round_seconds, and share of the wall time.

    Also accounted, all parts of the group ÷ its wall time, and watch_cost, its wall time ÷ that
    without the ledger, less 1.
    Raises ValueError if the table lacks a column of `ledger`.
    """
    import pandas as pd

    if missing := {
        *by,
        "prompt",
        "part",
        "model",
        "seconds",
        "rounds",
        "wall_seconds",
        "plain_seconds",
    } - set(table.columns):
        raise ValueError(
            f"shares are of the ledger's table, this one lacks {', '.join(sorted(missing))}"
        )
    found = []
    for key, group in table.groupby(list(by), sort=False, dropna=False):
        once = group.drop_duplicates("prompt")
        rounds_played, wall, plain = (
            float(once[name].sum()) for name in ("rounds", "wall_seconds", "plain_seconds")
        )
        whole = {"accounted": group.seconds.sum() / wall, "watch_cost": wall / plain - 1}
        sums = group.fillna({"model": ""}).groupby(["part", "model"], sort=False).seconds.sum()
        for part, model in sorted(sums.index, key=lambda place: PARTS.index(place[0])):
            seconds = float(sums[part, model])
            labels = dict(zip(by, key, strict=True)) | {"part": part, "model": model}
            found.append(
                labels | {"round_seconds": seconds / rounds_played, "share": seconds / wall} | whole
            )
    return pd.DataFrame(found)
