"""A whole bench: the texts, then tuning, then timing, one sampler after the other; short enough to
be begun anew if it is interrupted.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from specdec_lib.core.chance import Sampler
from specdec_lib.measure.race.lineup import Lineup, lineup
from specdec_lib.measure.race.pairing import Timing, timed, warm
from specdec_lib.measure.race.texts import Text, texts
from specdec_lib.measure.race.tuning import STAGES, Ranked
from specdec_lib.measure.sweep.ratios import sampling_of
from specdec_lib.workload import Ladder, Prompt, load_prompts

SAMPLERS = (Sampler(0), Sampler(1.0, top_k=50))
Tell = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """How much is measured.

    prompts        held-out code prompts under each sampler, the first so many: greedy, T = 1
    development    code prompts that settings are tuned on, the first so many
    tokens         new tokens per prompt, at most: greedy text of our small target loops, and the
                   longer, the fewer texts stay below 0.3
    stages, most   of the tuning, see `tuned` and `lineup`
    repeats        of everybody on each prompt
    """

    prompts: tuple[int, ...] = (108, 60)
    development: int = 28
    tokens: int = 40
    stages: tuple[int, ...] = STAGES
    most: int | None = None
    repeats: int = 1
    seed: int = 0


SMOKE = Plan(prompts=(4, 4), development=4, tokens=20, stages=(1, 1), most=4)


@dataclass(frozen=True)
class Measured:
    """What came out under one sampler; `looping` are the prompts whose text repeats itself."""

    sampler: Sampler
    lineup: Lineup
    timings: tuple[Timing, ...]
    looping: frozenset[str]


def measured(
    ladders: Mapping[str, Ladder],
    plan: Plan,
    *,
    tell: Tell = lambda line: None,
    progress: bool = True,
) -> Iterator[Measured]:
    """The samplers one after the other: everybody tuned on development prompts, then timed on
    held-out ones.

    ladders    by runtime, the reference first; methods are tuned on the last one
    tell       called with a line when something is settled
    """
    from tqdm.auto import tqdm

    *_, ladder = ladders.values()

    def told(best: Ranked) -> None:
        one = best.contender
        tell(
            f"  {one.method}: {one.setting}: {best.ms_per_token:.2f} ms per token, the best of"
            f" {best.tried}"
        )

    for sampler, count in zip(SAMPLERS, plan.prompts, strict=True):
        name = sampling_of(sampler.temperature, sampler.top_k)
        development, held_out = (
            _texts(ladder, load_prompts("code", split, limit), sampler, plan, tell)
            for split, limit in (("development", plan.development), ("held-out", count))
        )
        found = lineup(
            ladders,
            sampler,
            development,
            stages=plan.stages,
            most=plan.most,
            seed=plan.seed,
            on_method=told,
        )
        warm(found.contenders, development[0], ladder.target)
        timings: list[Timing] = []
        for text in tqdm(held_out, desc=f"{name}, prompts", disable=not progress, mininterval=1):
            timings += timed(
                found.contenders, text, ladder.target, seed=plan.seed, repeats=plan.repeats
            )
        yield Measured(
            sampler, found, tuple(timings), frozenset(text.name for text in held_out if text.loops)
        )


def _texts(
    ladder: Ladder, prompts: list[Prompt], sampler: Sampler, plan: Plan, tell: Tell
) -> list[Text]:
    found = list(texts(ladder.target, ladder, prompts, sampler, tokens=plan.tokens, seed=plan.seed))
    calm = sum(not text.loops for text in found)
    name, split = sampling_of(sampler.temperature, sampler.top_k), prompts[0].split
    tell(
        f"{name}: {calm} of {len(found)} {split} texts of at most {plan.tokens} tokens have a"
        " repetition below 0.3"
    )
    return found
