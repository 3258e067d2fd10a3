"""Stopwatches around what a round is made of: models, drafts, chance and the rule, timed from
outside and unchanged inside.

Times are self-times on one stack: what a draft does while a model runs inside it is the model's.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import wraps
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from specdec_lib.core.chance import Chance
from specdec_lib.core.context import Context
from specdec_lib.core.protocols import (
    Draft,
    LanguageModel,
    Ranked,
    Rule,
    SourceReader,
    TreeGrower,
    Usage,
    Verdict,
)
from specdec_lib.core.tree import MatchTable, TokenTree
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.drafts.staged import StagedTree
from specdec_lib.measure.race.contenders import Clock

PARTS = VERIFY, DRAFTING, CHOICE, MOVES, TREE, TABLES, HOST = (
    "verify",
    "draft passes",
    "choice and noise",
    "KV moves",
    "tree",
    "n-gram",
    "host",
)
Part = tuple[str, str]  # a part of the round, and the model it is of, or ""
CHOOSING = (CHOICE, "")


class Lap(NamedTuple):
    """What was spent since the last lap."""

    seconds: dict[Part, float]
    passes: list[tuple[str, Usage, int]]  # model, what a call used, and the context before it


class Stopwatch:
    """Self-times of nested parts; what happens outside every part is the host's."""

    def __init__(self, clock: Clock = time.perf_counter) -> None:
        self._clock = clock
        self._stack: list[Part] = [(HOST, "")]
        self._since = clock()
        self._lap = Lap(defaultdict(float), [])

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

    def note_pass(self, model: str, spent: Usage, context: int, around: Part, to: Part) -> None:
        """Note a call of a model, of one pass as a rule, whose seconds move from the part around it
        to its own.
        """
        self._lap.seconds[around] -= spent.seconds
        self._lap.seconds[to] += spent.seconds
        self._lap.passes.append((model, spent, context))

    def lap(self) -> Lap:
        """What was spent since the last lap."""
        self._charge()
        done, self._lap = self._lap, Lap(defaultdict(float), [])
        return done

    def _charge(self) -> None:
        now = self._clock()
        self._lap.seconds[self._stack[-1]] += now - self._since
        self._since = now


class TimedModel:
    """A model under a stopwatch: its own passes are one part, what `score` does around them the KV
    moves; a model that counts no seconds is all passes.
    """

    def __init__(self, model: LanguageModel, part: Part, watch: Stopwatch) -> None:
        self.name, self.vocabulary = model.name, model.vocabulary
        self.max_positions = model.max_positions
        self._model, self._part, self._watch = model, part, watch

    @property
    def runtime(self) -> str:
        return self._model.runtime

    @property
    def usage(self) -> Usage | None:
        return self._model.usage

    def forget(self) -> None:
        self._model.forget()

    def read_source(self, context: Context) -> None:
        if isinstance(self._model, SourceReader):
            self._model.read_source(context)

    def score(self, context: Context, tree: TokenTree) -> Float[Tensor, "nodes vocab"]:
        around = self._part if self.usage is None else (MOVES, self.name)
        with self._timed(around, context):
            return self._model.score(context, tree)

    def grow(
        self,
        context: Context,
        chance: Chance,
        *,
        widths: Sequence[int],
        budget: int | None,
        floor: float,
        match: MatchTable,
    ) -> TokenTree | None:
        """As the model's, None if it grows none; what it does around its passes is the tree's."""
        if not isinstance(self._model, TreeGrower):
            return None
        with self._timed((TREE, ""), context):
            return self._model.grow(
                context, chance, widths=widths, budget=budget, floor=floor, match=match
            )

    def rank(
        self, context: Context, tree: TokenTree, chance: Chance, *, width: int, match: MatchTable
    ) -> Callable[[int], Ranked] | None:
        """As the model's, None if it ranks none."""
        if not isinstance(self._model, TreeGrower):
            return None
        with self._timed((TREE, ""), context):
            return self._model.rank(context, tree, chance, width=width, match=match)

    @contextmanager
    def _timed(self, around: Part, context: Context) -> Iterator[None]:
        """Within it, time is this model's where it counts passes, else that of the part around."""
        before = self._model.usage
        with self._watch.part(around):
            yield
        if before is not None and (spent := self._model.usage - before).passes:
            self._watch.note_pass(self.name, spent, len(context) - 1, around, self._part)


@dataclass(frozen=True, eq=False)
class TimedDraft:
    """A draft under a stopwatch."""

    draft: Draft
    part: Part
    watch: Stopwatch = field(repr=False)

    def propose(self, context: Context, chance: Chance) -> TokenTree:
        with self.watch.part(self.part):
            return self.draft.propose(context, chance)


def _timed(method: Callable) -> Callable:
    @wraps(method)
    def timed(self: "TimedChance", *given: object) -> object:
        with self.watch.part(CHOOSING):
            return method(self, *given)

    return timed


@dataclass(frozen=True)
class TimedChance(Chance):
    """The same decisions as a chance makes, each of them timed; `inner` keeps the stopwatch."""

    watch: Stopwatch | None = field(default=None, compare=False, repr=False)

    choose = _timed(Chance.choose)
    rank = _timed(Chance.rank)
    gaps = _timed(Chance.gaps)
    coin = _timed(Chance.coin)
    draw = _timed(Chance.draw)
    noise = _timed(Chance.noise)
    uniform = _timed(Chance.uniform)
    noise_key = _timed(Chance.noise_key)


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


def timed_rule(rule: Rule, watch: Stopwatch) -> Rule:
    """The same rule; its walk counts as choice."""

    def timed(tree: TokenTree, target_logits: Tensor, chance: Chance) -> Verdict:
        with watch.part(CHOOSING):
            return rule(tree, target_logits, chance)

    return timed
