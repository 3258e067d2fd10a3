"""Tokens per second, predicted from what development prompts say and from measured pass times."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING

import numpy as np

from specdec_lib.core.chance import Chance
from specdec_lib.core.context import Context
from specdec_lib.core.protocols import Draft, LanguageModel
from specdec_lib.measure.latency.stopwatch import Stopwatch, timed_parts
from specdec_lib.measure.race.contenders import time_rounds
from specdec_lib.theory import Overhead, PassTable, Work

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class Observation:
    """What a draft did on some prompts: the work of all rounds, their seconds by the clock, the
    reading of prompts apart, and how many of these lie outside the models.
    """

    work: Work
    seconds: float
    overhead_seconds: float

    def __add__(self, other: "Observation") -> "Observation":
        return Observation(
            self.work + other.work,
            self.seconds + other.seconds,
            self.overhead_seconds + other.overhead_seconds,
        )


def observe(
    target: LanguageModel,
    draft: Draft,
    prompt: Context | Sequence[int],
    chance: Chance,
    *,
    max_new_tokens: Integral = 64,
    stop_tokens: Sequence[int] = (),
) -> Observation:
    """Decode a prompt and count every pass by model, rows and context."""
    watch, passes = Stopwatch(), Counter()
    limits = {"max_new_tokens": int(max_new_tokens), "stop_tokens": stop_tokens}
    timed = (*timed_parts(target, draft, watch), prompt, chance)
    done, wall = time_rounds(*timed, **limits, on_start=watch.lap)
    lap, verified = watch.lap(), 0
    for model, spent, before in lap.passes:
        rows = max(1, round(spent.rows / spent.passes))
        passes[model, rows, before] += spent.passes
        verified += spent.passes * rows if model == target.name else 0
    tokens, guesses = sum(len(one.emitted) for one in done), max(0, verified - len(done))
    work = Work(tokens, len(done), guesses, dict(passes), target.name)
    return Observation(work, wall, wall - sum(spent.seconds for _, spent, _ in lap.passes))


def fit_overhead(observations: Sequence[Observation]) -> Overhead:
    """Seconds outside the models as a linear function of rounds, guesses and draft passes: least
    squares of the relative error, none below 0.

    observations    of drafts of one kind, which do the same things more or less often; 1 or more
    """
    counts = [(one.work.rounds, one.work.guesses, one.work.draft_passes) for one in observations]
    seconds = np.array([max(one.overhead_seconds, 1e-9) for one in observations])
    design = np.array(counts, dtype=float) / seconds[:, None]
    used = [column for column in range(3) if design[:, column].any()]
    while True:
        found = np.linalg.lstsq(design[:, used], np.ones(len(seconds)), rcond=None)[0]
        if (found >= 0).all() or len(used) == 1:
            break
        del used[int(found.argmin())]
    values = np.zeros(3)
    values[used] = np.maximum(found, 0.0)
    return Overhead(*values.tolist())


def predict_speeds(
    development: Mapping[str, Observation],
    kinds: Mapping[str, str],
    tables: Mapping[str, PassTable],
) -> "DataFrame":
    """Tokens per second of each draft, from its passes and tokens on development prompts.

    The columns are: draft, kind, predicted, tokens_per_round, host_share (of the seconds, outside
    the models), and round_overhead, guess_overhead and pass_overhead, the `Overhead` of its kind.

    development    by name of the draft
    kinds          the kind of each draft: the overhead is fitted to all drafts of a kind together
    tables         pass seconds by model, as the models count them themselves
    """
    import pandas as pd

    overheads = {
        kind: fit_overhead([one for name, one in development.items() if kinds[name] == kind])
        for kind in set(map(kinds.get, development))
    }
    rows = []
    for name, one in development.items():
        overhead = overheads[kinds[name]]
        seconds = one.work.seconds(tables, overhead)
        found = {
            "draft": name,
            "kind": kinds[name],
            "predicted": one.work.tokens / seconds,
            "tokens_per_round": one.work.tokens_per_round,
            "host_share": 1 - one.work.model_seconds(tables) / seconds,
            "round_overhead": overhead.round,
            "guess_overhead": overhead.guess,
            "pass_overhead": overhead.draft_pass,
        }
        rows.append(found)
    return pd.DataFrame(rows)
