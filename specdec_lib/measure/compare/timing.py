"""Everybody on every prompt, in a random order per prompt; a prompt's rows may be kept, so that an
interrupted comparison goes on.
"""

import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.protocols import Draft, LanguageModel
from specdec_lib.measure.compare.methods import FOREIGN, PLAIN, contenders, drafts
from specdec_lib.measure.race import Contender, Text, first_difference, texts
from specdec_lib.measure.race.texts import NEAR_TIE
from specdec_lib.measure.sweep.identity import code, fingerprint
from specdec_lib.measure.sweep.kept import Kept, Row
from specdec_lib.measure.ties import ROUNDING, near_tie
from specdec_lib.workload import Ladder, Prompt, neutral

if TYPE_CHECKING:
    from pandas import DataFrame

WARM_UP = 8  # untimed tokens of everybody


def timed(
    ladder: Ladder,
    prompts: Sequence[Prompt],
    sampler: Sampler = Sampler(0),
    *,
    own: Mapping[str, Draft] | None = None,
    max_new_tokens: int = 40,
    seed: int = 0,
    repeats: int = 1,
    keep: str | Path | None = None,
    progress: bool = True,
) -> "DataFrame":
    """A row per method and prompt: tokens, those that were timed, seconds, rounds, accepted, tried,
    whether the text is the target's own.

    own        drafts of your own, by name, that are tried beside the usual ones
    repeats    of everybody on each prompt; the fastest counts
    keep       a folder where the rows of finished prompts are kept, and taken from when the same
               comparison is asked for again

    Everybody continues a prompt by as many tokens as the target itself does, up to a stop token or
    `max_new_tokens`; reading the prompt is left out of every time, and everybody is warm. `margin`
    is, where a text is not the target's own, by how many nats the target preferred its own token
    where they part, and `rounding` whether that is rounding, which is coarse in low precision. They
    are NaN and None where there is nothing to compare: Hugging Face draws its own noise.
    Raises ValueError if there is no prompt, one with its continuation does not fit into every
    model, or a draft has a name that is taken.
    """
    import pandas as pd
    from tqdm.auto import tqdm

    _check(ladder, prompts, max_new_tokens, repeats)
    usual = drafts(ladder, sampler)
    if taken := set(own or {}) & {*usual, *FOREIGN}:
        raise ValueError(
            f"a draft of your own needs a name of its own, got {', '.join(sorted(taken))}"
        )
    tried = usual | dict(own or {})
    made_of = (
        (ladder.target, tried, sampler, seed, max_new_tokens, repeats, code(_rows))
        if keep
        else None
    )
    with neutral(ladder):
        everybody = contenders(
            ladder, tried, sampler
        )  # here: assisted generation copies the draft's configuration as it finds it
        kept = (
            Kept(Path(keep) / f"compared-{fingerprint(*made_of)}", len(everybody)) if keep else None
        )
        asked = tqdm(prompts, desc="compare", disable=not progress)
        rows = list(_rows(asked, kept, _Race(ladder, everybody, max_new_tokens, seed, repeats)))
    return pd.DataFrame(rows).astype({"margin": float, "rounding": object, "same": object})


def _check(ladder: Ladder, prompts: Sequence[Prompt], max_new_tokens: int, repeats: int) -> None:
    if not prompts or max_new_tokens < 1 or repeats < 1:
        raise ValueError(
            f"a comparison needs prompts, and at least 1 new token and 1 repeat; got {len(prompts)}"
            f" prompts, max_new_tokens={max_new_tokens},"
            f" repeats={repeats}"
        )
    for prompt in prompts:
        length = len(ladder.encode(prompt))
        if length + max_new_tokens > ladder.max_positions:
            raise ValueError(
                f"the prompt {prompt.name} has {length} tokens, and {max_new_tokens} more do not"
                " fit: the smallest model reads at most"
                f" {ladder.max_positions}"
            )


@dataclass
class _Race:
    """Who runs, and how far; whether everybody is warm by now."""

    ladder: Ladder
    everybody: Mapping[str, Contender]
    max_new_tokens: int
    seed: int
    repeats: int
    warm: bool = False


def _rows(prompts: Iterable[Prompt], kept: Kept | None, race: _Race) -> Iterator[Row]:
    """Everybody's rows, prompt by prompt: kept ones, or new ones, which are kept."""
    ladder = race.ladder
    for prompt in prompts:
        found = kept.read(prompt) if kept else None
        if found is None:
            [text] = texts(
                ladder.target,
                ladder,
                [prompt],
                race.everybody[PLAIN].sampler,
                tokens=race.max_new_tokens,
                seed=race.seed,
            )
            found = list(_played(race, text))
            if kept:
                kept.write(prompt, found)
        yield from found


def _played(race: _Race, text: Text) -> Iterator[Row]:
    made: dict[str, list] = {name: [] for name in race.everybody}
    order = random.Random(f"{race.seed}/{text.name}")
    for contender in (
        () if race.warm else race.everybody.values()
    ):  # the first passes of a shape set things up
        contender.play(text.prompt, min(WARM_UP, len(text.tokens)), text.seed)
    race.warm = True
    for _ in range(race.repeats):
        for name in order.sample(list(made), len(made)):
            made[name].append(race.everybody[name].play(text.prompt, len(text.tokens), text.seed))
    for name, found in made.items():
        fastest, contender = min(found, key=lambda played: played.seconds), race.everybody[name]
        comparable = contender.exact or contender.sampler.temperature == 0
        place, margin = (
            first_difference(race.ladder.target, contender.sampler, text, fastest.tokens)
            if comparable
            else (None, math.nan)
        )
        yield {
            "method": name,
            "prompt": text.name,
            "tokens": len(fastest.tokens),
            "timed_tokens": fastest.timed_tokens,
            "seconds": fastest.seconds,
            "rounds": fastest.rounds,
            "accepted": fastest.accepted,
            "tried": fastest.tried,
            "same": place is None if comparable else None,
            "margin": None if math.isnan(margin) else margin,
            "rounding": None
            if place is None
            else margin <= NEAR_TIE
            or _rounding(race.ladder.target, contender.sampler, text, fastest.tokens),
            "loops": text.loops,
        }


def _rounding(target: LanguageModel, sampler: Sampler, text: Text, tokens: Sequence[int]) -> bool:
    """Whether these tokens leave a text where the target's own rounding, as measured there, may
    choose between them.
    """
    return (
        near_tie(target, text.prompt, text.tokens, tokens, Chance(text.seed, sampler)).verdict
        == ROUNDING
    )
