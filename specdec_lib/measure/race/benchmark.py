"""A whole benchmark: per sampler every method at the setting that is fastest on development
prompts, and the race on held-out ones.  What is finished is kept by prompt, so that a run goes on
where it was.
"""

import copy
import functools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path

import pandas as pd
import torch
from tqdm.auto import tqdm
from transformers import PreTrainedModel

from specdec_lib.core.chance import Sampler
from specdec_lib.core.protocols import LanguageModel
from specdec_lib.measure.latency.ledger import method_ledger
from specdec_lib.measure.latency.machine import machine_name
from specdec_lib.measure.race.contenders import AUTOREGRESSIVE, Contender, ours
from specdec_lib.measure.race.families import OURS, drafts
from specdec_lib.measure.race.harness import (
    WARM_UP,
    TargetText,
    Timing,
    race,
    race_prompts,
    target_texts,
)
from specdec_lib.measure.race.hugging import GENERATE, HF, hugging_contenders, llama_cpp
from specdec_lib.measure.sweep.identity import fingerprint
from specdec_lib.measure.sweep.kept import Kept, Row
from specdec_lib.measure.sweep.ratios import sampling_of
from specdec_lib.workload import DOMAINS, Ladder, Prompt, load_prompts

SAMPLERS = (Sampler(0), Sampler(1.0, top_k=50))
BUILT_ON = 3  # of the best trees
KEPT = 1 / 3  # of the settings, from stage to stage; two at the least
PRECISIONS = ("Hugging Face float32", "Hugging Face bfloat16")
Say = Callable[[str], None]
Place = tuple[str, str]  # runtime and setting
Lineup = dict[str, list[Place]]  # by method the places that tuning left, the fastest first


@dataclass(frozen=True)
class BenchPlan:
    """How much is measured.

    prompts        held-out prompts of each domain, the first so many
    development    prompts of each domain that settings are tuned on, the first so many
    stages         prompts that each stage of the tuning adds
    most           settings per method that are tried, spread over its grid; None is all
    hugging        race Hugging Face's ways too: they run the exact edition only
    """

    prompts: int = 24
    development: int = 5
    tokens: int = 128
    stages: tuple[int, ...] = (2, 4)
    most: int | None = None
    seed: int = 0
    hugging: bool = True

    @property
    def limits(self) -> dict[str, int]:
        """Of every text: tokens and seed."""
        return {"tokens": self.tokens, "seed": self.seed}


def benchmark(
    ladders: Mapping[str, Ladder], plan: BenchPlan, say: Say, keep: Path
) -> Iterator[tuple[list[Timing], pd.DataFrame]]:
    """Under one sampler after the other: the timings of every method, and where the seconds of our
    methods go (`method_ledger`, on a development prompt of each domain).

    ladders    by runtime, the reference first; methods are tuned on the last one
    say        called with a line when something is settled
    keep       a folder for what is finished: the same code, machine, models and plan, but for the
               number of held-out prompts, go on there
    """
    last, ladder = [*ladders.items()][-1]
    models = {runtime: one.models for runtime, one in ladders.items()}
    keep = keep / fingerprint(machine_name(), asdict(replace(plan, prompts=0)), models)
    say(f"what is finished is kept in {keep}, and a run that was stopped goes on there")
    prompts, few = _prompts("held-out", plan.prompts), _prompts("development", 1)
    for sampler in SAMPLERS:
        folder = keep / f"T{sampler.temperature:g}-k{sampler.top_k or 0}"
        racing = contenders(ladders, sampler, _tuned(ladders, sampler, plan, say, folder))
        bar = tqdm(prompts, "held-out prompts", mininterval=1)
        raced = race_prompts(racing, ladder, bar, **plan.limits, folder=folder)
        timings = [*chain.from_iterable(raced)]
        own = {one.method: one.draft for one in racing if one.draft and one.runtime == last}
        yield timings, method_ledger(ladder, sampler, own, few, **plan.limits)


def _prompts(split: str, limit: int) -> list[Prompt]:
    """The first so many of every domain, the domains in turn."""
    by_domain = [load_prompts(domain, split, limit) for domain in DOMAINS]
    return [*chain.from_iterable(zip(*by_domain, strict=True))]


def _tuned(
    ladders: Mapping[str, Ladder], sampler: Sampler, plan: BenchPlan, say: Say, folder: Path
) -> Lineup:
    """`tune_lineup` on development prompts, read where it was kept, else kept now."""
    prompts, ladder = _prompts("development", plan.development), [*ladders.values()][-1]

    def tune() -> list[Row]:
        sampling = sampling_of(sampler.temperature, sampler.top_k)
        say(f"{sampling}: tuning on {plan.development} prompts of each domain")
        texts = list(target_texts(ladder, prompts, sampler, **plan.limits))
        lineup = tune_lineup(ladders, sampler, texts, plan, say)
        return [{"method": method, "left": left} for method, left in lineup.items()]

    rows = Kept(folder / "tuned").rows(prompts[0], tune)
    return {row["method"]: [tuple(place) for place in row["left"]] for row in rows}


def tune_lineup(
    ladders: Mapping[str, Ladder],
    sampler: Sampler,
    texts: Sequence[TargetText],
    plan: BenchPlan,
    say: Say,
) -> Lineup:
    """Every method tuned on these texts of development prompts."""
    target, lineup = [*ladders.values()][-1].target, Lineup()
    for method in (*OURS, *(HF if plan.hugging else ())):
        grid = contender_grid(ladders, sampler, method, lineup)
        tried = spread([*grid.values()], plan.most)
        left = tune_contenders(tried, texts, target, stages=plan.stages, seed=plan.seed)
        lineup[method] = [(one.runtime, one.setting) for one, _ in left]
        found, milliseconds = left[0]
        speed = f"{milliseconds:.2f} ms per token, the best of {len(tried)}"
        say(f"  {found.name}: {speed} on development prompts")
    return lineup


def contenders(ladders: Mapping[str, Ladder], sampler: Sampler, lineup: Lineup) -> list[Contender]:
    """Plain decoding on every runtime, each method of a lineup at its best setting, and llama.cpp
    where it runs the same edition.
    """
    racing = [*contender_grid(ladders, sampler, AUTOREGRESSIVE, lineup).values()]
    for method, (best, *_) in lineup.items():
        racing.append(contender_grid(ladders, sampler, method, lineup)[best])
    if "int8" in ladders and (other := llama_cpp(sampler)):
        racing.append(other)
    return racing


def contender_grid(
    ladders: Mapping[str, Ladder], sampler: Sampler, method: str, lineup: Lineup
) -> dict[Place, Contender]:
    """All contenders of a method by runtime and setting: plain decoding on every runtime, our
    methods on the last one, on the best trees that the lineup has, and Hugging Face's ways on the
    first one's models, in the precision in which its `generate` is faster.
    """
    reference, (runtime, ladder) = next(iter(ladders.values())), [*ladders.items()][-1]
    if method == AUTOREGRESSIVE:
        made = {name: (one, drafts(one, sampler, method)) for name, one in ladders.items()}
    elif method in OURS:
        trees = [setting for _, setting in lineup.get("tree", ())[:BUILT_ON]]
        made = {runtime: (ladder, drafts(ladder, sampler, method, trees))}
    else:
        networks = reference.target.model, reference.draft.model
        places = [lineup[GENERATE][0][0]] if GENERATE in lineup else PRECISIONS
        found = [
            hugging_contenders(method, *(_as_precise(one, place) for one in networks), sampler)
            for place in places
        ]
        return {(one.runtime, one.setting): one for own in found for one in own}
    return {
        (place, name): ours(one.target, draft, sampler, method=method, setting=name, runtime=place)
        for place, (one, grid) in reversed(made.items())
        for name, draft in grid.items()
    }


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
    ordered, used, left = sorted(texts, key=lambda text: text.loops), 0, [*contenders]
    seconds, tokens = Counter(), Counter()

    def per_token(one: Contender) -> float:
        return 1000 * seconds[one] / max(1, tokens[one])

    for number, added in enumerate(stages):
        share = ordered[used : used + added] or ordered[-1:]
        used += added
        if number:
            left = left[: max(2, math.ceil(KEPT * len(left)))]
        first = None if number else replace(share[0], tokens=share[0].tokens[:WARM_UP])
        for timings in race(left, share, target, seed=seed, warm_up=first):
            for one, timing in zip(left, timings, strict=True):
                seconds[one] += timing.seconds
                tokens[one] += timing.timed_tokens
        left.sort(key=per_token)
    return [(one, per_token(one)) for one in left]


@functools.lru_cache(maxsize=4)
def _as_precise(model: PreTrainedModel, place: str) -> PreTrainedModel:
    """The model itself if it has the precision of a runtime of Hugging Face, else a copy."""
    dtype = getattr(torch, place.split()[-1])
    return model if model.dtype == dtype else copy.deepcopy(model).to(dtype)
