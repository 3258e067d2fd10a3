"""What races: a method that continues a prompt and returns its tokens and seconds.

Reading the prompt is left out of every time.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import Round, read_prompt, rounds
from specdec_lib.core.protocols import Draft, LanguageModel, Rule
from specdec_lib.core.verify import look_up

AUTOREGRESSIVE = "autoregressive"


@dataclass(frozen=True)
class Continuation:
    """What a contender made of one prompt.

    timed_tokens        of all tokens, those that were emitted within `seconds`
    rounds              passes of the target
    accepted, tried     as of rounds; 0 where they are not counted
    passes              forward passes by model; empty where they are not counted
    """

    tokens: tuple[int, ...]
    timed_tokens: int
    seconds: float
    rounds: int
    accepted: int = 0
    tried: int = 0
    passes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Contender:
    """A decoding method to benchmark.

    method     its kind, such as "chain" or "hf_generate"
    setting    what was chosen within the method, in words
    run        from a prompt, a number of new tokens and a seed to exactly so many tokens
    exact      its tokens must be the target's own for the seed, but for rounding
    told       it tells its tokens
    """

    method: str
    runtime: str
    setting: str
    sampler: Sampler
    run: Callable[[tuple[int, ...], int, int], Continuation]
    exact: bool = True
    told: bool = True

    @property
    def name(self) -> str:
        """Method, runtime and setting."""
        return f"{self.method}, {self.runtime}: {self.setting}"


def ours(
    target: LanguageModel,
    draft: Draft,
    sampler: Sampler,
    *,
    method: str,
    setting: str,
    runtime: str = "",
) -> Contender:
    """Our loop with this draft as a contender."""

    def run(prompt: tuple[int, ...], count: int, seed: int) -> Continuation:
        chance = Chance(seed, sampler)
        done, seconds = time_rounds(target, draft, prompt, chance, max_new_tokens=count)
        tokens = tuple(token for one in done for token in one.emitted)
        used = [one.usage for one in done]
        passes = {name: sum(one[name].passes for one in used if name in one) for name in used[0]}
        accepted, tried = sum(one.accepted for one in done), sum(one.tried for one in done)
        return Continuation(tokens, len(tokens), seconds, len(done), accepted, tried, passes)

    return Contender(method, runtime, setting, sampler, run)


def time_rounds(
    target: LanguageModel,
    draft: Draft,
    prompt: Context | Sequence[int],
    chance: Chance,
    *,
    max_new_tokens: int,
    rule: Rule = look_up,
    stop_tokens: Sequence[int] = (),
    on_start: Callable[[], object] = lambda: None,
) -> tuple[list[Round], float]:
    """The rounds of one generation, and the seconds from the start of the first to the end of the
    last; `on_start` is called when the prompt has been read, just before.
    """
    context = prompt if isinstance(prompt, Context) else Context.of(prompt)
    read_prompt(target, draft, context)
    limits = {"max_new_tokens": max_new_tokens, "rule": rule, "stop_tokens": stop_tokens}
    played = rounds(target, draft, context, chance, **limits)
    on_start()
    started = time.perf_counter()
    done = [one for one, _ in played]
    return done, time.perf_counter() - started
