"""Decoding methods to benchmark: each continues a prompt and returns its tokens and seconds.

Reading the prompt is left out of every time. Our own loop reads the prompt up to its last token
before the clock starts; a method that streams portions of tokens is timed from the end of its first
portion, and only the tokens after it count.
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

Clock = Callable[[], float]


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


Run = Callable[[tuple[int, ...], int, int], Continuation]
"""(prompt, number of new tokens, seed) to a continuation by exactly so many tokens: a stop token
among them ends nothing.
"""


@dataclass(frozen=True)
class Contender:
    """A decoding method to benchmark.

    method     its kind, such as "chain" or "hf_generate"
    setting    what was chosen within the method, in words
    exact      its tokens must be the target's own for the seed, but for rounding
    """

    method: str
    runtime: str
    setting: str
    sampler: Sampler
    run: Run
    exact: bool = True

    @property
    def name(self) -> str:
        """Method, runtime and setting: no two contenders of a race share it under one sampler."""
        return f"{self.method}, {self.runtime}: {self.setting}"


def ours(
    target: LanguageModel,
    draft: Draft,
    sampler: Sampler,
    *,
    method: str,
    setting: str,
    runtime: str = "",
    clock: Clock = time.perf_counter,
) -> Contender:
    """Our loop with this draft as a contender."""

    def run(prompt: tuple[int, ...], count: int, seed: int) -> Continuation:
        done, seconds = time_rounds(
            target, draft, prompt, Chance(seed, sampler), max_new_tokens=count, clock=clock
        )
        tokens = tuple(token for one in done for token in one.emitted)
        passes = {
            name: sum(one.usage[name].passes for one in done if name in one.usage)
            for name in done[0].usage
        }
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
    clock: Clock = time.perf_counter,
    on_start: Callable[[], object] = lambda: None,
) -> tuple[list[Round], float]:
    """The rounds of one generation, and the seconds from the start of the first to the end of the
    last, with what lies between them.

    on_start    called when the prompt has been read, just before the clock starts
    """
    context = prompt if isinstance(prompt, Context) else Context.of(prompt)
    read_prompt(target, draft, context)
    limits = {"max_new_tokens": max_new_tokens, "rule": rule, "stop_tokens": stop_tokens}
    played = rounds(target, draft, context, chance, **limits)
    on_start()
    started = clock()
    done = [one for one, _ in played]
    return done, clock() - started


class Portions:
    """A streamer for Hugging Face's `generate` that notes when each portion of tokens came.

    The first portion is the prompt, the second ends the reading of it.
    """

    def __init__(self, clock: Clock = time.perf_counter) -> None:
        self.clock = clock
        self.times: list[float] = []
        self.sizes: list[int] = []

    def put(self, tokens: object) -> None:
        """Note a portion; `generate` calls this."""
        self.times.append(self.clock())
        self.sizes.append(int(tokens.numel()))

    def end(self) -> None:
        """Note the end; `generate` calls this."""
        self.times.append(self.clock())

    def continuation(self, tokens: tuple[int, ...]) -> Continuation:
        """The generation, timed without its first portion of new tokens: the pass that made it also
        read the prompt.

        Raises ValueError unless the portions add up to the tokens and all but the first hold one or
        more.
        """
        new = self.sizes[1:]
        complete = len(self.times) == len(self.sizes) + 1 and sum(new) == len(tokens)
        if not complete or min(new, default=0) < 1:
            raise ValueError(
                f"{len(tokens)} tokens were to be timed portion by portion, got portions of {new}"
                f" at {len(self.times)} times"
            )
        seconds = self.times[-1] - self.times[1]
        return Continuation(tokens, len(tokens) - new[0], seconds, len(new))
