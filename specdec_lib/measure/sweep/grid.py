"""The settings of a sweep, the generations that they give, and the row of each generation; a sweep
but for its prompts is a job, the same in whichever process it runs.
"""

import functools
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from tqdm.auto import tqdm

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.decode import Generation, decode, refuse_learners
from specdec_lib.core.kinds import checked
from specdec_lib.core.protocols import Draft, Rule
from specdec_lib.core.verify import look_up
from specdec_lib.measure.own_text import OwnText, replay_draft
from specdec_lib.measure.sweep.identity import fingerprint
from specdec_lib.measure.sweep.kept import Row
from specdec_lib.measure.sweep.recipe import Recipe
from specdec_lib.measure.sweep.repetition import repetition
from specdec_lib.measure.texts import Texts, check_texts
from specdec_lib.workload import Ladder, Pair, Prompt, seeds

COUNTED = ("passes", "rows", "context_tokens")  # per model
# models remember what they read, so a process decodes one prompt at a time, whatever its threads
_ONE = threading.Lock()


@checked
@dataclass(frozen=True)
class Setting:
    """One point of the grid: a draft under a name, a sampler and a rule."""

    name: str
    draft: Draft
    sampler: Sampler = Sampler()
    rule: Rule = look_up


@dataclass(frozen=True)
class Job:
    """A sweep but for its prompts.

    texts               what the target writes, one per sampler: settings under `look_up` are
                        replayed along them, which gives the same rounds without a pass of it
    settings, ladder    as they are, or recipes of them: `ladder()` and `settings(ladder)`; only
                        recipes can be sent to another process
    """

    settings: Sequence[Setting] | Recipe
    ladder: Ladder | Pair | Recipe
    seed: int = 0
    max_new_tokens: int = 128
    texts: tuple[Texts, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.ladder, Recipe) and not isinstance(self.settings, Recipe):
            raise ValueError("the ladder is a recipe and the settings are not: give two recipes")
        check_texts(self.texts, self.seed, self.max_new_tokens)

    def stage(self) -> tuple[tuple[Setting, ...], Ladder | Pair]:
        """The settings and the ladder; those of recipes are made once per process."""
        if isinstance(self.ladder, Recipe):
            return _staged(self.settings, self.ladder)
        given = self.settings
        made = given.make(self.ladder) if isinstance(given, Recipe) else given
        return check_settings(made), self.ladder

    def fingerprint(self) -> str:
        """A digest of all that decides rows but the prompt: settings, models, seed, length."""
        recipes = isinstance(self.ladder, Recipe)
        find = _staged_fingerprint if recipes else lambda *_: fingerprint(*self.stage())
        made = find(self.settings, self.ladder)
        return fingerprint(made, self.seed, self.max_new_tokens, self.texts)

    def decoded(self, prompt: Prompt) -> Iterator[tuple[Setting, Generation]]:
        """One prompt decoded under every setting; noise follows from its name and the seed."""
        (settings, ladder), (own,) = self.stage(), seeds([prompt], self.seed)
        tokens, stops = ladder.encode(prompt), ladder.stop_tokens
        known = {one.sampler: one.of(prompt) for one in self.texts}
        for setting in settings:
            chance, draft, rule = Chance(own, setting.sampler), setting.draft, setting.rule
            if rule is look_up and setting.sampler in known:
                written = known[setting.sampler]
                text = OwnText.of(ladder.target, tokens, written, self.max_new_tokens)
                yield setting, replay_draft(text, draft, chance, stop_tokens=stops)
            else:
                limits = {"max_new_tokens": self.max_new_tokens, "stop_tokens": stops}
                yield setting, decode(ladder.target, draft, tokens, chance, rule=rule, **limits)

    def rows(self, prompt: Prompt) -> list[Row]:
        """The rows of one prompt, a setting after the other."""
        target = self.stage()[1].target.name
        return [generation_row(one, prompt, made, target) for one, made in self.decoded(prompt)]


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

    texts    of the target, which settings are replayed along: see `Job`
    """
    check_prompts(prompts)
    job, total = Job(settings, ladder, seed, max_new_tokens, tuple(texts)), len(prompts)
    with tqdm(
        total=len(settings) * total, desc="sweep", disable=not progress, mininterval=1
    ) as bar:
        for prompt in prompts:
            for setting, generation in job.decoded(prompt):
                yield setting, prompt, generation
                bar.update()


def check_prompts(prompts: Sequence[Prompt]) -> None:
    """Raises ValueError if there is none."""
    if not prompts:
        raise ValueError("a sweep needs prompts, got none")


def check_settings(settings: Iterable[Setting]) -> tuple[Setting, ...]:
    """The settings.  Raises ValueError if there is none, two share name, sampler and rule, or a
    draft learns."""
    settings = tuple(settings)
    keys = [(setting.name, setting.sampler, setting.rule) for setting in settings]
    if not settings or len(set(keys)) < len(keys):
        raise ValueError(
            "a sweep needs settings with different names, samplers or rules, got"
            f" {[key[0] for key in keys]}"
        )
    refuse_learners("a sweep", *(setting.draft for setting in settings))
    return settings


def generation_row(
    setting: Setting, prompt: Prompt, generation: Generation, target: str = "target"
) -> Row:
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


_loaded = functools.lru_cache(maxsize=1)(Recipe.make)


@functools.lru_cache(maxsize=4)
def _staged(settings: Recipe, ladder: Recipe) -> tuple[tuple[Setting, ...], Ladder | Pair]:
    loaded = _loaded(ladder)
    return check_settings(settings.make(loaded)), loaded


@functools.lru_cache(maxsize=4)
def _staged_fingerprint(settings: Recipe, ladder: Recipe) -> str:
    return fingerprint(*_staged(settings, ladder))


def fingerprint_of(job: Job) -> str:
    """In a worker: the job's fingerprint."""
    with _alone():
        return job.fingerprint()


def rows_of(prompt: Prompt, job: Job, expected: str) -> list[Row]:
    """In a worker: the rows of one prompt.  Raises ValueError unless its fingerprint is the
    expected one, which another worker found: its rows could differ too.
    """
    with _alone():
        found = job.fingerprint()
        if found != expected:
            differ = "workers differ in models, code, versions or kind of device"
            raise ValueError(f"{differ}: fingerprints {expected} and {found}")
        return job.rows(prompt)


@contextmanager
def _alone() -> Iterator[None]:
    """One prompt at a time per process, on one thread of torch."""
    with _ONE:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(threads)
