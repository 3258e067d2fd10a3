"""The best setting of each method, found on development prompts by halving: all settings on a few
prompts, the better ones on more.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from specdec_lib.core.protocols import LanguageModel
from specdec_lib.measure.race.contenders import Contender
from specdec_lib.measure.race.pairing import timed, warm
from specdec_lib.measure.race.texts import Text

STAGES = (2, 4, 8)  # prompts that are added
WARM_UP = 12  # untimed tokens of everybody
KEPT = 1 / 3  # of the settings, from stage to stage; two at the least


@dataclass(frozen=True)
class Ranked:
    """A contender that was left at the end, with its time per token on all development prompts;
    `tried` settings were there at first.
    """

    contender: Contender
    ms_per_token: float
    tried: int


def tuned(
    contenders: Sequence[Contender],
    texts: Sequence[Text],
    target: LanguageModel,
    *,
    stages: Sequence[int] = STAGES,
    seed: int = 0,
) -> list[Ranked]:
    """Those left after the last stage, the fastest first; everybody in a stage has seen the same
    texts, earlier stages' included.

    Texts that loop are passed over as long as there are others.  Raises ValueError if there is
    nobody, or there are fewer texts than stages.
    """
    if not contenders or len(texts) < len(stages):
        raise ValueError(
            f"tuning needs contenders and at least {len(stages)} texts, got {len(contenders)} and"
            f" {len(texts)}"
        )
    ordered = sorted(texts, key=lambda text: text.loops)
    left, seconds, tokens = (
        list(contenders),
        dict.fromkeys(range(len(contenders)), 0.0),
        dict.fromkeys(range(len(contenders)), 0),
    )
    places, used = list(range(len(contenders))), 0
    for number, added in enumerate(stages):
        share = ordered[used : used + added] or ordered[-1:]
        used += added
        if not number:
            warm(left, replace(share[0], tokens=share[0].tokens[:WARM_UP]), target)
        for text in share:
            for place, timing in zip(
                places,
                timed([left[place] for place in places], text, target, seed=seed),
                strict=True,
            ):
                seconds[place] += timing.seconds
                tokens[place] += timing.timed_tokens
        places.sort(key=lambda place: seconds[place] / max(1, tokens[place]))
        if number + 1 < len(stages):
            places = places[: max(2, math.ceil(KEPT * len(places)))]
    return [
        Ranked(left[place], 1000 * seconds[place] / max(1, tokens[place]), len(left))
        for place in places
    ]
