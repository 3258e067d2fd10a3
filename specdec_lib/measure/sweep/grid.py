"""The settings of a sweep, the generations that they give, and the row of each generation."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.decode import Generation, decode
from specdec_lib.core.protocols import Draft, Rule
from specdec_lib.core.tree import MatchTable
from specdec_lib.core.verify import look_up
from specdec_lib.measure.sweep.repetition import repetition
from specdec_lib.workload import Ladder, Pair, Prompt, seeds


@dataclass(frozen=True)
class Setting:
    """One point of the grid: a draft under a name, a sampler and a rule."""

    name: str
    draft: Draft
    sampler: Sampler = Sampler()
    rule: Rule = look_up


def generations(
    settings: Sequence[Setting],
    prompts: Sequence[Prompt],
    ladder: Ladder | Pair,
    *,
    seed: int = 0,
    max_new_tokens: int = 128,
    progress: bool = True,
) -> Iterator[tuple[Setting, Prompt, Generation]]:
    """Every prompt decoded under every setting; `sweep` makes a row of each generation."""
    from tqdm.auto import tqdm

    if not prompts:
        raise ValueError("a sweep needs prompts, got none")
    total = len(check_settings(settings)) * len(prompts)
    with tqdm(total=total, desc="sweep", disable=not progress, mininterval=1) as bar:
        for prompt in prompts:
            for setting, generation in decode_prompt(
                settings, prompt, ladder, seed=seed, max_new_tokens=max_new_tokens
            ):
                yield setting, prompt, generation
                bar.update()


@runtime_checkable
class _Matched(Protocol):
    """A draft whose nodes are scored by a match table where tokens are sampled."""

    @property
    def match(self) -> MatchTable: ...

    @property
    def siblings(self) -> str: ...


def decode_prompt(
    settings: Sequence[Setting],
    prompt: Prompt,
    ladder: Ladder | Pair,
    *,
    seed: int,
    max_new_tokens: int,
) -> Iterator[tuple[Setting, Generation]]:
    """One prompt decoded under every setting, with noise that follows from its name and `seed`."""
    tokens, (own,) = ladder.encode(prompt), seeds([prompt], seed)
    for setting in settings:
        chance = Chance(own, setting.sampler)
        limits = {"max_new_tokens": max_new_tokens, "stop_tokens": ladder.stop_tokens}
        draft, rule = setting.draft, setting.rule
        yield setting, decode(ladder.target, draft, tokens, chance, rule=rule, **limits)


def check_settings(settings: Iterable[Setting]) -> tuple[Setting, ...]:
    """The settings.

    Raises ValueError if there is none, or two have the same name, sampler and rule.
    """
    settings = tuple(settings)
    keys = [(setting.name, setting.sampler, setting.rule) for setting in settings]
    if not settings or len(set(keys)) < len(keys):
        raise ValueError(
            "a sweep needs settings with different names, samplers or rules, got"
            f" {[key[0] for key in keys]}"
        )
    return settings


def with_labels(
    generations: Iterable[tuple[Setting, Prompt, Generation]],
) -> Iterator[tuple[dict[str, object], Generation]]:
    """Each generation with the labels for `acceptance.collect`: draft, temperature, top_k, rule,
    domain, prompt.
    """
    for setting, prompt, generation in generations:
        sampler = setting.sampler
        labels = {
            "draft": setting.name,
            "temperature": sampler.temperature,
            "top_k": sampler.top_k,
            "rule": setting.rule.__name__,
        }
        yield labels | {"domain": prompt.domain, "prompt": prompt.name}, generation


def generation_row(setting: Setting, prompt: Prompt, generation: Generation) -> dict:
    """One generation as a row of the table."""
    rounds, sampler = generation.rounds, setting.sampler
    draft = setting.draft
    matched = isinstance(draft, _Matched) and draft.siblings != "top" and sampler.temperature > 0
    usage = {
        name: sum((played.usage[name] for played in rounds[1:]), rounds[0].usage[name])
        for name in rounds[0].usage
    }
    context = {
        name: sum(played.usage[name].passes * played.tree.root_position for played in rounds)
        for name in usage
    }
    return {
        "draft": setting.name,
        "temperature": sampler.temperature,
        "top_k": sampler.top_k,
        "top_p": sampler.top_p,
        "rule": setting.rule.__name__,
        "match": draft.match.name if matched else "",
        "prompt": prompt.name,
        "tokens": len(generation.tokens),
        "rounds": len(rounds),
        "proposed": sum(played.proposed for played in rounds),
        "accepted": sum(played.accepted for played in rounds),
        "tried": sum(played.tried for played in rounds),
        "repetition": repetition(generation.tokens),
        "stop": generation.stop,
        **{f"{name}_passes": used.passes for name, used in usage.items()},
        **{f"{name}_rows": used.rows for name, used in usage.items()},
        **{f"{name}_context_tokens": tokens for name, tokens in context.items()},
        "seconds": sum(played.seconds for played in rounds),
        "prefill_seconds": sum(used.seconds for used in generation.prefill.values()),
        "overhead_seconds": sum(played.overhead_seconds for played in rounds),
        **{f"{name}_seconds": used.seconds for name, used in usage.items()},
    }
