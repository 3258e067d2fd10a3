"""Who races: every method at the setting that is fastest on development prompts."""

import copy
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import zip_longest

import torch
from transformers import PreTrainedModel

from specdec_lib.core.chance import Sampler
from specdec_lib.core.protocols import LanguageModel
from specdec_lib.measure.contenders import (
    Contender,
    hugging_contenders,
    llama_cpp,
    our_contenders,
)
from specdec_lib.measure.quiet import Quiet
from specdec_lib.measure.racing import WARM_UP, race
from specdec_lib.measure.ratios import sampling_of
from specdec_lib.measure.settings.bench import OURS, bench_settings
from specdec_lib.measure.settings.names import (
    ASSIST,
    AUTOREGRESSIVE,
    GENERATE,
    HF,
    LOOKUP,
    TOKEN_BY_TOKEN,
)
from specdec_lib.measure.target_text import (
    TargetText,
    by_domain,
    chosen_prompts,
    write_text,
)
from specdec_lib.workload import Ladder, Prompt

BUILT_ON = 3  # of the best trees
FINALISTS = ("staged", "cascade", "copies first")
KEPT = 1 / 3  # of the settings, from stage to stage; two at the least
Say = Callable[[str], None]


@dataclass(frozen=True)
class BenchPlan:
    """How much is measured.

    prompts        how many held-out prompts of each domain are run, the first ones, by sampler
    others         of these, how many the slower baselines run too
    development    on how many prompts of each domain settings are tuned, the first ones
    stages         prompts that each stage of the tuning adds
    most           settings per method that are tried, spread over its grid; None is all
    hugging        race Hugging Face's ways too: they run the exact edition only
    source         a prompt set by name, or a file; None is every embedded domain
    """

    prompts: Sequence[int] = (24, 24, 8)
    others: int = 8
    development: int = 5
    tokens: int = 128
    stages: Sequence[int] = (2, 4)
    most: int | None = None
    seed: int = 0
    hugging: bool = True
    source: str | None = None

    @property
    def limits(self) -> dict[str, int]:
        return {"tokens": self.tokens, "seed": self.seed}


@dataclass(frozen=True)
class Lineup:
    """What tuning settled under one sampler: plain values, from which contenders are built again.

    best        a setting by method, and how it was chosen, in words
    built_on    the trees that staged drafts and tails were built on
    chosen      which of `FINALISTS` was fastest on development prompts, if several were tuned
    precision   in which Hugging Face is faster, "" where it does not race
    """

    best: dict[str, Sequence[str]] = field(default_factory=dict)
    built_on: Sequence[str] = ()
    chosen: str = ""
    precision: str = ""


def prompts_in_turn(split: str, limit: int, source: str | None = None) -> list[Prompt]:
    """The first `limit` prompts of every domain, the domains in turn; see `chosen_prompts`."""
    domains = by_domain(chosen_prompts(source, split, limit)).values()
    return [one for same in zip_longest(*domains) for one in same if one is not None]


def tune_lineup(
    ladders: Mapping[str, Ladder],
    sampler: Sampler,
    plan: BenchPlan,
    methods: Sequence[str],
    say: Say,
) -> Lineup:
    """Each of our methods at its best setting on development prompts, and Hugging Face's ways where
    all of ours race.
    """
    say(f"{sampling_of(sampler.temperature, sampler.top_k)}: methods are tuned")
    *_, ladder = ladders.values()
    prompts = prompts_in_turn("development", plan.development, plan.source)
    lineup = Lineup()
    write = partial(write_text, ladder, sampler=sampler, seed=plan.seed, max_new_tokens=plan.tokens)
    texts = [write(prompt) for prompt in prompts]
    options = {"target": ladder.target, "stages": plan.stages, "seed": plan.seed}
    tune = partial(tune_contenders, texts=texts, **options)
    found: dict[str, Contender] = {}

    def settle(method: str) -> list[str]:
        grid = method_contenders(ladders, sampler, method, lineup)
        tried = spread([*grid.values()], plan.most)
        left = tune(tried)
        found[method], milliseconds = left[0]
        note = f"{milliseconds:.2f} ms per token, the best of {len(tried)} on development prompts"
        lineup.best[method] = (found[method].setting, note)
        say(f"  {method}: {found[method].setting}: {note}")
        return [one.setting for one, _ in left]

    for method in methods:
        left = settle(method)
        if method == "tree":
            lineup = replace(lineup, built_on=left[:BUILT_ON])
    if plan.hugging and methods is OURS:
        precision, note = calibrate(next(iter(ladders.values())).target.model, sampler, tune)
        lineup = replace(lineup, precision=precision)
        lineup.best[GENERATE] = (TOKEN_BY_TOKEN, note)
        for method in (ASSIST, LOOKUP):
            settle(method)
    final = [found[method] for method in FINALISTS if method in found]
    if len(final) > 1:
        lineup = replace(lineup, chosen=tune(final, stages=[sum(plan.stages)])[0][0].method)
    return lineup


def spread(grid: Sequence, most: int | None) -> list:
    """At most `most` settings of a grid, spread evenly over it; None gives all."""
    size = min(most or len(grid), len(grid))
    return [grid[at * len(grid) // size] for at in range(size)]


def tune_contenders(
    contenders: Sequence[Contender],
    texts: Sequence[TargetText],
    target: LanguageModel,
    *,
    stages: Sequence[int],
    seed: int = 0,
    quiet: Quiet | None = None,
) -> list[tuple[Contender, float]]:
    """The contenders left after the last stage, the fastest first, with their milliseconds per
    token: all race on a few texts, and the better ones on more; those of earlier stages count too.

    quiet    time again what other programs disturb

    Texts that loop are passed over as long as there are others.  Raises ValueError if there is no
    contender, or there are fewer texts than stages.
    """
    if not contenders or len(texts) < len(stages):
        raise ValueError(
            f"tuning needs contenders and at least {len(stages)} texts,"
            f" got {len(contenders)} and {len(texts)}"
        )
    ordered = sorted(texts, key=lambda text: text.loops)
    used = 0
    left = list(contenders)
    seconds = dict.fromkeys(left, 0.0)
    tokens = dict.fromkeys(left, 0)

    def per_token(one: Contender) -> float:
        return 1000 * seconds[one] / max(1, tokens[one])

    for one in left:
        one.run(ordered[0].prompt_tokens, WARM_UP, seed)
    for number, added in enumerate(stages, 1):
        for text in ordered[used : used + added] or ordered[-1:]:
            for one, timing in zip(
                left, race(left, text, target, seed=seed, quiet=quiet), strict=True
            ):
                seconds[one] += timing.seconds or 0.0
                tokens[one] += timing.timed_tokens
        used += added
        left.sort(key=per_token)
        if number < len(stages):
            left = left[: max(2, math.ceil(KEPT * len(left)))]
    return [(one, per_token(one)) for one in left]


def calibrate(
    target: PreTrainedModel, sampler: Sampler, tune: Callable[[list[Contender]], list]
) -> tuple[str, str]:
    """The precision in which `generate` is faster; and what the other took, in words."""
    networks = (in_precision(target, name) for name in ("float32", "bfloat16"))
    both = [hugging_contenders(GENERATE, one, one, sampler)[0] for one in networks]
    (fast, least), (slow, most) = tune(both)
    faster, slower = (one.runtime.split()[-1] for one in (fast, slow))
    return faster, f"{slower} took {most / least:.1f} times as long"


@functools.cache
def in_precision(model: PreTrainedModel, precision: str) -> PreTrainedModel:
    """The model itself if it has this precision, else a copy that has, made once."""
    dtype = getattr(torch, precision)
    return model if model.dtype == dtype else copy.deepcopy(model).to(dtype)


def contenders(
    ladders: Mapping[str, Ladder], sampler: Sampler, lineup: Lineup
) -> tuple[list[Contender], list[Contender]]:
    """Our methods beside plain decoding on the last runtime; and the others: plain decoding on
    every other runtime, Hugging Face's ways where it races, llama.cpp where it runs the same
    edition.
    """
    *others, plain = (
        method_contenders({runtime: ladder}, sampler, AUTOREGRESSIVE, lineup)[TOKEN_BY_TOKEN]
        for runtime, ladder in ladders.items()
    )
    main = [plain]
    for method, (setting, note) in lineup.best.items():
        one = method_contenders(ladders, sampler, method, lineup)[setting]
        noted = replace(one, setting=f"{setting} [{note}]")
        (others if method in HF else main).append(noted)
    there = llama_cpp(sampler) if "int8" in ladders else None
    if there is not None:
        others.append(there)
    return main, others


def method_contenders(
    ladders: Mapping[str, Ladder], sampler: Sampler, method: str, lineup: Lineup
) -> dict[str, Contender]:
    """The contenders of a method by setting: ours in the last runtime, Hugging Face's ways with the
    models of the first.
    """
    if method in HF:
        first = next(iter(ladders.values()))
        target, draft = (
            in_precision(one.model, lineup.precision) for one in (first.target, first.draft)
        )
        found = hugging_contenders(method, target, draft, sampler)
    else:
        runtime, ladder = list(ladders.items())[-1]
        grid = bench_settings(ladder, sampler, method, lineup.built_on)
        found = our_contenders(ladder.target, grid, runtime)
    return {one.setting: one for one in found}
