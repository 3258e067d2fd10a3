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
from specdec_lib.core.decode import models_in, parts_of, refuse_learners
from specdec_lib.core.protocols import Draft, LanguageModel, TreeGrower
from specdec_lib.core.verify import look_up
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.measure.contenders import time_rounds
from specdec_lib.workload import Ladder, Prompt, seeds

PARTS = ("verify", "draft passes", "choice and noise", "KV moves", "tree", "n-gram", "host")
VERIFY, DRAFTING, CHOICE, MOVES, TREE, TABLES, HOST = PARTS
DECISIONS = "choose rank gaps coin draw noise uniform noise_key".split()  # of chance
Part = tuple[str, str]  # a part of the round, and the model it is of, or ""


class Stopwatch:
    """Self-times of nested parts; what happens outside every part is the host's."""

    def __init__(self) -> None:
        self._since = time.perf_counter()
        self._stack: list[Part] = [(HOST, "")]
        self.seconds: dict[Part, float] = defaultdict(float)

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

    def lap(self) -> dict[Part, float]:
        """The seconds by part since the last lap."""
        self._charge()
        done, self.seconds = self.seconds, defaultdict(float)
        return done

    def _charge(self) -> None:
        now = time.perf_counter()
        self.seconds[self._stack[-1]] += now - self._since
        self._since = now


@contextmanager
def watched(target: LanguageModel, draft: Draft, watch: Stopwatch) -> Iterator[None]:
    """Within it, the models and drafts in a target and a draft, and all decisions of chance, run
    under a stopwatch: methods are replaced in their classes, for all objects of these.
    """
    inside, parts = set(), [*parts_of(target, draft)]
    drafts = (part for part in parts if isinstance(part, Draft) and not isinstance(part, NoDraft))
    tables = {id(part) for part in drafts if not models_in(part)}

    def call(around: str, method: Callable, model: LanguageModel, *given, **named) -> object:
        if id(model) in inside:  # a model's method may call another one of its own
            return method(model, *given, **named)
        before, own = model.usage, (VERIFY if model is target else DRAFTING, model.name)
        host = own if before is None else (around, model.name if around == MOVES else "")
        inside.add(id(model))
        with watch.part(host):
            found = method(model, *given, **named)
        inside.remove(id(model))
        if before is not None:
            seconds = (model.usage - before).seconds
            watch.seconds[host] -= seconds
            watch.seconds[own] += seconds
        return found

    def propose(method: Callable, its: Draft, *given, **named) -> object:
        with watch.part((TABLES if id(its) in tables else TREE, "")):
            return method(its, *given, **named)

    replaced = [(Chance, name, watch.part((CHOICE, ""))) for name in DECISIONS]
    for kind, part in {type(part): part for part in parts}.items():
        names = {"score": MOVES} if isinstance(part, LanguageModel) else {}
        names |= {"grow": TREE, "rank": TREE} if isinstance(part, TreeGrower) else {}
        for name, around in names.items():
            replaced.append((kind, name, partial(_around, partial(call, around))))
        if isinstance(part, Draft):
            replaced.append((kind, "propose", partial(_around, propose)))
    with ExitStack() as stack:
        for kind, name, timed in replaced:
            stack.enter_context(mock.patch.object(kind, name, timed(getattr(kind, name))))
        yield


def _around(wrapper: Callable, method: Callable) -> Callable:
    return wraps(method)(lambda *given, **named: wrapper(method, *given, **named))


def round_parts(
    target: LanguageModel,
    drafts: Mapping[str, Draft],
    prompts: Sequence[Sequence[int]],
    chances: Sequence[Chance],
    *,
    max_new_tokens: int = 64,
    stop_tokens: Sequence[int] = (),
    progress: bool = True,
) -> pd.DataFrame:
    """The seconds of every generation by part, a row per draft, prompt, part and model: draft,
    temperature, prompt (its number), rounds; part, model ("" where it is no model's), seconds;
    wall_seconds, of the whole generation with the ledger, and plain_seconds, without it.

    Both runs follow each other, now one first, now the other; the reading of the prompt is in
    neither. Each draft first continues the first prompt once more, which is not counted.
    """
    refuse_learners("a ledger", *drafts.values())
    limits, found = {"max_new_tokens": max_new_tokens, "stop_tokens": stop_tokens}, []
    limits["rule"] = look_up
    for draft in drafts.values():
        time_rounds(target, draft, prompts[0], chances[0], **limits)
    turns = list(product(enumerate(zip(prompts, chances, strict=True)), enumerate(drafts.items())))
    bar = tqdm(turns, "ledger", disable=not progress, mininterval=1)
    for (number, (prompt, chance)), (place, (name, draft)) in bar:
        asked, watch, first = (target, draft, prompt, chance), Stopwatch(), (number + place) % 2
        labels = {"draft": name, "temperature": chance.sampler.temperature, "prompt": number}
        watching = limits | {"rule": watch.part((CHOICE, ""))(look_up)}
        for timed in (first, not first):
            if timed:
                with watched(target, draft, watch):
                    done, wall = time_rounds(*asked, **watching, on_start=watch.lap)
                    lap = watch.lap()
            else:
                _, labels["plain_seconds"] = time_rounds(*asked, **limits)
        labels |= {"rounds": len(done), "wall_seconds": wall}
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
    """`shares` of a round of each of these drafts on these prompts."""
    texts = [ladder.encode(prompt) for prompt in prompts]
    chances = [Chance(own, sampler) for own in seeds(prompts, seed)]
    limits = {"max_new_tokens": tokens, "stop_tokens": ladder.stop_tokens, "progress": progress}
    return shares(round_parts(ladder.target, drafts, texts, chances, **limits))


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
        sums = sums.sort_values("part", key=lambda part: part.map(PARTS.index), kind="stable")
        labels = {
            "draft": draft,
            "temperature": temperature,
            "part": sums.part,
            "model": sums.model,
        }
        spent = {"round_seconds": sums.seconds / count, "share": sums.seconds / wall}
        costs = {"accounted": group.seconds.sum() / wall, "watch_cost": wall / plain - 1}
        found.append(pd.DataFrame(labels | spent | costs))
    return pd.concat(found, ignore_index=True)
