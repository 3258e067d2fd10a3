"""Trials: drafts run along the target's own text, and their rounds are counted.

Only the drafts run, so that many settings are tried in the time in which a race tries a few.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial, reduce
from operator import add
from pathlib import Path

import pandas as pd
from tqdm.auto import tqdm

from specdec_lib.core.chance import Chance, Sampler
from specdec_lib.core.context import Context
from specdec_lib.core.decode import Round
from specdec_lib.core.protocols import Draft
from specdec_lib.drafts.combined import situation
from specdec_lib.measure.own_text import OwnText, replay_draft, work_of
from specdec_lib.measure.race.families import drafts
from specdec_lib.measure.race.harness import WARM_UP, TargetText, target_texts
from specdec_lib.measure.race.lineup import spread
from specdec_lib.measure.sweep.identity import fingerprint
from specdec_lib.measure.sweep.kept import Kept
from specdec_lib.theory import Work
from specdec_lib.workload import Ladder, Prompt

Named = tuple[str, str]  # method and setting
Text = tuple[Prompt, TargetText]


def written_texts(
    ladder: Ladder,
    sampler: Sampler,
    prompts: Sequence[Prompt],
    limits: Mapping[str, int],
    keep: Path | None,
) -> Iterator[Text]:
    """The prompts, and what the target writes after each; finished ones are kept in a folder."""
    for prompt in tqdm(prompts, "target's texts", mininterval=1):
        made = map(asdict, target_texts(ladder, [prompt], sampler, **limits))
        [row] = Kept(keep).rows(prompt, partial(list, made))
        lists = {name: tuple(row[name]) for name in ("prompt", "tokens")}
        yield prompt, TargetText(**row | lists)


def settings(
    ladder: Ladder, sampler: Sampler, methods: Sequence[str], most: int, built_on: Sequence[str]
) -> dict[Named, Draft]:
    """At most so many settings of each method, spread over its grid."""
    found: dict[Named, Draft] = {}
    for method in methods:
        grid = drafts(ladder, sampler, method, built_on)
        found |= {(method, name): grid[name] for name in spread([*grid], most)}
    return found


def trial_rows(
    ladder: Ladder,
    sampler: Sampler,
    text: TargetText,
    tried: Mapping[Named, Draft],
    *,
    warm_up: bool = False,
) -> list[dict[str, object]]:
    """The rounds of each draft along a text, a row per draft and situation in which some began:
    method, setting, situation, work (tokens, rounds, guesses, counts by pass) and outside, seconds
    outside the drafts' passes and the target.

    warm_up    replay a few tokens before: first calls take longer

    Raises ValueError for drafts that learn.
    """
    own = OwnText.of(ladder.target, text.prompt, text.tokens, len(text.tokens))
    rows, few = [], replace(own, tokens=own.tokens[:WARM_UP], limit=min(WARM_UP, own.limit))
    for (method, setting), draft in tried.items():
        if warm_up:
            replay_draft(few, draft, Chance(text.seed, sampler))
        by: dict[int, list[Round]] = {}
        context = Context.of(text.prompt)
        for one in replay_draft(own, draft, Chance(text.seed, sampler)).rounds:
            by.setdefault(situation(context), []).append(one)
            context = context.extended(one.emitted)
        for place, rounds in by.items():
            work = work_of(rounds, ladder.target.name)
            row = {"method": method, "setting": setting, "situation": place}
            row["work"] = [work.tokens, work.rounds, work.guesses, [*work.passes.items()]]
            rows.append(row | {"outside": sum(one.overhead_seconds for one in rounds)})
    return rows


def try_settings(
    ladder: Ladder,
    sampler: Sampler,
    texts: Sequence[Text],
    tried: Mapping[Named, Draft],
    keep: Path | None = None,
) -> pd.DataFrame:
    """`trial_rows` of every text, with the prompt's name; finished texts are kept in a folder."""
    found, keep, warm = [], keep and keep / fingerprint(tried), False

    def run(text: TargetText) -> list[dict[str, object]]:
        nonlocal warm
        cold, warm = not warm, True
        return trial_rows(ladder, sampler, text, tried, warm_up=cold)

    for prompt, text in tqdm(texts, "texts", mininterval=1):
        rows = Kept(keep).rows(prompt, partial(run, text))
        for row in rows:
            *counts, passes = row["work"]
            work = Work(*counts, {tuple(one): n for one, n in passes}, ladder.target.name)
            found.append(row | {"prompt": prompt.name, "work": work})
    return pd.DataFrame(found)


def whole(trials: pd.DataFrame) -> Work:
    """The work of all rows together."""
    return reduce(add, trials.work)
