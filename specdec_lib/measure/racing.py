"""The race: contenders continue the same texts, each text in a random order, so that what slows the
machine for a while slows all of them.
"""

import random
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import psutil

from specdec_lib.core.protocols import LanguageModel
from specdec_lib.measure.contenders import Contender, Continuation
from specdec_lib.measure.near_ties import ROUNDING, TWO_PROGRAMS, near_tie
from specdec_lib.measure.quiet import Quiet, Watched, watch
from specdec_lib.measure.row_cache import Row, RowCache, key_of
from specdec_lib.measure.target_text import TargetText, repetition, write_text
from specdec_lib.measure.trial import Trial
from specdec_lib.workload import DOMAINS, Ladder, Prompt, load_prompts
from specdec_lib.workload.encoding import encode_prompt

WARM_UP = 12  # untimed tokens of each contender: the first passes of a shape set things up


def race(
    contenders: Sequence[Contender],
    text: TargetText,
    target: LanguageModel,
    *,
    seed: int = 0,
    strict: bool = True,
    quiet: Quiet | None = None,
) -> list[Trial]:
    """The trials of all contenders on a text, in their order.

    quiet     time again what other programs disturbed
    strict    refuse a text that is not the target's own by more than rounding, or by more than
              `TWO_PROGRAMS` nats

    Raises ValueError if a contender writes another number of tokens, or, where `strict`, an exact
    one another text: it would be timed for other work.
    """
    places = range(len(contenders))
    made: dict[int, Watched[Continuation]] = {}
    asked = (text.prompt_tokens, len(text.tokens), text.chance.seed)
    for place in random.Random(f"{seed}/{text.prompt}").sample(places, len(places)):
        run = partial(contenders[place].run, *asked)
        made[place] = quiet.timed(run) if quiet else watch(run)
    trials = [
        _trial(one, text, made[place].found, target, strict) for place, one in enumerate(contenders)
    ]
    day = time.strftime("%Y-%m-%d")
    return [replace(one, cores=made[place].cores, date=day) for place, one in enumerate(trials)]


def race_prompts(
    contenders: Sequence[Contender],
    ladder: Ladder,
    prompts: Iterable[Prompt],
    *,
    tokens: int,
    seed: int = 0,
    folder: Path | None = None,
    warm_up: int = WARM_UP,
    strict: bool = True,
    quiet: Quiet | None = None,
) -> Iterator[list[Trial]]:
    """`race` on what the target writes after these prompts: per prompt the trials of all
    contenders, read where an earlier run kept them in `folder`, else kept there.

    tokens     that the target writes after a prompt, at most
    warm_up    tokens that each contender first writes after a development prompt, untimed: a draft
               that learns from them knows nothing of what is timed
    """
    warm = False

    def run(prompt: Prompt) -> list[Row]:
        nonlocal warm
        if not warm:
            domain = prompt.domain if prompt.domain in DOMAINS else DOMAINS[0]
            [first] = load_prompts(domain, "development", 1)
            most = max(1, ladder.max_positions - warm_up)  # of a model that reads little
            other = encode_prompt(ladder.tokenizer, first)[:most]
            for contender in contenders:
                contender.run(other, warm_up, seed)
            warm = True
        sampler = contenders[0].sampler
        text = write_text(ladder, prompt, sampler, seed=seed, max_new_tokens=tokens)
        made = race(contenders, text, ladder.target, seed=seed, strict=strict, quiet=quiet)
        return [one.row() for one in made]

    for prompt in prompts:
        rows = RowCache(folder).rows(key_of(prompt), partial(run, prompt), len(contenders))
        yield [Trial.from_row(row) for row in rows]


def _trial(
    contender: Contender, text: TargetText, found: Continuation, target: LanguageModel, strict: bool
) -> Trial:
    called = f"{contender.method}, {contender.runtime}, {contender.setting}"
    tie = None
    if found.tokens and len(found.tokens) != len(text.tokens):
        raise ValueError(
            f"{called} wrote {len(found.tokens)} tokens of {text.prompt},"
            f" {len(text.tokens)} were asked for"
        )
    if contender.exact:
        both = (text.tokens, found.tokens)
        tie = near_tie(target, text.prompt_tokens, *both, text.chance, floor=TWO_PROGRAMS)
    if strict and tie and (tie.verdict != ROUNDING or tie.margin > TWO_PROGRAMS):
        raise ValueError(
            f"{called} does not write what the target does: token {tie.place} of {text.prompt}"
            f" lies {tie.margin:.3g} nats below the best"
        )
    return Trial(
        method=contender.method,
        runtime=contender.runtime,
        setting=contender.setting,
        sampler=contender.sampler,
        prompt=text.prompt,
        tokens=len(found.tokens) or found.timed_tokens,
        timed_tokens=found.timed_tokens,
        seconds=found.seconds,
        rounds=found.rounds,
        accepted=found.accepted,
        tried=found.tried,
        passes=found.passes,
        repetition=repetition(found.tokens) if found.tokens else None,
        loops=text.loops,
        same=tie is None if contender.exact else None,
        margin=tie.margin if tie else None,
        rounding=tie.verdict == ROUNDING if tie else None,
        load=psutil.getloadavg()[0],
        works={} if found.work is None else {0: found.work},
        outside_seconds={} if found.work is None else {0: found.outside},
    )
