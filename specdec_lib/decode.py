"""The loop, and an honest record of each round.

A round proposes, scores and verifies; it emits the accepted tokens and one more. Plain autoregressive decoding is the same loop with `NoDraft`.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from specdec_lib.chance import Chance
from specdec_lib.context import Context
from specdec_lib.draft import Draft
from specdec_lib.lm import LanguageModel, Usage
from specdec_lib.tree import ROOT, TokenTree
from specdec_lib.verify import Rule, look_up

BONUS = "target"  # the source of a token that no drafter guessed


@dataclass(frozen=True)
class Round:
    """What happened in one round.

    tree          what was proposed, without rows
    path          the accepted nodes, from below the root down
    emitted       tokens: the accepted ones and one more, fewer where a stop token or a limit cuts
    sources       who guessed each emitted token; "target" for the correction or bonus
    tried         depths at which something was proposed and looked at: accepted, and one more where all children failed
    usage         per model: passes, rows and seconds of this round
    seconds       of the whole round
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
        """Guesses in the tree that was verified."""
        return self.tree.guesses

    @property
    def accepted(self) -> int:
        """Guesses that were accepted, whether or not a limit let them be emitted."""
        return len(self.path)

    @property
    def overhead_seconds(self) -> float:
        """Seconds in which no model ran."""
        return self.seconds - sum(used.seconds for used in self.usage.values())


@dataclass(frozen=True)
class Generation:
    """A decoded continuation and its rounds; every count is a sum over them.

    stop       "stop token", "length" or "context"
    prefill    per model: what reading the prompt took, before the first round
    """

    context: Context
    rounds: tuple[Round, ...]
    stop: str
    prefill: dict[str, Usage]

    @property
    def tokens(self) -> tuple[int, ...]:
        """What these rounds emitted."""
        return tuple(token for played in self.rounds for token in played.emitted)

    @property
    def tokens_per_round(self) -> float:
        """Emitted ÷ rounds, the correction or bonus included."""
        return len(self.tokens) / len(self.rounds)


def decode(
    target: LanguageModel,
    draft: Draft,
    prompt: Context | Sequence[int],
    chance: Chance,
    *,
    max_new_tokens: int,
    rule: Rule = look_up,
    stop_tokens: Sequence[int] = (),
    on_round: Callable[[Round], None] | None = None,
) -> Generation:
    """Continue `prompt` as `target` would, in rounds that `draft` makes long; see `rounds` for the arguments.

    on_round    called with each round as soon as it is done

    Every model forgets what it has read before, so that the counts do not depend on what was run earlier.
    """
    prompt = _checked(target, draft, prompt, max_new_tokens)
    prefill = read_prompt(target, draft, prompt)
    context, done, ended = prompt, [], ""
    for played, stop in rounds(target, draft, prompt, chance, max_new_tokens=max_new_tokens, rule=rule, stop_tokens=stop_tokens):
        context, ended = context.extended(played.emitted), stop or ""
        done.append(played)
        if on_round is not None:
            on_round(played)
    return Generation(context, tuple(done), ended, prefill)


def rounds(
    target: LanguageModel,
    draft: Draft,
    prompt: Context | Sequence[int],
    chance: Chance,
    *,
    max_new_tokens: int,
    rule: Rule = look_up,
    stop_tokens: Sequence[int] = (),
) -> Iterator[tuple[Round, str | None]]:
    """The rounds of a generation one by one, the last with why it ended (else None); a stream of tokens is `played.emitted` of each.

    prompt            tokens, or a context whose generated part goes on
    chance            the seed and the sampler
    max_new_tokens    at least 1
    rule              `look_up` gives the target's own tokens for the seed, and accepts most from "ranked" siblings; `reject` gives its law, and
                      accepts most from "iid" and "distinct" ones: the other way round is exact too, and slow
    stop_tokens       a token that ends the generation; it is emitted

    Raises ValueError, before any work, if the prompt is empty or does not fit, or the draft's vocabulary is not the target's.
    """
    context = _checked(target, draft, prompt, max_new_tokens)
    return _rounds(target, draft, context, chance, left=max_new_tokens, rule=rule, stops=frozenset(stop_tokens))


def _rounds(
    target: LanguageModel, draft: Draft, context: Context, chance: Chance, *, left: int, rule: Rule, stops: frozenset[int]
) -> Iterator[tuple[Round, str | None]]:
    models = models_in(target, draft)
    while True:
        room = min(left, target.max_positions - len(context) + 1)
        played = _play(target, draft, context, chance, rule=rule, room=room, stops=stops, models=models)
        context = context.extended(played.emitted)
        left -= len(played.emitted)
        stop = "stop token" if played.emitted[-1] in stops else "length" if left == 0 else "context" if len(context) > target.max_positions else None
        yield played, stop
        if stop:
            return


def parts_of(*parts: object) -> Iterator[object]:
    """Every draft and model reachable from these through their attributes, lists and tuples included; one may come twice."""
    for part in parts:
        if isinstance(part, list | tuple):
            yield from parts_of(*part)
        elif isinstance(part, LanguageModel):
            yield part
        elif isinstance(part, Draft):
            yield part
            yield from parts_of(*vars(part).values())


def models_in(*parts: object) -> dict[str, LanguageModel]:
    """Every model among `parts_of` these, by name.

    Raises ValueError if two different models share a name, because their records would mix.
    """
    found: dict[str, LanguageModel] = {}
    for model in parts_of(*parts):
        if isinstance(model, LanguageModel) and found.setdefault(model.name, model) is not model:
            raise ValueError(f"two models are called {model.name!r}; give them different names")
    return found


def _play(
    target: LanguageModel,
    draft: Draft,
    context: Context,
    chance: Chance,
    *,
    rule: Rule,
    room: int,
    stops: frozenset[int],
    models: dict[str, LanguageModel],
) -> Round:
    before = _usage(models)
    started = time.perf_counter()
    tree = draft.propose(context, chance).cut(room - 1)
    verdict = rule(tree, target.score(context, tree), chance)
    last = verdict.path[-1] if verdict.path else ROOT
    emitted = [*tree.path_tokens(last), verdict.bonus][:room]
    sources = [*(tree.sources[node] for node in verdict.path), BONUS]
    cut = next((place + 1 for place, token in enumerate(emitted) if token in stops), len(emitted))
    seconds = time.perf_counter() - started
    return Round(
        tree=tree.without_rows() if tree.has_rows else tree,
        path=verdict.path,
        emitted=tuple(emitted[:cut]),
        sources=tuple(sources[:cut]),
        tried=len(verdict.path) + bool(tree.children(last)),
        usage=_usage(models, before),
        seconds=seconds,
    )


def read_prompt(target: LanguageModel, draft: Draft, prompt: Context) -> dict[str, Usage]:
    """Let every model forget all else and read the source, and the prompt up to its last token, so that no round pays for it; what that took."""
    models = models_in(target, draft)
    before = _usage(models)
    for model in models.values():
        if hasattr(model, "forget"):
            model.forget()
        if hasattr(model, "read_source"):
            model.read_source(prompt)
        if 1 < len(prompt) <= model.max_positions:
            start = Context(prompt.tokens[:-1], min(prompt.prompt_tokens, len(prompt) - 1), prompt.source)
            model.score(start, TokenTree.rooted(start))
    return _usage(models, before)


def _usage(models: dict[str, LanguageModel], before: dict[str, Usage] | None = None) -> dict[str, Usage]:
    """What each model that counts has done (since `before`); a table that runs no network counts nothing."""
    used = {name: model.usage for name, model in models.items() if hasattr(model, "usage")}
    return used if before is None else {name: now - before[name] for name, now in used.items()}


def _checked(target: LanguageModel, draft: Draft, prompt: Context | Sequence[int], max_new_tokens: int) -> Context:
    context = prompt if isinstance(prompt, Context) else Context.of(prompt)
    if max_new_tokens < 1:
        raise ValueError(f"max_new_tokens must be at least 1, got {max_new_tokens}")
    if max(context.tokens) >= target.vocabulary:
        raise ValueError(f"the prompt holds token {max(context.tokens)}, the target's vocabulary ends at {target.vocabulary - 1}")
    if len(context) > target.max_positions:
        raise ValueError(f"the prompt has {len(context)} tokens, the target reads at most {target.max_positions}")
    models_in(target, draft)
    for part in parts_of(draft):
        size = getattr(part, "vocabulary", None)
        if size not in (None, target.vocabulary):
            name = getattr(part, "name", type(part).__name__)
            raise ValueError(f"a draft must share the target's vocabulary: {name} has {size} tokens, {target.name} {target.vocabulary}")
    return context
