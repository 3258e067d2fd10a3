"""The race: contenders continue the same texts, each text in a random order, so that what slows the
machine for a while slows all of them.
"""

import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path

import psutil

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.decode import decode
from specdec_lib.core.protocols import Draft, LanguageModel
from specdec_lib.drafts.combined import NoDraft
from specdec_lib.measure.race.contenders import Contender, Continuation, ours
from specdec_lib.measure.sweep.kept import Kept
from specdec_lib.measure.sweep.repetition import LOOPING, repetition
from specdec_lib.measure.ties import ROUNDING, TWO_PROGRAMS, NearTie, near_tie
from specdec_lib.workload import DOMAINS, Ladder, Prompt, load_prompts, seeds

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
    """One contender on one text.

    repetition      of the tokens it wrote; NaN where it does not tell them
    loops           whether the target's own text repeats itself
    same            whether its text is the target's own; None if it need not be
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


def warm_up_text(ladder: Ladder, sampler: Sampler, domain: str = DOMAINS[0]) -> TargetText:
    """The first tokens after a development prompt, for contenders to get warm on: a draft that
    learns from them knows nothing of what is timed.
    """
    before = load_prompts(domain, "development", 1)
    [text] = target_texts(ladder, before, sampler, tokens=WARM_UP, seed=0)
    return text


def race(
    contenders: Sequence[Contender],
    texts: Iterable[TargetText],
    target: LanguageModel,
    *,
    seed: int = 0,
    warm_up: TargetText | int = WARM_UP,
    strict: bool = True,
) -> Iterator[list[Timing]]:
    """Per text the timings of all contenders, in their order; a text is run when its timings are
    taken.

    warm_up    what each contender first writes, untimed and, where `strict`, checked: another text,
               or so many tokens of the first
    strict     refuse a text that is not the target's own by more than rounding, or by more than
               `TWO_PROGRAMS` nats

    Raises ValueError if a contender writes another number of tokens, or, where `strict`, an exact
    one another text: it would be timed for other work.
    """
    places = range(len(contenders))
    for number, text in enumerate(texts):
        if number == 0:
            own = isinstance(warm_up, TargetText)
            first = warm_up if own else replace(text, tokens=text.tokens[:warm_up])
            for contender in contenders if first.tokens else ():
                found = contender.run(first.prompt, len(first.tokens), first.seed)
                if strict:
                    _difference(contender, first, found, target, strict)
        made: dict[int, Continuation] = {}
        for place in random.Random(f"{seed}/{text.name}").sample(places, len(places)):
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
    warm_up: TargetText | int = WARM_UP,
    strict: bool = True,
) -> Iterator[list[Timing]]:
    """`race` on what the target writes after these prompts, up to so many tokens: per prompt the
    timings of all contenders, read where an earlier run kept them in `folder`, else kept there.

    Contenders get warm once, before the first prompt that is run.
    """
    warm = False

    def run(prompt: Prompt) -> list[Timing]:
        nonlocal warm
        texts = target_texts(ladder, [prompt], contenders[0].sampler, tokens=tokens, seed=seed)
        options = {"seed": seed, "warm_up": 0 if warm else warm_up, "strict": strict}
        [timings] = race(contenders, texts, ladder.target, **options)
        warm = True
        return timings

    for prompt in prompts:
        yield kept_timings(folder, prompt, len(contenders), partial(run, prompt))


def kept_timings(
    folder: Path | None, prompt: Prompt, count: int, run: Callable[[], list[Timing]]
) -> list[Timing]:
    """The `count` timings on a prompt, read where they were kept, else kept now."""
    rows = Kept(folder).rows(prompt, lambda: [asdict(one) for one in run()], count)
    return [Timing(**row) for row in rows]


def race_drafts(
    ladder: Ladder,
    drafts: Mapping[str, tuple[str, Draft]],
    sampler: Sampler,
    prompts: Iterable[Prompt],
    *,
    tokens: int,
    seed: int = 0,
    folder: Path | None = None,
    warm_up: TargetText | int = WARM_UP,
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
    if contender.told and len(found.tokens) != len(text.tokens):
        wrote = f"{contender.name} wrote {len(found.tokens)} tokens of {text.name}"
        raise ValueError(f"{wrote}, {len(text.tokens)} were asked for")
    if not contender.exact:
        return None
    both, chance = (text.tokens, found.tokens), Chance(text.seed, contender.sampler)
    tie = near_tie(target, text.prompt, *both, chance, floor=TWO_PROGRAMS)
    if strict and tie and (tie.verdict != ROUNDING or tie.margin > TWO_PROGRAMS):
        far = f"token {tie.place} of {text.name} lies {tie.margin:.3g} nats below the best"
        raise ValueError(f"{contender.name} does not write what the target does: {far}")
    return tie


def _timing(
    contender: Contender, text: TargetText, found: Continuation, difference: NearTie | None
) -> Timing:
    counted = ("timed_tokens", "seconds", "rounds", "accepted", "tried", "passes")
    return Timing(
        **{name: vars(contender)[name] for name in ("method", "runtime", "setting")},
        **{name: vars(found)[name] for name in counted},
        temperature=contender.sampler.temperature,
        top_k=contender.sampler.top_k or 0,
        prompt=text.name,
        tokens=len(found.tokens) if contender.told else found.timed_tokens,
        repetition=repetition(found.tokens) if contender.told else math.nan,
        loops=text.loops,
        same=difference is None if contender.exact else None,
        margin=difference.margin if difference else math.nan,
        rounding=difference.verdict == ROUNDING if difference else None,
        load=psutil.getloadavg()[0],
    )
