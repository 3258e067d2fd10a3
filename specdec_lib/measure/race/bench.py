"""A whole benchmark: the texts, then tuning, then timing, one sampler after the other.

It is short enough to be begun anew if it is interrupted.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from specdec_lib.core.chance import Sampler
from specdec_lib.measure.race.harness import TargetText, Timing, race, target_texts
from specdec_lib.measure.race.lineup import STAGES, Lineup, Ranked, lineup
from specdec_lib.measure.sweep.ratios import sampling_of
from specdec_lib.workload import Ladder, load_prompts

SAMPLERS = (Sampler(0), Sampler(1.0, top_k=50))
Say = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """How much is measured.

    prompts        held-out code prompts under each sampler, the first so many: greedy, T = 1
    development    code prompts that settings are tuned on, the first so many
    tokens         new tokens per prompt, at most: greedy text of our small target loops, and the
                   longer, the fewer texts stay below 0.3
    stages, most   of the tuning, see `tune` and `lineup`
    repeats        of every contender on each prompt
    """

    prompts: tuple[int, ...] = (108, 60)
    development: int = 28
    tokens: int = 40
    stages: tuple[int, ...] = STAGES
    most: int | None = None
    repeats: int = 1
    seed: int = 0


SMOKE = Plan(prompts=(4, 4), development=4, tokens=20, stages=(1, 1), most=4)


def benchmark(
    ladders: Mapping[str, Ladder],
    plan: Plan,
    *,
    say: Say = lambda line: None,
    progress: bool = True,
) -> Iterator[tuple[Lineup, list[Timing]]]:
    """Under one sampler after the other: every method tuned on development prompts, then timed on
    held-out ones.

    ladders    by runtime, the reference first; methods are tuned on the last one
    say        called with a line when something is settled
    """
    from tqdm.auto import tqdm

    ladder = list(ladders.values())[-1]

    def report(best: Ranked) -> None:
        setting = f"{best.contender.method}: {best.contender.setting}"
        say(f"  {setting}: {best.ms_per_token:.2f} ms per token, the best of {best.tried}")

    for sampler, count in zip(SAMPLERS, plan.prompts, strict=True):
        development = _texts(ladder, "development", plan.development, sampler, plan, say)
        held_out = _texts(ladder, "held-out", count, sampler, plan, say)
        tuning = {"stages": plan.stages, "most": plan.most, "seed": plan.seed}
        found = lineup(ladders, sampler, development, on_method=report, **tuning)
        name = sampling_of(sampler.temperature, sampler.top_k)
        texts = tqdm(held_out, desc=f"{name}, prompts", disable=not progress, mininterval=1)
        limits = {"seed": plan.seed, "repeats": plan.repeats, "warm_up": development[0]}
        timings = race(found.contenders, texts, ladder.target, **limits)
        yield found, [timing for group in timings for timing in group]


def _texts(
    ladder: Ladder, split: str, limit: int, sampler: Sampler, plan: Plan, say: Say
) -> list[TargetText]:
    prompts = load_prompts("code", split, limit)
    found = list(target_texts(ladder, prompts, sampler, tokens=plan.tokens, seed=plan.seed))
    calm = sum(not text.loops for text in found)
    name = sampling_of(sampler.temperature, sampler.top_k)
    say(
        f"{name}: {calm} of {len(found)} {split} texts of at most {plan.tokens} tokens have a"
        " repetition below 0.3"
    )
    return found
