"""Stopwatches around what a round is made of: models, drafts, chance and the rule, timed from
outside and unchanged inside.

Times are self-times on one stack: what a draft does while a model runs inside it is the model's.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import wraps

from specdec_lib.core.chance import Chance
from specdec_lib.core.context import Context
from specdec_lib.core.protocols import Draft, LanguageModel, SourceReader, TreeGrower, Usage
from specdec_lib.core.tree import TokenTree
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.staged import StagedTree

PARTS = ("verify", "draft passes", "choice and noise", "KV moves", "tree", "n-gram", "host")
VERIFY, DRAFTING, CHOICE, MOVES, TREE, TABLES, HOST = PARTS
Part = tuple[str, str]  # a part of the round, and the model it is of, or ""
CHOOSING = (CHOICE, "")


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

    def timed(self, function: Callable, part: Part) -> Callable:
        """The same function, whose time is this part's."""

        @wraps(function)
        def timed(*given: object, **named: object) -> object:
            with self.part(part):
                return function(*given, **named)

        return timed

    def move(self, seconds: float, around: Part, to: Part) -> None:
        """Seconds of the part around a pass become another's."""
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


class TimedModel:
    """A model under a stopwatch: its own passes are one part, what `score` does around them the KV
    moves, what `grow` and `rank` do the tree's; a model that counts no seconds is all passes.
    """

    def __init__(self, model: LanguageModel, part: Part, watch: Stopwatch) -> None:
        self.name, self.vocabulary, self.runtime = model.name, model.vocabulary, model.runtime
        self.max_positions, self.forget = model.max_positions, model.forget
        self._model, self._part, self._watch = model, part, watch
        self.score = self._timed(model.score, part if model.usage is None else (MOVES, model.name))
        if isinstance(model, SourceReader):
            self.read_source = model.read_source
        if isinstance(model, TreeGrower):
            self.grow = self._timed(model.grow, (TREE, ""))
            self.rank = self._timed(model.rank, (TREE, ""))

    @property
    def usage(self) -> Usage | None:
        return self._model.usage

    def _timed(self, method: Callable, around: Part) -> Callable:
        watched = self._watch.timed(method, around)

        def timed(*given: object, **named: object) -> object:
            before = self.usage
            found = watched(*given, **named)
            if before is not None and (spent := self.usage - before).passes:
                self._watch.move(spent.seconds, around, self._part)
            return found

        return timed


@dataclass(frozen=True, eq=False)
class TimedDraft:
    """A draft under a stopwatch."""

    draft: Draft
    part: Part
    watch: Stopwatch = field(repr=False)

    def propose(self, context: Context, chance: Chance) -> TokenTree:
        with self.watch.part(self.part):
            return self.draft.propose(context, chance)


@dataclass(frozen=True)
class TimedChance(Chance):
    """The same decisions as a chance makes, each of them timed; `inner` keeps the stopwatch."""

    watch: Stopwatch | None = field(default=None, compare=False, repr=False)


def _time(name: str) -> None:
    def timed(self: TimedChance, *given: object) -> object:
        with self.watch.part(CHOOSING):
            return getattr(Chance, name)(self, *given)

    setattr(TimedChance, name, timed)


for _name in "choose rank gaps coin draw noise uniform noise_key".split():
    _time(_name)


def timed_parts(
    target: LanguageModel, draft: Draft, watch: Stopwatch
) -> tuple[LanguageModel, Draft]:
    """The same target and draft with every model in them under the stopwatch, and every part that
    guesses without one, such as an n-gram table: it counts nothing.

    A draft that is a dataclass is made anew wherever it holds a model; another is timed as a whole.
    """
    models = {id(target): TimedModel(target, (VERIFY, target.name), watch)}

    def timed(part: object) -> object:
        if isinstance(part, LanguageModel):
            if id(part) not in models and part.usage is None:
                return part
            return models.setdefault(id(part), TimedModel(part, (DRAFTING, part.name), watch))
        if type(part) in (list, tuple):
            made = [timed(one) for one in part]
            changed = any(new is not old for new, old in zip(made, part, strict=True))
            return type(part)(made) if changed else part
        if not isinstance(part, Draft) or isinstance(part, NoDraft) or not is_dataclass(part):
            return part
        old = {one.name: getattr(part, one.name) for one in fields(part) if one.init}
        new = {name: made for name, value in old.items() if (made := timed(value)) is not value}
        if isinstance(part, StagedTree) and isinstance(new.get("draft"), TimedDraft):
            del new["draft"]  # the staged tree grows it itself, so this time is the tree's
        return replace(part, **new) if new else TimedDraft(part, (TABLES, ""), watch)

    return timed(target), TimedDraft(timed(draft), (TREE, ""), watch)


def timed_chance(chance: Chance, watch: Stopwatch) -> TimedChance:
    """The same decisions under the stopwatch."""
    return TimedChance(chance.seed, chance.sampler, chance.nesting, watch)
