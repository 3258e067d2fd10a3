"""A whole benchmark: per sampler every method at the setting that is fastest on development
prompts, and the race on held-out ones. What is finished is kept by prompt.
"""

import copy
import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path

import pandas as pd
import torch
from tqdm.auto import tqdm
from transformers import PreTrainedModel

from specdec_lib.core.chance import Sampler
from specdec_lib.core.protocols import LanguageModel
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.measure.latency.ledger import method_ledger
from specdec_lib.measure.latency.machine import machine_name
from specdec_lib.measure.race.contenders import AUTOREGRESSIVE, Contender, ours
from specdec_lib.measure.race.families import OURS, TOKEN_BY_TOKEN, drafts
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
from specdec_lib.models.cached.model import CachedModel
from specdec_lib.workload import DOMAINS, Ladder, Prompt, load_prompts

SAMPLERS = (Sampler(0), Sampler(1.0, top_k=50))
BUILT_ON = 3  # of the best trees
RUNTIMES = {"exact": "fast", "int8": "int8"}  # of an edition
PRECISIONS = ("Hugging Face float32", "Hugging Face bfloat16")
Say = Callable[[str], None]
Place = tuple[str, str]  # runtime and setting
Lineup = dict[str, list[Place]]  # by method, the fastest first


@dataclass(frozen=True)
class BenchPlan:
    """How much is measured.

    edition        "exact" (beside Hugging Face and the reference runtime) or "int8" (llama.cpp)
    prompts        held-out ones of each domain; `development` ones are tuned on
    most           settings per method that are tried, spread over its grid; None is all
    """

    edition: str = "exact"
    prompts: int = 24
    development: int = 2
    tokens: int = 128
    most: int | None = None


def benchmark(
    ladder: Ladder, plan: BenchPlan, say: Say, keep: Path
) -> Iterator[tuple[list[Timing], pd.DataFrame]]:
    """Under one sampler after the other: the timings of every method, and where the seconds of our
    methods go (`method_ledger`, on a development prompt of each domain).

    keep    a folder for what is finished: the same code, machine, models and plan, but for the
            number of held-out prompts, go on there
    """
    keep = keep / fingerprint(machine_name(), asdict(replace(plan, prompts=0)), ladder.models)
    say(f"what is finished is kept in {keep}, and a run that was stopped goes on there")
    prompts, few = _prompts("held-out", plan.prompts), _prompts("development", 1)
    limits = {"tokens": plan.tokens, "seed": 0}
    for sampler in SAMPLERS:
        folder = keep / f"T{sampler.temperature:g}-k{sampler.top_k or 0}"
        lineup = tune_lineup(ladder, sampler, plan, say, folder / "tuned")
        racing = contenders(ladder, RUNTIMES[plan.edition], sampler, lineup)
        own = {one.method: one.draft for one in racing if one.draft}
        if plan.edition == "exact":
            target = CachedModel(ladder.target.model, ladder.target.name)
            named = {"method": AUTOREGRESSIVE, "setting": TOKEN_BY_TOKEN, "runtime": "reference"}
            racing.append(ours(target, NoDraft(), sampler, **named))
        elif other := llama_cpp(sampler):
            racing.append(other)
        bar = tqdm(prompts, "held-out prompts", mininterval=1)
        raced = race_prompts(racing, ladder, bar, **limits, folder=folder)
        timings = [*chain.from_iterable(raced)]
        yield timings, method_ledger(ladder, sampler, own, few, **limits)


def _prompts(split: str, limit: int) -> list[Prompt]:
    """The first so many of every domain, the domains in turn."""
    by_domain = [load_prompts(domain, split, limit) for domain in DOMAINS]
    return [*chain.from_iterable(zip(*by_domain, strict=True))]


def tune_lineup(ladder: Ladder, sampler: Sampler, plan: BenchPlan, say: Say, keep: Path) -> Lineup:
    """Every method tuned on development prompts, read where it was kept, else kept now."""
    prompts, methods = _prompts("development", plan.development), [*OURS]
    methods += HF if plan.edition == "exact" else ()

    def tune() -> list[Row]:
        say(f"{sampling_of(sampler.temperature, sampler.top_k)}: tuning on {len(prompts)} prompts")
        texts = target_texts(ladder, prompts, sampler, tokens=plan.tokens, seed=0)
        texts, lineup = [*texts], Lineup()
        for method in methods:
            grid = contender_grid(ladder, RUNTIMES[plan.edition], sampler, method, lineup)
            tried = spread([*grid.values()], plan.most)
            ranked = tune_contenders(tried, texts, ladder.target)
            lineup[method] = [(one.runtime, one.setting) for one, _ in ranked]
            speed = f"{ranked[0][1]:.2f} ms per token, the best of {len(tried)}"
            say(f"  {ranked[0][0].name}: {speed} on development prompts")
        return [{"method": method, "ranked": ranked} for method, ranked in lineup.items()]

    rows = Kept(keep).rows(prompts[0], tune)
    return {row["method"]: [tuple(place) for place in row["ranked"]] for row in rows}


def contenders(ladder: Ladder, runtime: str, sampler: Sampler, lineup: Lineup) -> list[Contender]:
    """Plain decoding, and each method of a lineup at its best setting."""
    best = {AUTOREGRESSIVE: (runtime, TOKEN_BY_TOKEN)}
    best |= {method: ranked[0] for method, ranked in lineup.items()}
    return [
        contender_grid(ladder, runtime, sampler, method, lineup)[place]
        for method, place in best.items()
    ]


def contender_grid(
    ladder: Ladder, runtime: str, sampler: Sampler, method: str, lineup: Lineup
) -> dict[Place, Contender]:
    """All contenders of a method by runtime and setting: of ours on the best trees that the lineup
    has, of Hugging Face's in the precision in which its `generate` is faster.
    """
    if method in HF:
        networks = ladder.target.model, ladder.draft.model
        places = [lineup[GENERATE][0][0]] if GENERATE in lineup else PRECISIONS
        every = [
            hugging_contenders(method, *(_as_precise(one, place) for one in networks), sampler)
            for place in places
        ]
        return {(one.runtime, one.setting): one for own in every for one in own}
    trees = [setting for _, setting in lineup.get("tree", ())[:BUILT_ON]]
    named = {"method": method, "runtime": runtime}
    return {
        (runtime, name): ours(ladder.target, draft, sampler, setting=name, **named)
        for name, draft in drafts(ladder, sampler, method, trees).items()
    }


def spread(grid: Sequence, most: int | None) -> list:
    """At most so many of a grid, evenly over it; None is all."""
    size = min(most or len(grid), len(grid))
    return [grid[at * len(grid) // size] for at in range(size)]


def tune_contenders(
    contenders: Sequence[Contender], texts: Sequence[TargetText], target: LanguageModel
) -> list[tuple[Contender, float]]:
    """The contenders, the fastest on these texts first, with their milliseconds per token."""
    first = replace(texts[0], tokens=texts[0].tokens[:WARM_UP])
    raced = zip(*race(contenders, texts, target, warm_up=first), strict=True)
    found = []
    for one, own in zip(contenders, raced, strict=True):
        tokens = sum(timing.timed_tokens for timing in own)
        found.append((one, 1000 * sum(timing.seconds for timing in own) / max(1, tokens)))
    return sorted(found, key=lambda ranked: ranked[1])


@functools.lru_cache(maxsize=4)
def _as_precise(model: PreTrainedModel, place: str) -> PreTrainedModel:
    """The model itself if it has the precision of a runtime of Hugging Face, else a copy."""
    dtype = getattr(torch, place.split()[-1])
    return model if model.dtype == dtype else copy.deepcopy(model).to(dtype)
