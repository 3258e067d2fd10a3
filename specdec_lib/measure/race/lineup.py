"""Who races: every method at the setting that is fastest on development prompts."""

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from transformers import PreTrainedModel

from specdec_lib.core.chance import Sampler
from specdec_lib.core.protocols import Draft, LanguageModel
from specdec_lib.measure.race.contenders import AUTOREGRESSIVE, Contender, ours
from specdec_lib.measure.race.families import OURS, TOKEN_BY_TOKEN, drafts
from specdec_lib.measure.race.harness import WARM_UP, TargetText, race
from specdec_lib.measure.race.hugging import (
    ASSIST,
    GENERATE,
    HF,
    LOOKUP,
    hugging_contenders,
    llama_cpp,
)
from specdec_lib.workload import Ladder

BUILT_ON = 3  # of the best trees
FINALISTS = ("staged", "cascade", "copies first")
KEPT = 1 / 3  # of the settings, from stage to stage; two at the least
CALIBRATION = 12  # tokens that settle which precision Hugging Face is faster in
REPEATS = 2
Say = Callable[[str], None]


@dataclass(frozen=True)
class TunedSetting:
    """The setting of a method that was fastest on development prompts, of so many tried."""

    setting: str
    ms_per_token: float
    tried: int

    @property
    def note(self) -> str:
        """How it was chosen, in words."""
        speed = f"{self.ms_per_token:.2f} ms per token"
        return f"{speed}, the best of {self.tried} on development prompts"


@dataclass(frozen=True)
class Lineup:
    """What tuning settled under one sampler: plain values, from which contenders are built again.

    best        a choice by method
    built_on    the trees that staged drafts and tails were built on
    chosen      which of `FINALISTS` was fastest on development prompts, if several were tuned
    precision   in which Hugging Face is faster, "" where it does not race, and what the other took
    """

    best: dict[str, TunedSetting] = field(default_factory=dict)
    built_on: tuple[str, ...] = ()
    chosen: str = ""
    precision: str = ""
    note: str = ""


def tune_lineup(
    ladders: Mapping[str, Ladder],
    sampler: Sampler,
    texts: Sequence[TargetText],
    *,
    stages: Sequence[int],
    most: int | None,
    seed: int,
    methods: Sequence[str] = OURS,
    hugging: bool = True,
    say: Say = print,
) -> Lineup:
    """Every method at its best setting on these texts of development prompts.

    ladders    by runtime; methods are tuned on the last one
    stages     prompts that each stage of the tuning adds
    most       settings per method that are tried, spread over its grid; None is all
    """
    (runtime, ladder), lineup = list(ladders.items())[-1], Lineup()
    found: dict[str, Contender] = {}

    def settle(method: str, grid: Mapping[str, Contender]) -> list[str]:
        tried = spread([*grid.values()], most)
        left = tune_contenders(tried, texts, ladder.target, stages=stages, seed=seed)
        found[method], milliseconds = left[0]
        choice = TunedSetting(found[method].setting, milliseconds, len(tried))
        lineup.best[method] = choice
        say(f"  {method}: {choice.setting}: {choice.note}")
        return [one.setting for one, _ in left]

    for method in methods:
        left = settle(method, _grid(ladder, runtime, sampler, method, lineup.built_on))
        if method == "tree":
            lineup = replace(lineup, built_on=tuple(left[:BUILT_ON]))
    if hugging:
        network, note = calibrate(next(iter(ladders.values())), sampler, texts[0])
        precision = str(network.dtype).removeprefix("torch.")
        lineup = replace(lineup, precision=precision, note=note)
        for method in (ASSIST, LOOKUP):
            settle(method, _hugging(ladders, sampler, method, network))
    finalists = [found[method] for method in FINALISTS if method in found]
    if len(finalists) > 1:
        final = tune_contenders(finalists, texts, ladder.target, stages=[sum(stages)], seed=seed)
        lineup = replace(lineup, chosen=final[0][0].method)
    return lineup


def spread(grid: Sequence, most: int | None) -> list:
    """At most so many of a grid, evenly over it; None is all."""
    size = min(most or len(grid), len(grid))
    return [grid[at * len(grid) // size] for at in range(size)]


def tune_contenders(
    contenders: Sequence[Contender],
    texts: Sequence[TargetText],
    target: LanguageModel,
    *,
    stages: Sequence[int],
    seed: int = 0,
) -> list[tuple[Contender, float]]:
    """The contenders left after the last stage, the fastest first, with their milliseconds per
    token: all race on a few texts, and the better ones on more; those of earlier stages count too.

    Texts that loop are passed over as long as there are others.  Raises ValueError if there is no
    contender, or there are fewer texts than stages.
    """
    if not contenders or len(texts) < len(stages):
        got = f"{len(contenders)} and {len(texts)}"
        raise ValueError(f"tuning needs contenders and at least {len(stages)} texts, got {got}")
    ordered, used = sorted(texts, key=lambda text: text.loops), 0
    left, seconds, tokens = list(contenders), {}, {}

    def per_token(one: Contender) -> float:
        return 1000 * seconds[one] / max(1, tokens[one])

    for number, added in enumerate(stages):
        share = ordered[used : used + added] or ordered[-1:]
        used += added
        warm_up = 0 if number else WARM_UP
        for timings in race(left, share, target, seed=seed, warm_up=warm_up):
            for one, timing in zip(left, timings, strict=True):
                seconds[one] = seconds.get(one, 0.0) + timing.seconds
                tokens[one] = tokens.get(one, 0) + timing.timed_tokens
        left.sort(key=per_token)
        if number + 1 < len(stages):
            left = left[: max(2, math.ceil(KEPT * len(left)))]
    return [(one, per_token(one)) for one in left]


def calibrate(ladder: Ladder, sampler: Sampler, text: TargetText) -> tuple[PreTrainedModel, str]:
    """The target in the precision in which `generate` is faster; what the other took, in words."""
    plain, count = ladder.target.model, min(CALIBRATION, len(text.tokens))
    models = {"float32": plain, "bfloat16": _as_precise(plain, torch.bfloat16)}
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


def contenders(
    ladders: Mapping[str, Ladder], sampler: Sampler, lineup: Lineup
) -> tuple[list[Contender], list[Contender]]:
    """Our methods beside plain decoding on the last runtime; and the others: plain decoding on
    every other runtime, Hugging Face's ways where it races, llama.cpp where it runs the same
    edition.
    """
    *others, plain = (
        _grid(ladder, runtime, sampler, AUTOREGRESSIVE)[TOKEN_BY_TOKEN]
        for runtime, ladder in ladders.items()
    )
    main, (runtime, ladder) = [plain], list(ladders.items())[-1]
    for method, choice in lineup.best.items():
        if method not in HF:
            grid = _grid(ladder, runtime, sampler, method, lineup.built_on)
            main.append(_noted(grid[choice.setting], choice.note))
    if lineup.precision:
        network = next(iter(ladders.values())).target.model
        network = _as_precise(network, getattr(torch, lineup.precision))
        for method in HF:
            choice = lineup.best.get(method)
            setting, note = (
                (choice.setting, choice.note) if choice else (TOKEN_BY_TOKEN, lineup.note)
            )
            others.append(_noted(_hugging(ladders, sampler, method, network)[setting], note))
    elif runtime == "int8" and (there := llama_cpp(sampler)):
        others.append(there)
    return main, others


def best_drafts(ladder: Ladder, sampler: Sampler, lineup: Lineup) -> dict[str, Draft]:
    """Our methods by name, each at its best setting, plain decoding first."""
    best = {method: one.setting for method, one in lineup.best.items() if method not in HF}
    return {
        method: drafts(ladder, sampler, method, lineup.built_on)[setting]
        for method, setting in {AUTOREGRESSIVE: TOKEN_BY_TOKEN, **best}.items()
    }


def _grid(
    ladder: Ladder, runtime: str, sampler: Sampler, method: str, built_on: Sequence[str] = ()
) -> dict[str, Contender]:
    """The contenders of one of our methods, by setting."""
    return {
        name: ours(ladder.target, one, sampler, method=method, setting=name, runtime=runtime)
        for name, one in drafts(ladder, sampler, method, built_on).items()
    }


def _hugging(
    ladders: Mapping[str, Ladder], sampler: Sampler, method: str, network: PreTrainedModel
) -> dict[str, Contender]:
    """The contenders of one of Hugging Face's ways, by setting."""
    draft = _as_precise(next(iter(ladders.values())).draft.model, network.dtype)
    return {one.setting: one for one in hugging_contenders(method, network, draft, sampler)}


def _as_precise(model: PreTrainedModel, dtype: torch.dtype) -> PreTrainedModel:
    """The model itself if it has this precision, else a copy that has."""
    return model if model.dtype == dtype else copy.deepcopy(model).to(dtype)


def _noted(contender: Contender, note: str) -> Contender:
    return replace(contender, setting=f"{contender.setting} [{note}]")
