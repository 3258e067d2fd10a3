"""Everybody continues every prompt, in a random order per prompt: what slows the machine for a
while slows all.
"""

import math
import os
import random
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from specdec_lib.core.protocols import LanguageModel
from specdec_lib.measure.race.contenders import Contender, Played
from specdec_lib.measure.race.texts import Text, divergence
from specdec_lib.measure.sweep.repetition import repetition


@dataclass(frozen=True)
class Timing:
    """One contender on one prompt.

    seconds         the median of the repeats
    least_seconds   the fastest repeat
    repetition      of the tokens it wrote
    margin          of the first token that is not the target's own, NaN where there is none or
                    nobody expects the target's own
    load            how many processes wanted to run, averaged over a minute by the system
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
    repetition: float
    margin: float
    load: float


def warm(contenders: Sequence[Contender], text: Text, target: LanguageModel) -> None:
    """Let everybody write a text, untimed and checked: the first passes of a shape set things up."""
    for contender in contenders:
        _played(contender, text, target)


def timed(
    contenders: Sequence[Contender],
    text: Text,
    target: LanguageModel,
    *,
    seed: int,
    repeats: int = 1,
) -> Iterator[Timing]:
    """Everybody on one text, the order new in each repeat and the same for a seed.

    Raises ValueError if there is no repeat, an exact contender writes another text, or anybody
    another number of tokens.
    """
    if repeats < 1:
        raise ValueError(f"at least 1 repeat is needed, got {repeats}")
    order = random.Random(f"{seed}/{text.name}")
    made: dict[int, list[tuple[Played, float]]] = {place: [] for place in range(len(contenders))}
    for _ in range(repeats):
        for place in order.sample(range(len(contenders)), len(contenders)):
            made[place].append(_played(contenders[place], text, target))
    for contender, found in zip(contenders, made.values(), strict=True):
        yield _timing(contender, text, found)


def _timing(contender: Contender, text: Text, found: Sequence[tuple[Played, float]]) -> Timing:
    played = [one for one, _ in found]
    seconds = [one.seconds for one in played]
    margins = [margin for _, margin in found if not math.isnan(margin)]
    return Timing(
        method=contender.method,
        runtime=contender.runtime,
        setting=contender.setting,
        temperature=contender.sampler.temperature,
        top_k=contender.sampler.top_k or 0,
        prompt=text.name,
        tokens=len(played[0].tokens),
        timed_tokens=played[0].timed_tokens,
        seconds=statistics.median(seconds),
        least_seconds=min(seconds),
        rounds=played[0].rounds,
        repetition=repetition(played[0].tokens),
        margin=max(margins, default=math.nan),
        load=os.getloadavg()[0] if hasattr(os, "getloadavg") else math.nan,
    )


def _played(contender: Contender, text: Text, target: LanguageModel) -> tuple[Played, float]:
    played = contender.play(text.prompt, len(text.tokens), text.seed)
    if contender.exact:
        return played, divergence(target, contender, text, played.tokens)
    if len(played.tokens) != len(text.tokens):
        raise ValueError(
            f"{contender.name} wrote {len(played.tokens)} tokens of {text.name}, {len(text.tokens)}"
            " were asked for"
        )
    return played, math.nan
