"""The race: contenders continue the same texts, each text in a random order, so that what slows the
machine for a while slows all of them.
"""

import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

import psutil

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.decode import decode
from specdec_lib.core.protocols import Draft, LanguageModel
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.measure.race.contenders import Contender, Continuation, ours
from specdec_lib.measure.sweep.kept import Kept, Row
from specdec_lib.measure.sweep.repetition import repetition
from specdec_lib.measure.ties import ROUNDING, TWO_PROGRAMS, NearTie, near_tie
from specdec_lib.workload import DOMAINS, Ladder, Prompt, load_prompts, seeds

WARM_UP = 12  # untimed tokens of each contender: the first passes of a shape set things up


@dataclass(frozen=True)
class TargetText:
    """The tokens of what was asked, and how the target itself continues them for a seed."""

    asked: Prompt
    prompt: tuple[int, ...]
    tokens: tuple[int, ...]
    seed: int


@dataclass(frozen=True)
class Timing:
    """One contender on one text.

    repetition    of the tokens it wrote; NaN where it does not tell them
    margin        nats by which the target prefers its own token at the first other one, else NaN
    wrong         whether that is more than rounding
    load          processes that wanted to run, averaged over a minute by the system
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
    rounds: int
    repetition: float = 0.0
    margin: float = math.nan
    wrong: bool = False
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
        yield TargetText(prompt, given, made.tokens, own)


def warm_up_text(ladder: Ladder, sampler: Sampler, domain: str = DOMAINS[0]) -> TargetText:
    """The first tokens after a development prompt, of which nothing is timed."""
    before = load_prompts(domain, "development", 1)
    return next(target_texts(ladder, before, sampler, tokens=WARM_UP, seed=0))


def race(
    contenders: Sequence[Contender],
    texts: Iterable[TargetText],
    target: LanguageModel,
    *,
    warm_up: TargetText | None = None,
    strict: bool = True,
) -> Iterator[list[Timing]]:
    """Per text the timings of all contenders, in their order; each first writes `warm_up`, untimed.

    Raises ValueError if a contender writes another number of tokens, or, where `strict`, an exact
    one other tokens by more than rounding, or by more than `TWO_PROGRAMS` nats.
    """
    for contender in contenders if warm_up else ():
        contender.run(warm_up.prompt, len(warm_up.tokens), warm_up.seed)
    for text in texts:
        places, made = range(len(contenders)), {}
        for place in random.Random(text.asked.name).sample(places, len(places)):
            made[place] = contenders[place].run(text.prompt, len(text.tokens), text.seed)
        yield [
            _timing(one, text, made[place], _difference(one, text, made[place], target, strict))
            for place, one in enumerate(contenders)
        ]


def race_prompts(
    contenders: Sequence[Contender],
    ladder: Ladder,
    prompts: Iterable[Prompt],
    *,
    tokens: int,
    seed: int = 0,
    folder: Path | None = None,
    warm_up: TargetText | None = None,
    strict: bool = True,
) -> Iterator[list[Timing]]:
    """`race` on what the target writes after these prompts, up to so many tokens: per prompt the
    timings of all contenders, read where an earlier run kept them in `folder`, else kept there.
    Contenders get warm once, by default on `warm_up_text`.
    """
    sampler, cold = contenders[0].sampler, True

    def run(prompt: Prompt) -> list[Row]:
        nonlocal cold
        texts = target_texts(ladder, [prompt], sampler, tokens=tokens, seed=seed)
        first = (warm_up or warm_up_text(ladder, sampler)) if cold else None
        [timings] = race(contenders, texts, ladder.target, warm_up=first, strict=strict)
        cold = False
        return [asdict(one) for one in timings]

    for prompt in prompts:
        rows = Kept(folder).rows(prompt, partial(run, prompt), len(contenders))
        yield [Timing(**row) for row in rows]


def race_drafts(
    ladder: Ladder,
    drafts: Mapping[str, tuple[str, Draft]],
    sampler: Sampler,
    prompts: Iterable[Prompt],
    *,
    tokens: int,
    seed: int = 0,
    folder: Path | None = None,
    warm_up: TargetText | None = None,
) -> Iterator[list[Timing]]:
    """`race_prompts` of our loop with each draft: by setting, its method and itself."""
    contenders = [
        ours(ladder.target, draft, sampler, method=method, setting=name)
        for name, (method, draft) in drafts.items()
    ]
    options = {"tokens": tokens, "seed": seed, "folder": folder, "warm_up": warm_up}
    return race_prompts(contenders, ladder, prompts, **options)


def _difference(
    contender: Contender, text: TargetText, found: Continuation, target: LanguageModel, strict: bool
) -> NearTie | None:
    """The difference from the target's text; None where there is none, or none is to be found."""
    if found.tokens and len(found.tokens) != len(text.tokens):
        wrote = f"{contender.name} wrote {len(found.tokens)} tokens of {text.asked.name}"
        raise ValueError(f"{wrote}, {len(text.tokens)} were asked for")
    if not contender.exact:
        return None
    both, chance = (text.tokens, found.tokens), Chance(text.seed, contender.sampler)
    tie = near_tie(target, text.prompt, *both, chance, floor=TWO_PROGRAMS)
    if strict and tie and (tie.verdict != ROUNDING or tie.margin > TWO_PROGRAMS):
        far = f"token {tie.place} of {text.asked.name} lies {tie.margin:.3g} nats below the best"
        raise ValueError(f"{contender.name} does not write what the target does: {far}")
    return tie


def _timing(
    contender: Contender, text: TargetText, found: Continuation, difference: NearTie | None
) -> Timing:
    return Timing(
        method=contender.method,
        runtime=contender.runtime,
        setting=contender.setting,
        temperature=contender.sampler.temperature,
        top_k=contender.sampler.top_k or 0,
        prompt=text.asked.name,
        tokens=len(found.tokens) or found.timed_tokens,
        repetition=repetition(found.tokens) if found.tokens else math.nan,
        margin=difference.margin if difference else math.nan,
        wrong=difference is not None and difference.verdict != ROUNDING,
        load=psutil.getloadavg()[0],
        **{name: one for name, one in vars(found).items() if name != "tokens"},
    )
