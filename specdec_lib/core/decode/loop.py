"""The loop.

A round proposes, scores and verifies; it emits the accepted tokens and one more. Plain
autoregressive decoding is the same loop with `NoDraft`.
"""

import time
from collections.abc import Callable, Iterator, Sequence

from specdec_lib.core.chance import Chance
from specdec_lib.core.context import Context
from specdec_lib.core.decode.asking import checked, checked_tree, models_in
from specdec_lib.core.decode.records import Generation, Round
from specdec_lib.core.protocols import Draft, LanguageModel, SourceReader, Usage
from specdec_lib.core.tree import ROOT, TokenTree
from specdec_lib.core.verify import Rule, look_up

BONUS = "target"  # the source of a token that no drafter guessed


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
    """Continue `prompt` as `target` would, in rounds that `draft` makes long; see `rounds` for the
    arguments.

    on_round    called with each round as soon as it is done

    Every model forgets what it has read before, so that the counts do not depend on what was run
    earlier.
    """
    prompt = checked(target, draft, prompt, chance, rule=rule, max_new_tokens=max_new_tokens)
    prefill = read_prompt(target, draft, prompt)
    context, done, ended = prompt, [], ""
    for played, stop in rounds(
        target,
        draft,
        prompt,
        chance,
        max_new_tokens=max_new_tokens,
        rule=rule,
        stop_tokens=stop_tokens,
    ):
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
    """The rounds of a generation one by one, the last with why it ended (else None); a stream of
    tokens is `played.emitted` of each.

    prompt            tokens, or a context whose generated part goes on
    chance            the seed and the sampler
    max_new_tokens    at least 1
    rule              `look_up` gives the target's own tokens for the seed, and accepts most from
                      "ranked" siblings; `reject` gives its law, and accepts most from "iid" and
                      "distinct" ones: the other way round is exact too, and slow
    stop_tokens       a token that ends the generation; it is emitted

    Raises ValueError, before any work, if one of these is of another kind, the prompt is empty or
    does not fit, or the draft's vocabulary is not the target's.
    """
    context = checked(target, draft, prompt, chance, rule=rule, max_new_tokens=max_new_tokens)
    return _rounds(
        target, draft, context, chance, left=max_new_tokens, rule=rule, stops=frozenset(stop_tokens)
    )


def _rounds(
    target: LanguageModel,
    draft: Draft,
    context: Context,
    chance: Chance,
    *,
    left: int,
    rule: Rule,
    stops: frozenset[int],
) -> Iterator[tuple[Round, str | None]]:
    models = models_in(target, draft)
    while True:
        room = min(left, target.max_positions - len(context) + 1)
        played = _play(
            target, draft, context, chance, rule=rule, room=room, stops=stops, models=models
        )
        context = context.extended(played.emitted)
        left -= len(played.emitted)
        stop = (
            "stop token"
            if played.emitted[-1] in stops
            else "length"
            if left == 0
            else "context"
            if len(context) > target.max_positions
            else None
        )
        yield played, stop
        if stop:
            return


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
    tree = checked_tree(draft.propose(context, chance)).cut(room - 1)
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
    """Let every model forget all else and read the source, and the prompt up to its last token, so
    that no round pays for it; what that took.
    """
    models = models_in(target, draft)
    before = _usage(models)
    for model in models.values():
        model.forget()
        if isinstance(model, SourceReader):
            model.read_source(prompt)
        if 1 < len(prompt) <= model.max_positions:
            start = Context(
                prompt.tokens[:-1], min(prompt.prompt_tokens, len(prompt) - 1), prompt.source
            )
            model.score(start, TokenTree.rooted(start))
    return _usage(models, before)


def _usage(
    models: dict[str, LanguageModel], before: dict[str, Usage] | None = None
) -> dict[str, Usage]:
    """What each model that counts has done (since `before`); a table that runs no network counts
    nothing.
    """
    used = {name: model.usage for name, model in models.items() if model.usage is not None}
    return used if before is None else {name: now - before[name] for name, now in used.items()}
