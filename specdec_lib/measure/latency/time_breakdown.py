"""The overhead ledger: where the seconds of a round go, and what the stopwatch costs.

Parts: "verify", the target's passes; "draft passes", those of each other model; "choice and noise",
the rule and every decision of chance; "KV moves", what `score` does around a pass; "tree", making,
cutting and merging guesses, the softmax that orders greedy ones included; "n-gram", drafts without
a model; "host", all else. What a draft does while a model runs inside it is the model's.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial, wraps
from itertools import product
from typing import Any

import pandas as pd
from tqdm.auto import tqdm

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.decode import Round, models_in, parts_of, refuse_learners
from specdec_lib.core.kinds import unchecked
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
    """Within it, the models and drafts in a target and a draft run under a stopwatch: each of them
    becomes an object of a subclass whose methods are timed, and is what it was afterwards.
    """
    parts = {id(part): part for part in parts_of(target, draft)}
    models = _TimedModels(target, watch)
    kinds = {number: type(part) for number, part in parts.items()}
    try:
        for number, part in parts.items():
            timed = _timed_methods(part, models, watch)
            _become(part, _subclass(kinds[number], timed))
        yield
    finally:
        for number, part in parts.items():
            _become(part, kinds[number])


def timed_chance(chance: Chance, watch: Stopwatch) -> Chance:
    """The same chance, whose every decision runs under a stopwatch."""
    kind = type(chance)
    timed = {name: watch.part((CHOICE, ""))(getattr(kind, name)) for name in DECISIONS}
    return unchecked(_subclass(kind, timed), **vars(chance))


def _timed_methods(
    part: LanguageModel | Draft, models: "_TimedModels", watch: Stopwatch
) -> dict[str, Callable]:
    """The methods of a model or a draft by name, under a stopwatch."""
    kind: Any = type(part)  # its functions are taken from the class, not bound
    timed = {}
    if isinstance(part, LanguageModel):
        timed["score"] = models.timed(kind.score, MOVES)
        if isinstance(part, TreeGrower):
            timed["grow"] = models.timed(kind.grow, TREE)
            timed["rank"] = models.timed(kind.rank, TREE)
    if isinstance(part, Draft):
        around = TREE if models_in(part) or isinstance(part, NoDraft) else TABLES
        timed["propose"] = watch.part((around, ""))(kind.propose)
    return timed


@dataclass(frozen=True)
class _TimedModels:
    """Charges what a model counts as its pass to the model, and the rest of a call to what was
    done around the pass.

    inside    the models whose methods run at this moment: one may call another of its own
    """

    target: LanguageModel
    watch: Stopwatch
    inside: set[int] = field(default_factory=set)

    def timed(self, method: Callable, around: str) -> Callable:
        """A method of a model, with its time charged to the pass and to this part of the round."""

        @wraps(method)
        def called(model: LanguageModel, *given: object, **named: object) -> object:
            if id(model) in self.inside:
                return method(model, *given, **named)
            before = model.usage
            own = (VERIFY if model is self.target else DRAFTING, model.name)
            host = own if before is None else (around, model.name if around == MOVES else "")
            self.inside.add(id(model))
            with self.watch.part(host):
                found = method(model, *given, **named)
            self.inside.remove(id(model))
            if before is not None:
                assert model.usage is not None  # it counted before
                seconds = (model.usage - before).seconds
                self.watch.seconds[host] -= seconds
                self.watch.seconds[own] += seconds
            return found

        return called


def _subclass(kind: type, methods: Mapping[str, Callable]) -> type:
    """A class of the same layout, so that an object can change between the two."""
    return type(kind.__name__, (kind,), {"__slots__": (), "__module__": kind.__module__, **methods})


def _become(part: object, kind: type) -> None:
    object.__setattr__(part, "__class__", kind)  # a frozen dataclass cannot be assigned to


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
    temperature, prompt (its number), rounds, tokens; part, model ("" where it is no model's),
    seconds; wall_seconds, of the whole generation with the ledger, and plain_seconds, without it.

    Both runs follow each other, now one first, now the other; the reading of the prompt is in
    neither. Each draft first continues the first prompt once more, which is not counted.
    """
    refuse_learners("a ledger", *drafts.values())
    limits = {"max_new_tokens": max_new_tokens, "stop_tokens": stop_tokens, "rule": look_up}
    found = []
    for draft in drafts.values():
        time_rounds(target, draft, prompts[0], chances[0], **limits)
    turns = list(product(enumerate(zip(prompts, chances, strict=True)), enumerate(drafts.items())))
    bar = tqdm(turns, "ledger", disable=not progress, mininterval=1)
    for (number, (prompt, chance)), (place, (name, draft)) in bar:
        labels = {"draft": name, "temperature": chance.sampler.temperature, "prompt": number}
        plain = partial(time_rounds, target, draft, prompt, chance, **limits)
        timed = partial(_timed_rounds, target, draft, prompt, chance, limits)
        if (number + place) % 2 == 1:
            done, wall, seconds_by_part = timed()
            _, labels["plain_seconds"] = plain()
        else:
            _, labels["plain_seconds"] = plain()
            done, wall, seconds_by_part = timed()
        tokens = sum(len(one.emitted) for one in done)
        labels |= {"rounds": len(done), "tokens": tokens, "wall_seconds": wall}
        for (part, model), seconds in seconds_by_part.items():
            found.append(labels | {"part": part, "model": model, "seconds": seconds})
    return pd.DataFrame(found)


def _timed_rounds(
    target: LanguageModel,
    draft: Draft,
    prompt: Sequence[int],
    chance: Chance,
    limits: Mapping[str, object],
) -> tuple[Sequence[Round], float, dict[Part, float]]:
    """The rounds of one generation, its seconds, and these by part."""
    watch = Stopwatch()
    watching = {**limits, "rule": watch.part((CHOICE, ""))(look_up), "on_start": watch.lap}
    with watched(target, draft, watch):
        done, wall = time_rounds(target, draft, prompt, timed_chance(chance, watch), **watching)
        return done, wall, watch.lap()


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
    """Per draft, temperature, part and model of `round_parts`: round_seconds and token_seconds, per
    round and per token, and share of the wall time; also accounted, all parts of a draft ÷ its wall
    time, and watch_cost, its wall time ÷ that without the ledger, less 1.
    """
    found = []
    for (draft, temperature), group in table.groupby(["draft", "temperature"], sort=False):
        once = group.drop_duplicates("prompt")
        counts = once[["rounds", "tokens", "wall_seconds", "plain_seconds"]].sum()
        count, tokens, wall, plain = counts
        sums = group.groupby(["part", "model"], sort=False).seconds.sum().reset_index()
        sums = sums.sort_values("part", key=lambda part: part.map(PARTS.index), kind="stable")
        labels = {
            "draft": draft,
            "temperature": temperature,
            "part": sums.part,
            "model": sums.model,
        }
        spent = {"round_seconds": sums.seconds / count, "token_seconds": sums.seconds / tokens}
        spent["share"] = sums.seconds / wall
        costs = {"accounted": group.seconds.sum() / wall, "watch_cost": wall / plain - 1}
        found.append(pd.DataFrame(labels | spent | costs))
    return pd.concat(found, ignore_index=True)
