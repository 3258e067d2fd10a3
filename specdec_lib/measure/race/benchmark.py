"""A whole benchmark: per sampler the texts, the methods at their best settings, and the race on
held-out prompts.  What is finished is kept by prompt, so that a run goes on where it was.
"""

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import pandas as pd
from tqdm.auto import tqdm

from specdec_lib.core.chance import Sampler
from specdec_lib.core.files import write_whole
from specdec_lib.measure.latency.ledger import method_ledger
from specdec_lib.measure.latency.machine import machine_name
from specdec_lib.measure.race.families import ON_TREES, OURS
from specdec_lib.measure.race.harness import Timing, race_prompts, target_texts
from specdec_lib.measure.race.lineup import (
    Lineup,
    Say,
    TunedSetting,
    best_drafts,
    contenders,
    tune_lineup,
)
from specdec_lib.measure.sweep.identity import fingerprint
from specdec_lib.measure.sweep.ratios import sampling_of
from specdec_lib.workload import DOMAINS, Ladder, Prompt, load_prompts

SAMPLERS = (Sampler(0), Sampler(1.0, top_k=50), Sampler(1.0))  # the last for plain and best only


@dataclass(frozen=True)
class BenchPlan:
    """How much is measured.

    prompts        held-out prompts of each domain under each sampler, the first so many
    others         of these, how many the slower baselines run too
    development    prompts of each domain that settings are tuned on, the first so many
    stages         prompts that each stage of the tuning adds
    most           settings per method that are tried, spread over its grid; None is all
    hugging        race Hugging Face's ways too: they run the exact edition only
    """

    prompts: tuple[int, ...] = (24, 24, 8)
    others: int = 8
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


SMOKE = BenchPlan(prompts=(1, 1, 1), development=1, tokens=20, stages=(1, 1), most=4)


def benchmark(
    ladders: Mapping[str, Ladder], plan: BenchPlan, say: Say, keep: Path | None = None
) -> Iterator[tuple[list[Timing], Lineup, pd.DataFrame]]:
    """Under one sampler after the other: the timings of every method, what was tuned, and where
    the seconds of our methods go (`method_ledger`, on a development prompt of each domain).

    ladders    by runtime, the reference first; methods are tuned on the last one
    say        called with a line when something is settled
    keep       a folder for what is finished: the same code, machine, models and plan, but for the
               numbers of held-out prompts, go on there
    """
    if keep is not None:
        device = str(next(iter(ladders.values())).target.model.device)
        models = {runtime: ladder.models for runtime, ladder in ladders.items()}
        same = asdict(replace(plan, prompts=(), others=0))
        keep = keep / fingerprint(machine_name(device), same, models)
        say(f"what is finished is kept in {keep}, and a run that was stopped goes on there")
    chosen, ladder = "", [*ladders.values()][-1]
    for sampler, count in zip(SAMPLERS, plan.prompts, strict=True):
        folder = keep and keep / f"T{sampler.temperature:g}-k{sampler.top_k or 0}"
        whole = sampler.temperature == 0 or sampler.top_k is not None or not chosen
        needed = ("tree", chosen) if chosen in ON_TREES else (chosen,)
        methods = OURS if whole else needed
        lineup = kept_lineup(folder, partial(_tuned, ladders, sampler, plan, methods, say))
        timings = _held_out(ladders, sampler, plan, lineup, count, folder=folder, say=say)
        few, drafts = _prompts("development", 1), best_drafts(ladder, sampler, lineup)
        yield timings, lineup, method_ledger(ladder, sampler, drafts, few, **plan.limits)
        chosen = lineup.chosen or chosen


def _tuned(
    ladders: Mapping[str, Ladder], sampler: Sampler, plan: BenchPlan, methods: Sequence, say: Say
) -> Lineup:
    sampling = sampling_of(sampler.temperature, sampler.top_k)
    say(f"{sampling}: tuning on {plan.development} prompts of each domain")
    prompts, ladder = _prompts("development", plan.development), [*ladders.values()][-1]
    texts = list(target_texts(ladder, prompts, sampler, **plan.limits))
    options = {"stages": plan.stages, "most": plan.most, "seed": plan.seed, "say": say}
    hugging = plan.hugging and methods is OURS
    return tune_lineup(ladders, sampler, texts, methods=methods, hugging=hugging, **options)


def _held_out(
    ladders: Mapping[str, Ladder],
    sampler: Sampler,
    plan: BenchPlan,
    lineup: Lineup,
    count: int,
    *,
    folder: Path | None,
    say: Say,
) -> list[Timing]:
    """The timings of every contender on the held-out prompts, those that were kept included."""
    main, others = contenders(ladders, sampler, lineup)
    slowest = max((one.ms_per_token for one in lineup.best.values()), default=0.0)
    runs = count * len(main) + min(count, plan.others) * len(others)
    seconds = slowest / 1000 * plan.tokens * len(DOMAINS) * runs
    say(f"held-out prompts: {seconds / 60:.0f} minutes at most, without what is kept")
    ladder, prompts = [*ladders.values()][-1], _prompts("held-out", count)
    [warm_up] = target_texts(ladder, _prompts("development", 1)[:1], sampler, **plan.limits)
    options = plan.limits | {"folder": folder, "warm_up": warm_up}
    few, found = plan.others * len(DOMAINS), []
    for racing, own in ([*main, *others], prompts[:few]), (main, prompts[few:]):
        raced = race_prompts(racing, ladder, tqdm(own, "prompts"), **options)
        found += [timing for timings in raced for timing in timings]
    return found


def kept_lineup(folder: Path | None, tune: Callable[[], Lineup]) -> Lineup:
    """What was tuned, read where it was kept, else kept now; a damaged file counts as none."""
    place = folder and folder / "lineup.json"
    if place and place.is_file():
        with contextlib.suppress(ValueError, TypeError, KeyError, AttributeError):
            found = json.loads(place.read_text(encoding="utf-8"))
            best = {method: TunedSetting(**one) for method, one in found.pop("best").items()}
            return Lineup(**found, best=best)
    lineup = tune()
    if place:
        place.parent.mkdir(parents=True, exist_ok=True)
        write_whole(place, json.dumps(asdict(lineup), indent=1).encode())
    return lineup


def _prompts(split: str, limit: int) -> list[Prompt]:
    """The first so many of every domain, the domains in turn."""
    by_domain = [load_prompts(domain, split, limit) for domain in DOMAINS]
    return [one for same in zip(*by_domain, strict=True) for one in same]
