"""A whole benchmark: per sampler the texts, the methods at their best settings, and the race on
held-out prompts.  What is finished is kept by prompt, so that a run goes on where it was.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from specdec_lib.core.chance import Sampler
from specdec_lib.core.files import write_whole
from specdec_lib.measure.latency.machine import machine_name
from specdec_lib.measure.race.contenders import Contender
from specdec_lib.measure.race.harness import TargetText, Timing, race, target_texts
from specdec_lib.measure.race.lineup import (
    OURS,
    Lineup,
    Say,
    TunedSetting,
    contenders,
    needed_for,
    tune_lineup,
)
from specdec_lib.measure.sweep.identity import code, fingerprint, short_digest
from specdec_lib.measure.sweep.kept import Kept
from specdec_lib.measure.sweep.ratios import sampling_of
from specdec_lib.workload import DOMAINS, Ladder, Prompt, load_prompts

SAMPLERS = (Sampler(0), Sampler(1.0, top_k=50), Sampler(1.0))  # the last for plain and best only


@dataclass(frozen=True)
class BenchPlan:
    """How much is measured.

    prompts        held-out prompts of each domain under each sampler, the first so many
    others         of these, how many the slower baselines run too
    development    prompts of each domain that settings are tuned on, the first so many
    tokens         new tokens per prompt, at most
    stages         prompts that each stage of the tuning adds
    most           settings per method that are tried, spread over its grid; None is all
    repeats        of every contender on each held-out prompt
    hugging        race Hugging Face's ways too: they run the exact edition only
    """

    prompts: tuple[int, ...] = (24, 24, 8)
    others: int = 8
    development: int = 5
    tokens: int = 128
    stages: tuple[int, ...] = (2, 4)
    most: int | None = None
    repeats: int = 1
    seed: int = 0
    hugging: bool = True


SMOKE = BenchPlan(prompts=(1, 1, 1), development=1, tokens=20, stages=(1, 1), most=4)


def benchmark(
    ladders: Mapping[str, Ladder], plan: BenchPlan, say: Say, keep: Path | None = None
) -> Iterator[tuple[list[Timing], Lineup]]:
    """Under one sampler after the other: the timings of every method, and what was tuned.

    ladders    by runtime, the reference first; methods are tuned on the last one
    say        called with a line when something is settled
    keep       a folder for what is finished: the same code, machine, models and plan, but for the
               numbers of held-out prompts, go on there
    """
    if keep is not None:
        keep = keep / _identity(ladders, plan)
        say(f"what is finished is kept in {keep}, and a run that was stopped goes on there")
    chosen = ""
    for sampler, count in zip(SAMPLERS, plan.prompts, strict=True):
        part = _Part(ladders, sampler, plan, keep and keep / _folder_name(sampler), say)
        whole = sampler.temperature == 0 or sampler.top_k is not None or not chosen
        lineup = part.tuned(OURS if whole else needed_for(chosen))
        yield part.timings(lineup, count), lineup
        chosen = lineup.chosen or chosen


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
        place = self.folder and self.folder / "lineup.json"
        if place and place.is_file():
            found = json.loads(place.read_text(encoding="utf-8"))
            best = {method: TunedSetting(**one) for method, one in found.pop("best").items()}
            return Lineup(**found, best=best)
        sampling = sampling_of(self.sampler.temperature, self.sampler.top_k)
        self.say(f"{sampling}: tuning on {self.plan.development} prompts of each domain")
        plan = self.plan
        lineup = tune_lineup(
            self.ladders,
            self.sampler,
            self._texts(_prompts("development", plan.development)),
            stages=plan.stages,
            most=plan.most,
            seed=plan.seed,
            methods=methods,
            hugging=plan.hugging and methods is OURS,
            say=self.say,
        )
        if place:
            place.parent.mkdir(parents=True, exist_ok=True)
            write_whole(place, json.dumps(asdict(lineup), indent=1).encode())
        return lineup

    def timings(self, lineup: Lineup, count: int) -> list[Timing]:
        """Of every contender on the held-out prompts, those that were kept included."""
        from tqdm.auto import tqdm

        main, others = contenders(self.ladders, self.sampler, lineup)
        slowest = max((one.ms_per_token for one in lineup.best.values()), default=0.0)
        runs = count * len(main) + min(count, self.plan.others) * len(others)
        seconds = slowest / 1000 * self.plan.tokens * len(DOMAINS) * runs * self.plan.repeats
        self.say(f"held-out prompts: {seconds / 60:.0f} minutes at most, without what is kept")
        [warm_up] = self._texts(_prompts("development", 1)[:1])
        found, warm = [], set()
        for number, prompt in enumerate(tqdm(_prompts("held-out", count), desc="prompts")):
            racing = [*main, *others] if number < self.plan.others * len(DOMAINS) else main
            kept = self.folder and Kept(self.folder, len(racing))
            rows = kept.read(prompt) if kept else None
            if rows is None:
                fresh = warm_up if warm < {one.name for one in racing} else 0
                warm |= {one.name for one in racing}
                rows = [asdict(one) for one in self._raced(racing, prompt, fresh)]
                if kept:
                    kept.write(prompt, rows)
            found += [Timing(**row) for row in rows]
        return found

    def _raced(
        self, racing: Sequence[Contender], prompt: Prompt, warm_up: TargetText | int
    ) -> list[Timing]:
        options = {"seed": self.plan.seed, "repeats": self.plan.repeats, "warm_up": warm_up}
        [timings] = race(racing, self._texts([prompt]), self.ladder.target, **options)
        return timings

    def _texts(self, prompts: Sequence[Prompt]) -> list[TargetText]:
        limits = {"tokens": self.plan.tokens, "seed": self.plan.seed}
        return list(target_texts(self.ladder, prompts, self.sampler, **limits))


def _prompts(split: str, limit: int) -> list[Prompt]:
    """The first so many of every domain, the domains in turn."""
    by_domain = [load_prompts(domain, split, limit) for domain in DOMAINS]
    return [one for same in zip(*by_domain, strict=True) for one in same]


def _identity(ladders: Mapping[str, Ladder], plan: BenchPlan) -> str:
    """A digest of all that timings of one prompt depend on."""
    device = str(next(iter(ladders.values())).target.model.device)
    same = asdict(replace(plan, prompts=(), others=0))
    parts = [code(benchmark), machine_name(device), same]
    for runtime, ladder in ladders.items():
        models = (ladder.target, ladder.middle, ladder.draft)
        parts.append([runtime, fingerprint(*(one for one in models if one is not None))])
    return short_digest(json.dumps(parts))


def _folder_name(sampler: Sampler) -> str:
    return f"T{sampler.temperature:g}-k{sampler.top_k or 0}"
