"""Tokens per second, predicted from what development prompts say and from measured pass times."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from specdec_lib.core.chance import Chance
from specdec_lib.core.context import Context
from specdec_lib.core.protocols import Draft, LanguageModel
from specdec_lib.measure.own_text import work_of
from specdec_lib.measure.race.contenders import time_rounds
from specdec_lib.theory import Overhead, PassTable, Work


@dataclass(frozen=True)
class Observation:
    """The work of a draft's rounds on some prompts, and their seconds outside the models."""

    work: Work
    overhead_seconds: float

    def __add__(self, other: "Observation") -> "Observation":
        overhead = self.overhead_seconds + other.overhead_seconds
        return Observation(self.work + other.work, overhead)


def observe(
    target: LanguageModel,
    draft: Draft,
    prompt: Context | Sequence[int],
    chance: Chance,
    *,
    max_new_tokens: int = 64,
    stop_tokens: Sequence[int] = (),
) -> Observation:
    """Decode a prompt and count every round's passes by model, mean rows and context."""
    limits = {"max_new_tokens": max_new_tokens, "stop_tokens": stop_tokens}
    done, wall = time_rounds(target, draft, prompt, chance, **limits)
    inside = sum(used.seconds for one in done for used in one.usage.values())
    return Observation(work_of(done, target.name), wall - inside)


def fit_overhead(observations: Sequence[Observation]) -> Overhead:
    """Seconds outside the models, of drafts of one kind, linear in rounds, guesses, draft passes:
    least squares of the relative error, none below 0.
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
) -> pd.DataFrame:
    """Tokens per second of each draft, from its passes and tokens on development prompts.

    The columns are: draft, kind, predicted, tokens_per_round, host_share (of the seconds, outside
    the models), and round_overhead, guess_overhead and pass_overhead, the `Overhead` of its kind.

    development    by name of the draft
    kinds          the kind of each draft: the overhead is fitted to all drafts of a kind together
    tables         pass seconds by model, as the models count them themselves
    """
    rows = []
    for name, one in development.items():
        alike = [other for its, other in development.items() if kinds[its] == kinds[name]]
        overhead, work = fit_overhead(alike), one.work
        seconds = work.seconds(tables, overhead)
        found = {"draft": name, "kind": kinds[name], "predicted": work.tokens / seconds}
        found |= {"tokens_per_round": work.tokens_per_round}
        found |= {"host_share": 1 - work.model_seconds(tables) / seconds}
        found |= {"round_overhead": overhead.round, "guess_overhead": overhead.guess}
        rows.append(found | {"pass_overhead": overhead.draft_pass})
    return pd.DataFrame(rows)
