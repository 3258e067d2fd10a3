"""The overhead ledger: where the seconds of a round go, and what the stopwatch costs.

Parts: "verify", the target's passes; "draft passes", those of each other model; "choice and noise",
the rule and every decision of chance; "KV moves", what `score` does around a pass; "tree", making,
cutting and merging guesses, the softmax that orders greedy ones included; "n-gram", drafts without
a model; "host", all else. What a draft does while a model runs inside it is the model's.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial, wraps
from itertools import product
from unittest import mock

import pandas as pd
from tqdm.auto import tqdm

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import models_in, parts_of, refuse_learners
from specdec_lib.core.protocols import Draft, LanguageModel, Rule, TreeGrower
from specdec_lib.core.verify import look_up
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.measure.race.contenders import time_rounds
from specdec_lib.workload import Ladder, Prompt, seeds

PARTS = ("verify", "draft passes", "choice and noise", "KV moves", "tree", "n-gram", "host")
VERIFY, DRAFTING, CHOICE, MOVES, TREE, TABLES, HOST = PARTS
DECISIONS = "choose rank gaps coin draw noise uniform noise_key".split()  # of chance
WARM_TOKENS = 16
Part = tuple[str, str]  # a part of the round, and the model it is of, or ""


class Stopwatch:
    """Self-times of nested parts; what happens outside every part is the host's."""

    def __init__(self) -> None:
        self._since = time.perf_counter()
        self._stack: list[Part] = [(HOST, "")]
        self._seconds: dict[Part, float] = defaultdict(float)

    @contextmanager
    def part(self, part: Part) -> Iterator[None]:
        """Within it, time is this part's."""
        self._charge()
        self._stack.append(part)
        try:
            yield
        finally:
            self._charge()
            self._stack.pop()

    def move(self, seconds: float, around: Part, to: Part) -> None:
        """Seconds of one part become another's."""
        self._seconds[around] -= seconds
        self._seconds[to] += seconds

    def lap(self) -> dict[Part, float]:
        """The seconds by part since the last lap."""
        self._charge()
        done, self._seconds = self._seconds, defaultdict(float)
        return done

    def _charge(self) -> None:
        now = time.perf_counter()
        self._seconds[self._stack[-1]] += now - self._since
        self._since = now


@contextmanager
def watched(target: LanguageModel, draft: Draft, watch: Stopwatch) -> Iterator[None]:
    """Within it, the models and drafts in a target and a draft, and all decisions of chance, run
    under a stopwatch: methods are replaced in their classes, for all objects of these.
    """
    inside, parts = set(), [*parts_of(target, draft)]
    drafts = (part for part in parts if isinstance(part, Draft) and not isinstance(part, NoDraft))
    tables = {id(part) for part in drafts if not models_in(part)}

    def call(around: Part, method: Callable, model: LanguageModel, *given, **named) -> object:
        if id(model) in inside:  # a model's method may call another one of its own
            return method(model, *given, **named)
        before, own = model.usage, (VERIFY if model is target else DRAFTING, model.name)
        if before is None:
            around = own
        elif around[0] == MOVES:
            around = (MOVES, model.name)
        inside.add(id(model))
        try:
            with watch.part(around):
                found = method(model, *given, **named)
        finally:
            inside.remove(id(model))
        if before is not None:
            watch.move((model.usage - before).seconds, around, own)
        return found

    with ExitStack() as replaced:
        for kind, part in {type(part): part for part in parts}.items():
            if isinstance(part, LanguageModel):
                _replace(replaced, kind, "score", partial(call, (MOVES, "")))
            if isinstance(part, TreeGrower):
                _replace(replaced, kind, "grow", partial(call, (TREE, "")))
                _replace(replaced, kind, "rank", partial(call, (TREE, "")))
            if isinstance(part, Draft):
                _replace(replaced, kind, "propose", partial(_propose, watch, tables))
        for name in DECISIONS:
            _replace(replaced, Chance, name, partial(_decide, watch))
        yield


def _replace(replaced: ExitStack, kind: type, name: str, wrapper: Callable) -> None:
    timed = _around(getattr(kind, name), wrapper)
    replaced.enter_context(mock.patch.object(kind, name, timed))


def _propose(
    watch: Stopwatch, tables: set[int], method: Callable, its: Draft, *given, **named
) -> object:
    with watch.part((TABLES if id(its) in tables else TREE, "")):
        return method(its, *given, **named)


def _around(method: Callable, wrapper: Callable) -> Callable:
    @wraps(method)
    def timed(*given: object, **named: object) -> object:
        return wrapper(method, *given, **named)

    return timed


def _decide(watch: Stopwatch, method: Callable, *given: object, **named: object) -> object:
    with watch.part((CHOICE, "")):
        return method(*given, **named)


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
    refuse_learners("a ledger", *drafts.values())
    limits, found = {"rule": rule, "stop_tokens": tuple(stop_tokens)}, []
    for draft in drafts.values():
        few = limits | {"max_new_tokens": min(WARM_TOKENS, max_new_tokens)}
        time_rounds(target, draft, prompts[0], chances[0], **few)
    limits["max_new_tokens"] = max_new_tokens
    turns = list(product(enumerate(zip(prompts, chances, strict=True)), enumerate(drafts.items())))
    bar = tqdm(turns, "ledger", disable=not progress, mininterval=1)
    for (number, (prompt, chance)), (place, (name, draft)) in bar:
        asked, watch, first = (target, draft, prompt, chance), Stopwatch(), (number + place) % 2
        labels = {"draft": name, "temperature": chance.sampler.temperature, "prompt": number}
        for timed in (first, not first):
            if timed:
                own = limits | {"rule": _around(rule, partial(_decide, watch))}
                with watched(target, draft, watch):
                    done, labels["wall_seconds"] = time_rounds(*asked, **own, on_start=watch.lap)
                    lap = watch.lap()
            else:
                _, labels["plain_seconds"] = time_rounds(*asked, **limits)
        labels["rounds"] = len(done)
        for (part, model), seconds in lap.items():
            found.append(labels | {"part": part, "model": model, "seconds": seconds})
    return pd.DataFrame(found)


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
        sums = group.groupby(["part", "model"], sort=False).seconds.sum()
        for part, model in sorted(sums.index, key=lambda key: PARTS.index(key[0])):
            found.append(
                {"draft": draft, "temperature": temperature, "part": part, "model": model}
                | {"round_seconds": sums[part, model] / count, "share": sums[part, model] / wall}
                | {"accounted": group.seconds.sum() / wall, "watch_cost": wall / plain - 1}
            )
    return pd.DataFrame(found)
