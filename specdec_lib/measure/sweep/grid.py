"""The settings of a sweep, the generations that they give, and the row of each generation."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tqdm.auto import tqdm

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.decode import Generation, decode
from specdec_lib.core.kinds import checked
from specdec_lib.core.protocols import Draft, Rule
from specdec_lib.core.verify import look_up
from specdec_lib.measure.own_text import OwnText, replay_draft
from specdec_lib.measure.sweep.repetition import repetition
from specdec_lib.measure.texts import Texts, check_texts
from specdec_lib.workload import Ladder, Pair, Prompt, seeds

COUNTED = ("passes", "rows", "context_tokens")  # per model


@checked
@dataclass(frozen=True)
class Setting:
    """One point of the grid: a draft under a name, a sampler and a rule."""

    name: str
    draft: Draft
    sampler: Sampler = Sampler()
    rule: Rule = look_up


@checked
def generations(
    settings: Sequence[Setting],
    prompts: Sequence[Prompt],
    ladder: Ladder | Pair,
    *,
    seed: int = 0,
    max_new_tokens: int = 128,
    texts: Sequence[Texts] = (),
    progress: bool = True,
) -> Iterator[tuple[Setting, Prompt, Generation]]:
    """Every prompt decoded under every setting; `sweep` makes a row of each generation.

    texts    of the target, which settings are replayed along: see `decode_prompt`
    """
    check_prompts(prompts)
    check_texts(texts, seed, max_new_tokens)
    total = len(check_settings(settings)) * len(prompts)
    limits = {"seed": seed, "max_new_tokens": max_new_tokens, "texts": texts}
    with tqdm(total=total, desc="sweep", disable=not progress, mininterval=1) as bar:
        for prompt in prompts:
            for setting, generation in decode_prompt(settings, prompt, ladder, **limits):
                yield setting, prompt, generation
                bar.update()


def decode_prompt(
    settings: Sequence[Setting],
    prompt: Prompt,
    ladder: Ladder | Pair,
    *,
    seed: int,
    max_new_tokens: int,
    texts: Sequence[Texts] = (),
) -> Iterator[tuple[Setting, Generation]]:
    """One prompt decoded under every setting, with noise that follows from its name and `seed`.

    texts    what the target writes, one per sampler: settings under `look_up` are replayed along
             them, which gives the same rounds without a pass of the target
    """
    tokens, (own,) = ladder.encode(prompt), seeds([prompt], seed)
    limits = {"max_new_tokens": max_new_tokens, "stop_tokens": ladder.stop_tokens}
    known = {one.sampler: one.of(prompt)[:max_new_tokens] for one in texts}
    for setting in settings:
        chance, draft, rule = Chance(own, setting.sampler), setting.draft, setting.rule
        if rule is look_up and setting.sampler in known:
            written = known[setting.sampler]
            text = OwnText.of(ladder.target, tokens, written, max_new_tokens)
            yield setting, replay_draft(text, draft, chance, stop_tokens=ladder.stop_tokens)
        else:
            yield setting, decode(ladder.target, draft, tokens, chance, rule=rule, **limits)


def check_prompts(prompts: Sequence[Prompt]) -> None:
    """Raises ValueError if there is none."""
    if not prompts:
        raise ValueError("a sweep needs prompts, got none")


def check_settings(settings: Iterable[Setting]) -> tuple[Setting, ...]:
    """The settings.  Raises ValueError if there is none, or two share name, sampler and rule."""
    settings = tuple(settings)
    keys = [(setting.name, setting.sampler, setting.rule) for setting in settings]
    if not settings or len(set(keys)) < len(keys):
        raise ValueError(
            "a sweep needs settings with different names, samplers or rules, got"
            f" {[key[0] for key in keys]}"
        )
    return settings


def generation_row(
    setting: Setting, prompt: Prompt, generation: Generation, *, target: str = "target"
) -> dict:
    """One generation as a row of the table; of the model called `target`, which makes no pass along
    a text, a pass over each round's tree is counted, without seconds.
    """
    rounds, sampler, draft = generation.rounds, setting.sampler, setting.draft
    table = getattr(draft, "match", None)  # a draft of a tree or chain is scored by it when sampled
    unmatched = sampler.temperature == 0 or getattr(draft, "siblings", "top") == "top"
    first = rounds[0].usage
    usage = {name: sum((one.usage[name] for one in rounds[1:]), first[name]) for name in first}
    counts = {}
    for name, used in usage.items():  # the tokens up to each root, summed over a model's passes
        context = sum(one.usage[name].passes * one.tree.root_position for one in rounds)
        counts[name] = (used.passes, used.rows, context)
    if target not in counts:
        roots = sum(one.tree.root_position for one in rounds)
        counts = {target: (len(rounds), sum(len(one.tree) for one in rounds), roots)} | counts
    return {
        "draft": setting.name,
        "temperature": sampler.temperature,
        "top_k": sampler.top_k,
        "top_p": sampler.top_p,
        "rule": setting.rule.__name__,
        "match": "" if table is None or unmatched else table.name,
        "prompt": prompt.name,
        "tokens": len(generation.tokens),
        "rounds": len(rounds),
        "proposed": sum(one.proposed for one in rounds),
        "accepted": sum(one.accepted for one in rounds),
        "tried": sum(one.tried for one in rounds),
        "repetition": repetition(generation.tokens),
        "stop": generation.stop,
        **{
            f"{name}_{what}": one[place]
            for place, what in enumerate(COUNTED)
            for name, one in counts.items()
        },
        "seconds": sum(one.seconds for one in rounds),
        "prefill_seconds": sum(used.seconds for used in generation.prefill.values()),
        "overhead_seconds": sum(one.overhead_seconds for one in rounds),
        **{f"{name}_seconds": used.seconds for name, used in usage.items()},
    }
