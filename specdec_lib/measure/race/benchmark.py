"""A whole benchmark: per sampler the texts, the methods at their best settings, and the race on
held-out prompts.  What is finished is kept by prompt, so that a run goes on where it was.
"""

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import pandas as pd
from tqdm.auto import tqdm

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.files import write_whole
from specdec_lib.core.protocols import Draft
from specdec_lib.measure.latency.ledger import round_parts, shares
from specdec_lib.measure.latency.machine import machine_name
from specdec_lib.measure.race.contenders import Contender
from specdec_lib.measure.race.families import ON_TREES
from specdec_lib.measure.race.harness import TargetText, Timing, race, target_texts
from specdec_lib.measure.race.lineup import (
    OURS,
    Lineup,
    Say,
    TunedSetting,
    best_drafts,
    contenders,
    tune_lineup,
)
from specdec_lib.measure.sweep.identity import fingerprint
from specdec_lib.measure.sweep.kept import Kept
from specdec_lib.measure.sweep.ratios import sampling_of
from specdec_lib.workload import DOMAINS, Ladder, Prompt, load_prompts, seeds

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
    chosen = ""
    for sampler, count in zip(SAMPLERS, plan.prompts, strict=True):
        folder = keep and keep / f"T{sampler.temperature:g}-k{sampler.top_k or 0}"
        part = _Part(ladders, sampler, plan, folder, say)
        whole = sampler.temperature == 0 or sampler.top_k is not None or not chosen
        needed = ("tree", chosen) if chosen in ON_TREES else (chosen,)
        lineup = part.tuned(OURS if whole else needed)
        timings, tuned = part.timings(lineup, count), best_drafts(part.ladder, sampler, lineup)
        limits = {"tokens": plan.tokens, "seed": plan.seed}
        few = _prompts("development", 1)
        yield timings, lineup, method_ledger(part.ladder, sampler, tuned, few, **limits)
        chosen = lineup.chosen or chosen


def method_ledger(
    ladder: Ladder,
    sampler: Sampler,
    drafts: Mapping[str, Draft],
    prompts: Sequence[Prompt],
    *,
    tokens: int,
    seed: int = 0,
) -> pd.DataFrame:
    """`shares` of a round of each method's draft on these prompts, with the sampler's columns."""
    texts = [ladder.encode(prompt) for prompt in prompts]
    chances = [Chance(own, sampler) for own in seeds(prompts, seed)]
    limits = {"max_new_tokens": tokens, "stop_tokens": ladder.stop_tokens}
    table = shares(round_parts(ladder.target, drafts, texts, chances, **limits))
    return table.rename(columns={"draft": "method"}).assign(top_k=sampler.top_k or 0)


@dataclass(frozen=True)
class _Part:
    """The benchmark under one sampler."""

    ladders: Mapping[str, Ladder]
    sampler: Sampler
    plan: BenchPlan
    folder: Path | None
    say: Say

    @property
    def ladder(self) -> Ladder:
        return list(self.ladders.values())[-1]

    def tuned(self, methods: Sequence[str]) -> Lineup:
        """The line-up, read where it was kept."""
        plan, sampling = self.plan, sampling_of(self.sampler.temperature, self.sampler.top_k)

        def tune() -> Lineup:
            self.say(f"{sampling}: tuning on {plan.development} prompts of each domain")
            texts = self._texts(_prompts("development", plan.development))
            options = {"stages": plan.stages, "most": plan.most, "seed": plan.seed, "say": self.say}
            hugging = plan.hugging and methods is OURS
            tuning = self.ladders, self.sampler, texts
            return tune_lineup(*tuning, methods=methods, hugging=hugging, **options)

        return kept_lineup(self.folder, tune)

    def timings(self, lineup: Lineup, count: int) -> list[Timing]:
        """Of every contender on the held-out prompts, those that were kept included."""
        main, others = contenders(self.ladders, self.sampler, lineup)
        slowest = max((one.ms_per_token for one in lineup.best.values()), default=0.0)
        runs = count * len(main) + min(count, self.plan.others) * len(others)
        seconds = slowest / 1000 * self.plan.tokens * len(DOMAINS) * runs
        self.say(f"held-out prompts: {seconds / 60:.0f} minutes at most, without what is kept")
        [warm_up] = self._texts(_prompts("development", 1)[:1])
        found, warm = [], set()
        for number, prompt in enumerate(tqdm(_prompts("held-out", count), desc="prompts")):
            racing = [*main, *others] if number < self.plan.others * len(DOMAINS) else main

            def run(prompt: Prompt = prompt, racing: Sequence[Contender] = racing) -> list[Timing]:
                names = {one.name for one in racing}
                options = {"seed": self.plan.seed, "warm_up": 0 if names <= warm else warm_up}
                warm.update(names)
                [raced] = race(racing, self._texts([prompt]), self.ladder.target, **options)
                return raced

            found += kept_timings(self.folder, prompt, len(racing), run)
        return found

    def _texts(self, prompts: Sequence[Prompt]) -> list[TargetText]:
        limits = {"tokens": self.plan.tokens, "seed": self.plan.seed}
        return list(target_texts(self.ladder, prompts, self.sampler, **limits))


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


def kept_timings(
    folder: Path | None, prompt: Prompt, count: int, run: Callable[[], list[Timing]]
) -> list[Timing]:
    """The `count` timings on a prompt, read where they were kept, else kept now."""
    kept = folder and Kept(folder)
    rows = kept.read(prompt) if kept else None
    if len(rows or ()) == count:
        return [Timing(**row) for row in rows]
    found = run()
    if kept:
        kept.write(prompt, [asdict(one) for one in found])
    return found


def _prompts(split: str, limit: int) -> list[Prompt]:
    """The first so many of every domain, the domains in turn."""
    by_domain = [load_prompts(domain, split, limit) for domain in DOMAINS]
    return [one for same in zip(*by_domain, strict=True) for one in same]
