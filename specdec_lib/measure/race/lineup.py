"""Who enters the race: every method at the setting that was fastest on development prompts."""

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from transformers import PreTrainedModel

from specdec_lib.core.chance import Sampler
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.measure.race.contenders import AUTOREGRESSIVE, NOTE, OURS, Contender, ours
from specdec_lib.measure.race.families import PLAIN, drafts, trees
from specdec_lib.measure.race.hugging import assisted, generates, looks_up
from specdec_lib.measure.race.texts import Text
from specdec_lib.measure.race.tuning import STAGES, Ranked, tuned
from specdec_lib.workload import Ladder, load_ladder

REFERENCE = "reference"
BUILT_ON = 3  # of the best trees
CALIBRATION = 12  # tokens that settle which precision Hugging Face is faster in
REPEATS = 2


@dataclass(frozen=True)
class Lineup:
    """The contenders under one sampler, and which of staged and cascade was faster on development
    prompts.
    """

    contenders: tuple[Contender, ...]
    chosen: str


def loaded(runtime: str, device: str) -> Ladder:
    """The ladder under one of our runtimes."""
    return load_ladder(device=device, runtime=runtime)


def lineup(
    ladders: Mapping[str, Ladder],
    sampler: Sampler,
    texts: Sequence[Text],
    *,
    stages: Sequence[int] = STAGES,
    most: int | None = None,
    seed: int = 0,
    on_method: Callable[[Ranked], None] = lambda best: None,
) -> Lineup:
    """Everybody at the best setting on these texts.

    ladders      by runtime, the reference first; methods are tuned on the last one
    texts        of development prompts
    most         settings per method that are tried, spread over its grid; None is all
    on_method    called with the best setting of each method as soon as it is known
    """
    (_, plain), *_ = ladders.items()
    *_, (runtime, ladder) = ladders.items()
    best: dict[str, list[Ranked]] = {}

    def settle(grid: Sequence[Contender]) -> None:
        best[grid[0].method] = tuned(
            thinned(grid, most), texts, ladder.target, stages=stages, seed=seed
        )
        on_method(best[grid[0].method][0])

    for method in OURS:
        built_on = {
            one.contender.setting: trees(ladder, sampler)[one.contender.setting]
            for one in best.get("tree", ())[:BUILT_ON]
        }
        grid = drafts(ladder, sampler, method, built_on or None)
        settle(
            [
                ours(ladder.target, draft, sampler, method=method, runtime=runtime, setting=name)
                for name, draft in grid.items()
            ]
        )
    hugging, note = calibrated(plain, sampler, texts[0])
    settle(assisted(hugging, as_precise(plain.draft.model, hugging.dtype), sampler))
    settle(looks_up(hugging, sampler))
    own = [
        ours(one.target, NoDraft(), sampler, method=AUTOREGRESSIVE, runtime=name, setting=PLAIN)
        for name, one in ladders.items()
    ]
    final = tuned(
        [best[method][0].contender for method in ("staged", "cascade")],
        texts,
        ladder.target,
        stages=(sum(stages),),
        seed=seed,
    )
    contenders = (
        *own,
        _noted(generates(hugging, sampler), note),
        *(_told(ranked[0]) for ranked in best.values()),
    )
    return Lineup(contenders, final[0].contender.method)


def calibrated(ladder: Ladder, sampler: Sampler, text: Text) -> tuple[PreTrainedModel, str]:
    """The target in the precision in which `model.generate` is faster here, and what the other one
    took, in words.
    """
    plain = ladder.target.model
    short = replace(text, tokens=text.tokens[:CALIBRATION])
    models = {"float32": plain, "bfloat16": as_precise(plain, torch.bfloat16)}
    seconds = dict.fromkeys(models, math.inf)
    for repeat in range(1 + REPEATS):  # the first is not counted
        for name, model in models.items():
            played = generates(model, sampler).play(short.prompt, len(short.tokens), repeat)
            if repeat:
                seconds[name] = min(seconds[name], played.seconds / max(1, played.timed_tokens))
    faster, slower = sorted(models, key=seconds.__getitem__)
    return (
        models[faster],
        f"{slower} took {seconds[slower] / seconds[faster]:.1f} times as long on"
        f" {len(short.tokens)} tokens",
    )


def as_precise(model: PreTrainedModel, dtype: torch.dtype) -> PreTrainedModel:
    """The model itself if it has this precision, else a copy that has."""
    return model if model.dtype == dtype else copy.deepcopy(model).to(dtype)


def thinned(grid: Sequence[Contender], most: int | None) -> list[Contender]:
    """At most so many of a grid, evenly spread, the first among them."""
    if most is None or len(grid) <= most:
        return list(grid)
    return [grid[at * len(grid) // most] for at in range(most)]


def _told(best: Ranked) -> Contender:
    return _noted(
        best.contender,
        f"the best of {best.tried} on development prompts, {best.ms_per_token:.2f} ms per token"
        " there",
    )


def _noted(contender: Contender, note: str) -> Contender:
    return replace(contender, setting=f"{contender.setting}{NOTE}{note}]")
