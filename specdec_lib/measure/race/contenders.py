"""Who takes part: a name, a method, a runtime, and a function that continues a prompt and says how
long that took.

Reading the prompt is left out of every time. Our own loop reads the prompt up to its last token
before the clock starts; whatever hands out tokens one by one or in portions is timed from its first
portion on, and only the tokens after it count.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.decode import decode
from specdec_lib.core.protocols import Draft, LanguageModel

AUTOREGRESSIVE = "autoregressive"
OURS = ("n-gram", "chain", "tree", "staged", "cascade")
HF = ("hf_generate", "hf_assisted", "hf_prompt_lookup")
NOTE = " ["  # what follows it in a setting is a remark
BASELINES = (AUTOREGRESSIVE, *HF)

Clock = Callable[[], float]


@dataclass(frozen=True)
class Played:
    """One generation.

    timed_tokens        of all tokens, those that were emitted within `seconds`
    rounds              passes of the target
    accepted, tried     as of rounds; 0 where nobody counts them
    """

    tokens: tuple[int, ...]
    timed_tokens: int
    seconds: float
    rounds: int
    accepted: int = 0
    tried: int = 0


Play = Callable[[tuple[int, ...], int, int], Played]
"""(prompt, number of new tokens, seed) -> what was played: exactly so many tokens, a stop token
among them ends nothing.
"""


@dataclass(frozen=True)
class Contender:
    """Somebody to be timed.

    method     "autoregressive", "n-gram", "chain", "tree", "staged", "cascade", "hf_generate",
               "hf_assisted" or "hf_prompt_lookup"
    setting    what was chosen within the method, in words
    exact      its tokens must be the target's own for the seed
    """

    method: str
    runtime: str
    setting: str
    sampler: Sampler
    play: Play
    exact: bool = True

    @property
    def name(self) -> str:
        """Method, runtime and setting: no two contenders of a run share it under one sampler."""
        return f"{self.method}, {self.runtime}: {self.setting}"


def ours(
    target: LanguageModel,
    draft: Draft,
    sampler: Sampler,
    *,
    method: str,
    runtime: str,
    setting: str,
    clock: Clock = time.perf_counter,
) -> Contender:
    """Our loop with this draft.

    The time runs from the start of the first round to the end of the last one, with what lies
    between rounds: no less than the sum of their own seconds.
    """

    def play(prompt: tuple[int, ...], count: int, seed: int) -> Played:
        ends, first = [], []

        def mark(played: object) -> None:
            ends.append(clock())
            if not first:
                first.append(played.seconds)

        made = decode(
            target, draft, prompt, Chance(seed, sampler), max_new_tokens=count, on_round=mark
        )
        counted = sum(one.accepted for one in made.rounds), sum(one.tried for one in made.rounds)
        return Played(
            made.tokens, len(made.tokens), ends[-1] - ends[0] + first[0], len(ends), *counted
        )

    return Contender(method, runtime, setting, sampler, play)


class Portions:
    """A streamer as Hugging Face calls it: when each portion of tokens came.

    The first one is the prompt, the second ends the reading of it.
    """

    def __init__(self, clock: Clock = time.perf_counter) -> None:
        self.clock = clock
        self.times: list[float] = []
        self.sizes: list[int] = []

    def put(self, tokens: object) -> None:
        self.times.append(self.clock())
        self.sizes.append(int(tokens.numel()))

    def end(self) -> None:
        self.times.append(self.clock())

    def played(self, tokens: tuple[int, ...]) -> Played:
        """The generation without its first portion of new tokens: the pass that made it also read
        the prompt.

        Raises ValueError unless the portions add up to the tokens and all but the first hold one or
        more.
        """
        new = self.sizes[1:]
        if (
            len(self.times) != len(self.sizes) + 1
            or sum(new) != len(tokens)
            or min(new, default=0) < 1
        ):
            raise ValueError(
                f"{len(tokens)} tokens were to be timed portion by portion, got portions of {new}"
                f" at {len(self.times)} times"
            )
        return Played(tokens, len(tokens) - new[0], self.times[-1] - self.times[1], len(new))
