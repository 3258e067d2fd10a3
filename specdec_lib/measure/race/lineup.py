"""Who enters the benchmark: every method at the setting that was fastest on development prompts,
found by halving: all settings on a few prompts, the better ones on more.
"""

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from transformers import PreTrainedModel

from specdec_lib.core.chance import Sampler
from specdec_lib.core.protocols import LanguageModel
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.measure.race.contenders import AUTOREGRESSIVE, Contender, ours
from specdec_lib.measure.race.families import OURS, PLAIN, drafts, trees
from specdec_lib.measure.race.harness import WARM_UP, TargetText, race
from specdec_lib.measure.race.hugging import ASSIST, LOOKUP, every_setting, generates
from specdec_lib.workload import Ladder

STAGES = (2, 4, 8)  # prompts that are added
KEPT = 1 / 3  # of the settings, from stage to stage; two at the least
BUILT_ON = 3  # of the best trees
CALIBRATION = 12  # tokens that settle which precision Hugging Face is faster in
REPEATS = 2
NOTE = " ["  # what follows it in a setting is a remark


@dataclass(frozen=True)
class Lineup:
    """The contenders under one sampler, and which of staged and cascade was faster on development
    prompts.
    """

    contenders: tuple[Contender, ...]
    chosen: str


@dataclass(frozen=True)
class Ranked:
    """A contender that was left at the end of tuning, with its time per token on all development
    prompts; `tried` settings were there at first.
    """

    contender: Contender
    ms_per_token: float
    tried: int


def tune(
    contenders: Sequence[Contender],
    texts: Sequence[TargetText],
    target: LanguageModel,
    *,
    stages: Sequence[int] = STAGES,
    seed: int = 0,
) -> list[Ranked]:
    """The contenders left after the last stage, the fastest first; all in a stage have seen the
    same texts, those of earlier stages included.

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
    return [Ranked(one, 1000 * seconds[one] / max(1, tokens[one]), len(contenders)) for one in left]


def lineup(
    ladders: Mapping[str, Ladder],
    sampler: Sampler,
    texts: Sequence[TargetText],
    *,
    stages: Sequence[int] = STAGES,
    most: int | None = None,
    seed: int = 0,
    on_method: Callable[[Ranked], None] = lambda best: None,
) -> Lineup:
    """Every method at its best setting on these texts.

    ladders      by runtime, the reference first; methods are tuned on the last one
    texts        of development prompts
    most         settings per method that are tried, spread over its grid; None is all
    on_method    called with the best setting of each method as soon as it is known
    """
    plain, (runtime, ladder) = next(iter(ladders.values())), list(ladders.items())[-1]
    best: dict[str, list[Ranked]] = {}

    def settle(method: str, grid: Sequence[Contender]) -> None:
        tried = thinned(grid, most)
        best[method] = tune(tried, texts, ladder.target, stages=stages, seed=seed)
        on_method(best[method][0])

    every_tree = trees(ladder, sampler)
    for method in OURS:
        names = [one.contender.setting for one in best.get("tree", ())[:BUILT_ON]]
        built_on = {name: every_tree[name] for name in names} or None
        labels = {"method": method, "runtime": runtime}
        grid = drafts(ladder, sampler, method, built_on)
        settle(method, [ours(ladder.target, grid[n], sampler, setting=n, **labels) for n in grid])
    network, note = calibrated(plain, sampler, texts[0])
    guesser = as_precise(plain.draft.model, network.dtype)
    for method in (ASSIST, LOOKUP):
        settle(method, every_setting(method, network, guesser, sampler))
    own = [
        ours(one.target, NoDraft(), sampler, method=AUTOREGRESSIVE, runtime=name, setting=PLAIN)
        for name, one in ladders.items()
    ]
    finalists = [best[method][0].contender for method in ("staged", "cascade")]
    final = tune(finalists, texts, ladder.target, stages=(sum(stages),), seed=seed)
    noted = [_noted(generates(network, sampler), note)]
    for first, *_ in best.values():
        words = f"the best of {first.tried} on development prompts, {first.ms_per_token:.2f} ms"
        noted.append(_noted(first.contender, f"{words} per token there"))
    return Lineup((*own, *noted), final[0].contender.method)


def calibrated(ladder: Ladder, sampler: Sampler, text: TargetText) -> tuple[PreTrainedModel, str]:
    """The target in the precision in which `model.generate` is faster here, and what the other one
    took, in words.
    """
    plain, count = ladder.target.model, min(CALIBRATION, len(text.tokens))
    models = {"float32": plain, "bfloat16": as_precise(plain, torch.bfloat16)}
    seconds = dict.fromkeys(models, math.inf)
    for repeat in range(1 + REPEATS):  # the first is not counted
        for name, model in models.items():
            made = generates(model, sampler).run(text.prompt, count, repeat)
            if repeat:
                seconds[name] = min(seconds[name], made.seconds / max(1, made.timed_tokens))
    faster, slower = sorted(models, key=seconds.__getitem__)
    ratio = seconds[slower] / seconds[faster]
    return models[faster], f"{slower} took {ratio:.1f} times as long on {count} tokens"


def as_precise(model: PreTrainedModel, dtype: torch.dtype) -> PreTrainedModel:
    """The model itself if it has this precision, else a copy that has."""
    return model if model.dtype == dtype else copy.deepcopy(model).to(dtype)


def thinned(grid: Sequence[Contender], most: int | None) -> list[Contender]:
    """At most so many of a grid, evenly spread, the first among them."""
    if most is None or len(grid) <= most:
        return list(grid)
    return [grid[at * len(grid) // most] for at in range(most)]


def _noted(contender: Contender, note: str) -> Contender:
    return replace(contender, setting=f"{contender.setting}{NOTE}{note}]")
