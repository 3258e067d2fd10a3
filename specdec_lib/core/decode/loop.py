"""The loop: a round proposes, scores and verifies, and emits the accepted tokens and one more."""

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from specdec_lib.core.chance import Chance
from specdec_lib.core.context import Context
from specdec_lib.core.decode.parts import learners_in, models_in, vocabularies_in
from specdec_lib.core.kinds import Within, checked, shown
from specdec_lib.core.protocols import (
    Draft,
    LanguageModel,
    Learner,
    Rewinder,
    Rule,
    SourceReader,
    Usage,
)
from specdec_lib.core.tree import ROOT, TokenTree
from specdec_lib.core.verify import look_up

TokensSoFar = Context | Sequence[int]
BONUS = "target"  # the source of a token that no drafter guessed
NewTokens = Annotated[int, Within(1, 2**20)]  # which is more than any context holds


@dataclass(frozen=True)
class Round:
    """The record of one round.

    tree       what was proposed, without rows, cut to the room that was left
    path       the accepted nodes, from below the root down, without those after a stop token
    emitted    the accepted tokens and one more; nothing after a stop token
    sources    the drafter of each emitted token; "target" for the correction or bonus
    tried      number of depths with tested guesses: the accepted ones, and one where all failed
    usage      what each model that counts has computed, by name
    seconds    wall time, learning included
    """

    tree: TokenTree
    path: tuple[int, ...]
    emitted: tuple[int, ...]
    sources: tuple[str, ...]
    tried: int
    usage: dict[str, Usage]
    seconds: float

    @property
    def proposed(self) -> int:
        """The number of guesses that the target scored, on the accepted path or not."""
        return self.tree.guesses

    @property
    def accepted(self) -> int:
        """The number of accepted guesses, up to and including a stop token."""
        return len(self.path)

    def first(self, count: int) -> "Round":
        """This round if the text ends after the first `count` of its tokens: guesses beyond are
        neither accepted nor tried.
        """
        tried = self.tried if count > self.accepted else count
        return replace(
            self,
            path=self.path[:count],
            emitted=self.emitted[:count],
            sources=self.sources[:count],
            tried=tried,
        )

    @property
    def overhead_seconds(self) -> float:
        """Seconds that no model counts: Python, copying, masks, n-gram tables outside a `grow`."""
        return self.seconds - sum(used.seconds for used in self.usage.values())


@dataclass(frozen=True)
class Generation:
    """A decoded continuation and its rounds.

    stop       why it ended: "stop token", "length" or "context", see `rounds`
    prefill    usage by model's name while the prompt was read
    """

    context: Context
    rounds: tuple[Round, ...]
    stop: str
    prefill: dict[str, Usage]

    @property
    def tokens(self) -> tuple[int, ...]:
        """The new tokens alone, without those given."""
        return tuple(token for played in self.rounds for token in played.emitted)

    @property
    def tokens_per_round(self) -> float:
        """The emitted tokens, corrections and bonuses included, divided by the rounds."""
        return len(self.tokens) / len(self.rounds)


@checked
def decode(
    target: LanguageModel,
    draft: Draft,
    prompt: TokensSoFar,
    chance: Chance,
    *,
    max_new_tokens: NewTokens,
    rule: Rule = look_up,
    stop_tokens: Collection[int] = (),
) -> Generation:
    """Continue `prompt` with the tokens that `target` alone would generate (`look_up`) or with its
    distribution (`reject`). Models first forget what they read; for the arguments see `rounds`.
    """
    context = check_arguments(target, draft, prompt)
    run = _run(target, draft, chance, rule, stop_tokens)
    prefill = read_prompt(target, draft, context)
    done = []
    stop = ""
    for played, ended in run.rounds(context, max_new_tokens):
        context = context.extended(played.emitted)
        stop = ended or ""  # the last round says why
        done.append(played)
    return Generation(context, tuple(done), stop, prefill)


@checked
def rounds(
    target: LanguageModel,
    draft: Draft,
    prompt: TokensSoFar,
    chance: Chance,
    *,
    max_new_tokens: NewTokens,
    rule: Rule = look_up,
    stop_tokens: Collection[int] = (),
) -> Iterator[tuple[Round, str | None]]:
    """Yield each round as it ends, with the reason if it is the last ("stop token", "length" or
    "context": no more positions), else None. `read_prompt` before changes no token.

    prompt         tokens, or a context whose generated part is continued
    rule           `look_up` accepts most from "ranked" siblings, `reject` from drawn ones
    stop_tokens    each ends the generation when it is emitted, and is part of the output

    Raises ValueError, before any work, if an argument does not fit.
    """
    context = check_arguments(target, draft, prompt)
    return _run(target, draft, chance, rule, stop_tokens).rounds(context, max_new_tokens)


def check_arguments(target: LanguageModel, draft: Draft, prompt: TokensSoFar) -> Context:
    """The prompt as a context; raises ValueError unless it and the draft fit the target."""
    context = prompt if isinstance(prompt, Context) else Context.of(tuple(map(int, prompt)))
    vocabulary = target.vocabulary
    most = target.max_positions
    if (largest := max(context.tokens)) >= vocabulary:
        raise ValueError(
            f"the prompt holds token {largest}, the target's vocabulary ends at {vocabulary - 1}"
        )
    if len(context) > most:
        raise ValueError(f"the prompt has {len(context)} tokens, the target reads at most {most}")
    for name, size in vocabularies_in(draft):
        if size != vocabulary:
            raise ValueError(
                f"a draft must share the target's vocabulary: {name} has {size} tokens,"
                f" {target.name} {vocabulary}"
            )
    return context


def read_prompt(
    target: LanguageModel, draft: Draft, prompt: Context, *, again: bool = False
) -> dict[str, Usage]:
    """Every model forgets and, where it fits, reads all but the last token; usage by name.

    again    what a model still holds of this very prompt is kept, where it can go back to it
    """
    models = models_in(target, draft).values()
    before = _usage(models)
    given = min(prompt.prompt_tokens, max(1, len(prompt) - 1))
    start = Context(prompt.tokens[:-1] or prompt.tokens, given, prompt.source)
    for model in models:
        if again and isinstance(model, Rewinder):
            model.forget_after(start)
        else:
            model.forget()
        if isinstance(model, SourceReader):
            model.read_source(prompt)
        if 1 < len(prompt) <= model.max_positions:
            model.score(start, TokenTree.rooted(start))
    return _usage(models, before)


def _usage(
    models: Iterable[LanguageModel], before: Mapping[str, Usage] | None = None
) -> dict[str, Usage]:
    """What each model that counts has done (since `before`), by name."""
    used = {model.name: model.usage for model in models if model.usage is not None}
    return used if before is None else {name: now - before[name] for name, now in used.items()}


@dataclass(frozen=True)
class _Run:
    """One generation: all that stays the same from round to round."""

    target: LanguageModel
    draft: Draft
    chance: Chance
    rule: Rule
    stops: frozenset[int]
    models: Collection[LanguageModel]
    learners: tuple[Learner, ...]

    def rounds(self, context: Context, left: int) -> Iterator[tuple[Round, str | None]]:
        stop = None
        while stop is None:
            played = self.play(context, min(left, self.target.max_positions - len(context) + 1))
            context = context.extended(played.emitted)
            left -= len(played.emitted)
            if played.emitted[-1] in self.stops:
                stop = "stop token"
            elif left == 0:
                stop = "length"
            elif len(context) > self.target.max_positions:
                stop = "context"
            yield played, stop

    def play(self, context: Context, room: int) -> Round:
        before = _usage(self.models)
        started = time.perf_counter()
        proposed = self.draft.propose(context, self.chance)
        if not isinstance(proposed, TokenTree):
            raise ValueError(f"a draft proposes a TokenTree, got {shown(proposed)}")
        tree = proposed.cut(room - 1)
        logits = self.target.score(context, tree)
        verdict = self.rule(tree, logits, self.chance)
        for learner in self.learners:
            learner.learn(context, tree, logits)
        last = verdict.path[-1] if verdict.path else ROOT
        emitted = (*tree.path_tokens(last), verdict.bonus)[:room]
        sources = (*(tree.sources[node] for node in verdict.path), BONUS)
        whole = Round(
            tree=replace(tree, rows=(None,) * len(tree)) if tree.has_rows else tree,
            path=verdict.path,
            emitted=emitted,
            sources=sources,
            tried=len(verdict.path) + bool(tree.children(last)),
            seconds=time.perf_counter() - started,
            usage=_usage(self.models, before),
        )
        stops = (end for end, token in enumerate(emitted, 1) if token in self.stops)
        return whole.first(next(stops, len(emitted)))


def _run(
    target: LanguageModel, draft: Draft, chance: Chance, rule: Rule, stop_tokens: Collection[int]
) -> _Run:
    """A generation to be started; raises ValueError for a stop token outside the vocabulary."""
    last = target.vocabulary - 1
    for stop in stop_tokens:
        if not 0 <= stop <= last:
            raise ValueError(f"a stop token is 0 to {last} in the target's vocabulary, got {stop}")
    return _Run(
        target,
        draft,
        chance,
        rule,
        stops=frozenset(map(int, stop_tokens)),
        models=models_in(target, draft).values(),
        learners=learners_in(draft),
    )
