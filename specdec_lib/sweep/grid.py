"""A grid of settings in, one tidy table out: a row per setting and prompt, counts and seconds in separate columns."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from specdec_lib.chance import Chance, Sampler
from specdec_lib.decode import Generation, decode
from specdec_lib.draft import Draft
from specdec_lib.sweep.statistics import repetition
from specdec_lib.verify import Rule, look_up
from specdec_lib.workload import Ladder, Pair, Prompt, seeds

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class Setting:
    """One point of the grid: a draft under a name, a sampler and a rule."""

    name: str
    draft: Draft
    sampler: Sampler = Sampler()
    rule: Rule = look_up


def sweep(
    settings: Sequence[Setting],
    prompts: Sequence[Prompt],
    ladder: Ladder | Pair,
    *,
    seed: int = 0,
    max_new_tokens: int = 128,
    progress: bool = True,
) -> "DataFrame":
    """Decode every prompt under every setting, the settings interleaved within a prompt.

    ladder    or the encoder-decoder pair, whose drafts and prompts are then given

    The columns are: draft, temperature, top_k, top_p, rule, match, prompt; counts (tokens, rounds, proposed, accepted, tried, and per model its
    passes, its rows, and the length up to the round's root summed over its passes); repetition, stop; seconds (in all, prefill apart, overhead,
    and per model).
    Raises ValueError if there is no setting or prompt, or two settings have the same name, sampler and rule.
    """
    import pandas as pd

    played = generations(settings, prompts, ladder, seed=seed, max_new_tokens=max_new_tokens, progress=progress)
    return pd.DataFrame([row(setting, prompt, generation) for setting, prompt, generation in played])


def generations(
    settings: Sequence[Setting],
    prompts: Sequence[Prompt],
    ladder: Ladder | Pair,
    *,
    seed: int = 0,
    max_new_tokens: int = 128,
    progress: bool = True,
) -> Iterator[tuple[Setting, Prompt, Generation]]:
    """What `sweep` makes its rows of: every prompt decoded under every setting, with all rounds."""
    from tqdm.auto import tqdm

    keys = [(setting.name, setting.sampler, setting.rule) for setting in settings]
    if not settings or not prompts or len(set(keys)) < len(keys):
        raise ValueError(f"a sweep needs prompts and settings with different names, got {len(prompts)} prompts and {[key[0] for key in keys]}")
    with tqdm(total=len(settings) * len(prompts), desc="sweep", disable=not progress, mininterval=1) as bar:
        for prompt, prompt_seed in zip(prompts, seeds(prompts, seed), strict=True):
            tokens = ladder.encode(prompt)
            for setting in settings:
                chance = Chance(prompt_seed, setting.sampler)
                generation = decode(
                    ladder.target, setting.draft, tokens, chance, max_new_tokens=max_new_tokens, rule=setting.rule, stop_tokens=ladder.stop_tokens
                )
                yield setting, prompt, generation
                bar.update()


def labelled(played: Iterable[tuple[Setting, Prompt, Generation]]) -> Iterator[tuple[dict[str, object], Generation]]:
    """The same, each generation with the labels that `acceptance.collect` asks for: draft, temperature, top_k, rule, domain, prompt."""
    for setting, prompt, generation in played:
        sampler = setting.sampler
        labels = {"draft": setting.name, "temperature": sampler.temperature, "top_k": sampler.top_k, "rule": setting.rule.__name__}
        yield labels | {"domain": prompt.domain, "prompt": prompt.name}, generation


def row(setting: Setting, prompt: Prompt, generation: Generation) -> dict:
    """One generation as a row of the table."""
    rounds, sampler = generation.rounds, setting.sampler
    ranked = sampler.temperature > 0 and getattr(setting.draft, "siblings", "ranked") != "top"
    match = getattr(getattr(setting.draft, "match", None), "name", "") if ranked else ""
    usage = {name: sum((played.usage[name] for played in rounds[1:]), rounds[0].usage[name]) for name in rounds[0].usage}
    context = {name: sum(played.usage[name].passes * played.tree.root_position for played in rounds) for name in usage}
    return {
        "draft": setting.name,
        "temperature": sampler.temperature,
        "top_k": sampler.top_k,
        "top_p": sampler.top_p,
        "rule": setting.rule.__name__,
        "match": match,
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
