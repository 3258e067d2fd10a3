"""The race: contenders continue the same texts, each text in a random order, so that what slows the
machine for a while slows all of them.
"""

import math
import random
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import psutil

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.decode import decode
from specdec_lib.core.protocols import LanguageModel
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.measure.race.contenders import Contender, Continuation
from specdec_lib.measure.sweep.repetition import LOOPING, repetition
from specdec_lib.measure.ties import ROUNDING, TWO_PROGRAMS, NearTie, near_tie
from specdec_lib.workload import Ladder, Prompt, seeds

WARM_UP = 12  # untimed tokens of each contender: the first passes of a shape set things up


@dataclass(frozen=True)
class TargetText:
    """A prompt, and how the target itself continues it for a seed."""

    name: str
    prompt: tuple[int, ...]
    tokens: tuple[int, ...]
    seed: int

    @property
    def loops(self) -> bool:
        """Whether 0.3 or more of it repeats itself."""
        return repetition(self.tokens) >= LOOPING


@dataclass(frozen=True)
class Timing:
    """One contender on one text; its counts are those of the fastest repeat.

    seconds         the median of the repeats
    least_seconds   the fastest repeat
    repetition      of the tokens it wrote; NaN where it does not tell them
    loops           whether the target's own text repeats itself
    same            whether its text is the target's own in every repeat; None if it need not be
    margin          nats by which the target prefers its own token at the first other one, else NaN
    rounding        whether that is rounding; None where there is no other token
    load            processes that wanted to run, averaged over a minute by the system
    """

    method: str
    runtime: str
    setting: str
    temperature: float
    top_k: int
    prompt: str
    tokens: int
    timed_tokens: int
    seconds: float
    least_seconds: float
    rounds: int
    accepted: int = 0
    tried: int = 0
    repetition: float = 0.0
    loops: bool = False
    same: bool | None = None
    margin: float = math.nan
    rounding: bool | None = None
    load: float = math.nan
    passes: Mapping[str, int] = field(default_factory=dict)


def target_texts(
    ladder: Ladder, prompts: Sequence[Prompt], sampler: Sampler, *, tokens: int, seed: int
) -> Iterator[TargetText]:
    """Each prompt continued by plain decoding, up to a stop token or by so many tokens."""
    limits = {"max_new_tokens": tokens, "stop_tokens": ladder.stop_tokens}
    for prompt, own in zip(prompts, seeds(prompts, seed), strict=True):
        given = ladder.encode(prompt)
        made = decode(ladder.target, NoDraft(), given, Chance(own, sampler), **limits)
        yield TargetText(prompt.name, given, made.tokens, own)


def race(
    contenders: Sequence[Contender],
    texts: Iterable[TargetText],
    target: LanguageModel,
    *,
    seed: int = 0,
    repeats: int = 1,
    warm_up: TargetText | int = WARM_UP,
    strict: bool = True,
) -> Iterator[list[Timing]]:
    """Per text the timings of all contenders, in their order; a text is run when its timings are
    taken.

    repeats    of every contender on each text, in a new order each time
    warm_up    what each contender first writes, untimed and, where `strict`, checked: another text,
               or so many tokens of the first
    strict     refuse a text that is not the target's own by more than rounding, or by more than
               `TWO_PROGRAMS` nats

    Raises ValueError if there is no repeat, a contender writes another number of tokens, or, where
    `strict`, an exact one another text: it would be timed for other work.
    """
    if repeats < 1:
        raise ValueError(f"at least 1 repeat is needed, got {repeats}")
    places = range(len(contenders))
    for number, text in enumerate(texts):
        if number == 0:
            _warm(contenders, text, warm_up, target, strict)
        order = random.Random(f"{seed}/{text.name}")
        made: list[list[Continuation]] = [[] for _ in places]
        for _ in range(repeats):
            for place in order.sample(places, len(places)):
                run = contenders[place].run
                made[place].append(run(text.prompt, len(text.tokens), text.seed))
        yield [
            _timing(contender, text, found, _difference(contender, text, found, target, strict))
            for contender, found in zip(contenders, made, strict=True)
        ]


def _warm(
    contenders: Sequence[Contender],
    first: TargetText,
    warm_up: TargetText | int,
    target: LanguageModel,
    strict: bool,
) -> None:
    if isinstance(warm_up, int):
        warm_up = replace(first, tokens=first.tokens[:warm_up])
    for contender in contenders if warm_up.tokens else ():
        found = contender.run(warm_up.prompt, len(warm_up.tokens), warm_up.seed)
        if strict:
            _difference(contender, warm_up, [found], target, strict)


def _difference(
    contender: Contender,
    text: TargetText,
    found: Sequence[Continuation],
    target: LanguageModel,
    strict: bool,
) -> NearTie | None:
    """The worst difference from the target's text among the repeats: one that is no rounding before
    one that is, then the widest; None where there is none, or none is to be found.
    """
    for one in found:
        if contender.told and len(one.tokens) != len(text.tokens):
            raise ValueError(
                f"{contender.name} wrote {len(one.tokens)} tokens of {text.name},"
                f" {len(text.tokens)} were asked for"
            )
    chance, written = Chance(text.seed, contender.sampler), dict.fromkeys(o.tokens for o in found)
    ties = [
        near_tie(target, text.prompt, text.tokens, tokens, chance, floor=TWO_PROGRAMS)
        for tokens in (written if contender.exact else ())
    ]
    worst = max(
        filter(None, ties), key=lambda tie: (tie.verdict != ROUNDING, tie.margin), default=None
    )
    if strict and worst and (worst.verdict != ROUNDING or worst.margin > TWO_PROGRAMS):
        raise ValueError(
            f"{contender.name} does not write what the target does: token {worst.place} of"
            f" {text.name} lies {worst.margin:.3g} nats below the best"
        )
    return worst


def _timing(
    contender: Contender,
    text: TargetText,
    found: Sequence[Continuation],
    difference: NearTie | None,
) -> Timing:
    fastest = min(found, key=lambda one: one.seconds)
    return Timing(
        method=contender.method,
        runtime=contender.runtime,
        setting=contender.setting,
        temperature=contender.sampler.temperature,
        top_k=contender.sampler.top_k or 0,
        prompt=text.name,
        tokens=len(fastest.tokens) if contender.told else fastest.timed_tokens,
        timed_tokens=fastest.timed_tokens,
        seconds=statistics.median(one.seconds for one in found),
        least_seconds=fastest.seconds,
        rounds=fastest.rounds,
        accepted=fastest.accepted,
        tried=fastest.tried,
        repetition=repetition(fastest.tokens) if contender.told else math.nan,
        loops=text.loops,
        same=difference is None if contender.exact else None,
        margin=difference.margin if difference else math.nan,
        rounding=difference.verdict == ROUNDING if difference else None,
        load=psutil.getloadavg()[0],
        passes=fastest.passes,
    )
