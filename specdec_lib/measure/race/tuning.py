"""Tuning on development prompts: which setting of a method is fastest, and in which precision
Hugging Face is.
"""

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from transformers import PreTrainedModel

from specdec_lib.core.chance import Sampler
from specdec_lib.core.protocols import LanguageModel
from specdec_lib.measure.race.contenders import Contender
from specdec_lib.measure.race.harness import WARM_UP, TargetText, race
from specdec_lib.measure.race.hugging import GENERATE, hugging_contenders
from specdec_lib.workload import Ladder

KEPT = 1 / 3  # of the settings, from stage to stage; two at the least
CALIBRATION = 12  # tokens that settle which precision Hugging Face is faster in
REPEATS = 2


@dataclass(frozen=True)
class Tried:
    """A contender that was left at the end of tuning, with its time per token on all development
    prompts; `tried` settings were there at first.
    """

    contender: Contender
    ms_per_token: float
    tried: int


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


def as_precise(model: PreTrainedModel, dtype: torch.dtype | str) -> PreTrainedModel:
    """The model itself if it has this precision, else a copy that has."""
    dtype = getattr(torch, dtype) if isinstance(dtype, str) else dtype
    return model if model.dtype == dtype else copy.deepcopy(model).to(dtype)
