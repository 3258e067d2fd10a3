"""A whole benchmark: per sampler the texts, every method at the setting that is fastest on
development prompts, and the race on held-out ones.
"""

import copy
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from transformers import PreTrainedModel

from specdec_lib.core.chance import Sampler
from specdec_lib.core.protocols import LanguageModel
from specdec_lib.measure.race.contenders import AUTOREGRESSIVE, Contender, ours
from specdec_lib.measure.race.families import OURS, drafts, trees
from specdec_lib.measure.race.harness import WARM_UP, TargetText, Timing, race, target_texts
from specdec_lib.measure.race.hugging import ASSIST, GENERATE, LOOKUP, hugging_contenders
from specdec_lib.measure.sweep.ratios import sampling_of
from specdec_lib.workload import DOMAINS, Ladder, load_prompts

SAMPLERS = (Sampler(0), Sampler(1.0, top_k=50))
KEPT = 1 / 3  # of the settings, from stage to stage; two at the least
BUILT_ON = 3  # of the best trees
FINALISTS = ("staged", "cascade", "copies first")
CALIBRATION = 12  # tokens that settle which precision Hugging Face is faster in
REPEATS = 2
Say = Callable[[str], None]


@dataclass(frozen=True)
class BenchPlan:
    """How much is measured.

    prompts        held-out prompts of each domain under each sampler, the first so many: greedy,
                   T = 1
    development    prompts of each domain that settings are tuned on, the first so many
    tokens         new tokens per prompt, at most
    stages         prompts that each stage of the tuning adds
    most           settings per method that are tried, spread over its grid; None is all
    repeats        of every contender on each held-out prompt
    hugging        race Hugging Face's ways too: they run the exact edition only
    """

    prompts: tuple[int, ...] = (10, 10)
    development: int = 5
    tokens: int = 64
    stages: tuple[int, ...] = (2, 4)
    most: int | None = None
    repeats: int = 1
    seed: int = 0
    hugging: bool = True


SMOKE = BenchPlan(prompts=(1, 1), development=1, tokens=20, stages=(1, 1), most=4)


@dataclass(frozen=True)
class Tried:
    """A contender that was left at the end of tuning, with its time per token on all development
    prompts; `tried` settings were there at first.
    """

    contender: Contender
    ms_per_token: float
    tried: int


def benchmark(
    ladders: Mapping[str, Ladder], plan: BenchPlan, say: Say
) -> Iterator[tuple[list[Timing], str]]:
    """Under one sampler after the other: the timings of every method, and which of `FINALISTS` was
    fastest on development prompts.

    ladders    by runtime, the reference first; methods are tuned on the last one
    say        called with a line when something is settled
    """
    from tqdm.auto import tqdm

    ladder = list(ladders.values())[-1]
    for sampler, count in zip(SAMPLERS, plan.prompts, strict=True):
        development = _texts(ladder, "development", plan.development, sampler, plan, say)
        held_out = _texts(ladder, "held-out", count, sampler, plan, say)
        contenders, chosen = lineup(ladders, sampler, development, plan, say)
        texts = tqdm(held_out, desc="prompts", mininterval=1)
        limits = {"seed": plan.seed, "repeats": plan.repeats, "warm_up": development[0]}
        timings = race(contenders, texts, ladder.target, **limits)
        yield [timing for group in timings for timing in group], chosen


def lineup(
    ladders: Mapping[str, Ladder],
    sampler: Sampler,
    texts: Sequence[TargetText],
    plan: BenchPlan,
    say: Say,
) -> tuple[list[Contender], str]:
    """Every method at its best setting on these texts of development prompts, and which of
    `FINALISTS` was fastest there.
    """
    plain, (runtime, ladder) = next(iter(ladders.values())), list(ladders.items())[-1]
    best: dict[str, list[Tried]] = {}

    def settle(method: str, grid: Sequence[Contender]) -> None:
        size = min(plan.most or len(grid), len(grid))
        spread = [grid[at * len(grid) // size] for at in range(size)]
        limits = {"stages": plan.stages, "seed": plan.seed}
        best[method] = tune_contenders(spread, texts, ladder.target, **limits)
        first = best[method][0]
        words = f"{first.ms_per_token:.2f} ms per token, the best of {first.tried}"
        say(f"  {method}: {first.contender.setting}: {words}")

    every_tree = trees(ladder, sampler)
    for method in OURS:
        names = [one.contender.setting for one in best.get("tree", ())[:BUILT_ON]]
        built_on = {name: every_tree[name] for name in names} or None
        labels = {"method": method, "runtime": runtime}
        grid = drafts(ladder, sampler, method, built_on)
        settle(method, [ours(ladder.target, grid[n], sampler, setting=n, **labels) for n in grid])
    noted = []
    if plan.hugging:
        network, note = calibrate(plain, sampler, texts[0])
        models = (network, as_precise(plain.draft.model, network.dtype))
        for method in (ASSIST, LOOKUP):
            settle(method, hugging_contenders(method, *models, sampler))
        [generate] = hugging_contenders(GENERATE, *models, sampler)
        noted.append(_noted(generate, note))
    finalists = [best[method][0].contender for method in FINALISTS]
    stages = (sum(plan.stages),)
    final = tune_contenders(finalists, texts, ladder.target, stages=stages, seed=plan.seed)
    for first, *_ in best.values():
        words = f"the best of {first.tried} on development prompts, {first.ms_per_token:.2f} ms"
        noted.append(_noted(first.contender, f"{words} per token there"))
    return [*_plain(ladders, sampler), *noted], final[0].contender.method


def _plain(ladders: Mapping[str, Ladder], sampler: Sampler) -> list[Contender]:
    """Plain decoding on every runtime."""
    return [
        ours(one.target, draft, sampler, method=AUTOREGRESSIVE, runtime=name, setting=setting)
        for name, one in ladders.items()
        for setting, draft in drafts(one, sampler, AUTOREGRESSIVE).items()
    ]


def tune_contenders(
    contenders: Sequence[Contender],
    texts: Sequence[TargetText],
    target: LanguageModel,
    *,
    stages: Sequence[int],
    seed: int = 0,
) -> list[Tried]:
    """The contenders left after the last stage, the fastest first: all race on a few texts, and the
    better ones on more; those of earlier stages count too.

    Texts that loop are passed over as long as there are others.  Raises ValueError if there is no
    contender, or there are fewer texts than stages.
    """
    if not contenders or len(texts) < len(stages):
        raise ValueError(
            f"tuning needs contenders and at least {len(stages)} texts, got {len(contenders)} and"
            f" {len(texts)}"
        )
    ordered, used = sorted(texts, key=lambda text: text.loops), 0
    left, seconds, tokens = list(contenders), dict.fromkeys(contenders, 0.0), {}
    for number, added in enumerate(stages):
        share = ordered[used : used + added] or ordered[-1:]
        used += added
        warm_up = 0 if number else WARM_UP
        for timings in race(left, share, target, seed=seed, warm_up=warm_up):
            for one, timing in zip(left, timings, strict=True):
                seconds[one] += timing.seconds
                tokens[one] = tokens.get(one, 0) + timing.timed_tokens
        left.sort(key=lambda one: seconds[one] / max(1, tokens[one]))
        if number + 1 < len(stages):
            left = left[: max(2, math.ceil(KEPT * len(left)))]
    return [Tried(one, 1000 * seconds[one] / max(1, tokens[one]), len(contenders)) for one in left]


def calibrate(ladder: Ladder, sampler: Sampler, text: TargetText) -> tuple[PreTrainedModel, str]:
    """The target in the precision in which `model.generate` is faster here, and what the other one
    took, in words.
    """
    plain, count = ladder.target.model, min(CALIBRATION, len(text.tokens))
    models = {"float32": plain, "bfloat16": as_precise(plain, torch.bfloat16)}
    seconds = dict.fromkeys(models, math.inf)
    for repeat in range(1 + REPEATS):  # the first is not counted
        for name, model in models.items():
            [generate] = hugging_contenders(GENERATE, model, model, sampler)
            made = generate.run(text.prompt, count, repeat)
            if repeat:
                seconds[name] = min(seconds[name], made.seconds / max(1, made.timed_tokens))
    faster, slower = sorted(models, key=seconds.__getitem__)
    ratio = seconds[slower] / seconds[faster]
    return models[faster], f"{slower} took {ratio:.1f} times as long on {count} tokens"


def as_precise(model: PreTrainedModel, dtype: torch.dtype) -> PreTrainedModel:
    """The model itself if it has this precision, else a copy that has."""
    return model if model.dtype == dtype else copy.deepcopy(model).to(dtype)


def _noted(contender: Contender, note: str) -> Contender:
    return replace(contender, setting=f"{contender.setting} [{note}]")


def _texts(
    ladder: Ladder, split: str, limit: int, sampler: Sampler, plan: BenchPlan, say: Say
) -> list[TargetText]:
    by_domain = [load_prompts(domain, split, limit) for domain in DOMAINS]
    prompts = [one for same in zip(*by_domain, strict=True) for one in same]
    found = list(target_texts(ladder, prompts, sampler, tokens=plan.tokens, seed=plan.seed))
    calm, sampling = (
        sum(not text.loops for text in found),
        sampling_of(sampler.temperature, sampler.top_k),
    )
    say(
        f"{sampling}: {calm} of {len(found)} {split} texts of at most {plan.tokens} tokens have a"
        " repetition below 0.3"
    )
    return found
