"""Tokens per second, predicted from what development prompts say and from measured pass times, and
held against a clock on other prompts.
"""

import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING

import numpy as np

from specdec_lib.core.chance import Chance
from specdec_lib.core.context import Context
from specdec_lib.core.protocols import Draft, LanguageModel, Rule
from specdec_lib.core.verify import look_up
from specdec_lib.measure.latency.ledger import run
from specdec_lib.measure.latency.passes import Clock
from specdec_lib.measure.latency.wrapping import Stopwatch, watched
from specdec_lib.theory import Overhead, PassTable, Work

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class Played:
    """What a draft did on some prompts.

    work                of all rounds together
    seconds             by the clock, the reading of prompts apart
    overhead_seconds    of them outside the models
    """

    work: Work
    seconds: float
    overhead_seconds: float

    def __add__(self, other: "Played") -> "Played":
        """Both together."""
        return Played(
            self.work + other.work,
            self.seconds + other.seconds,
            self.overhead_seconds + other.overhead_seconds,
        )

    @property
    def tokens_per_second(self) -> float:
        """Emitted ÷ seconds."""
        return self.work.tokens / self.seconds


def observed(
    target: LanguageModel,
    draft: Draft,
    prompt: Context | Sequence[int],
    chance: Chance,
    *,
    max_new_tokens: Integral = 64,
    rule: Rule = look_up,
    stop_tokens: Sequence[int] = (),
    clock: Clock = time.perf_counter,
) -> Played:
    """Decode a prompt and count every pass by model, rows and context."""
    watch = Stopwatch(clock)
    limits = {"max_new_tokens": int(max_new_tokens), "rule": rule, "stop_tokens": stop_tokens}
    tokens, played, wall, lap = run(
        *watched(target, draft, watch), prompt, chance, **limits, clock=clock, watch=watch
    )
    passes: Counter[tuple[str, int, int]] = Counter()
    for model, spent, before in lap.passes:
        passes[model, max(1, round(spent.rows / spent.passes)), before] += spent.passes
    guesses = (
        sum(count * rows for (model, rows, _), count in passes.items() if model == target.name)
        - played
    )
    work = Work(tokens, played, max(0, guesses), dict(passes), target.name)
    return Played(work, wall, wall - sum(spent.seconds for _, spent, _ in lap.passes))


def fitted_overhead(played: Sequence[Played]) -> Overhead:
    """Seconds outside the models as a linear function of rounds, guesses and draft passes: least
    squares of the relative error, none below 0.

    played    of drafts of one kind, which do the same things more or less often

    Raises ValueError if there is none.
    """
    if not played:
        raise ValueError("an overhead is fitted to at least 1 draft, got none")
    design = np.array(
        [(one.work.rounds, one.work.guesses, one.work.draft_passes) for one in played], dtype=float
    )
    seconds = np.array([max(one.overhead_seconds, 1e-9) for one in played])
    used = [column for column in range(3) if design[:, column].any()]
    while True:
        found = np.linalg.lstsq(
            design[:, used] / seconds[:, None], np.ones(len(played)), rcond=None
        )[0]
        if (found >= 0).all() or len(used) == 1:
            break
        del used[int(found.argmin())]
    values = dict(zip(used, np.maximum(found, 0.0).tolist(), strict=True))
    return Overhead(*(values.get(column, 0.0) for column in range(3)))


def predicted(
    development: Mapping[str, Played], kinds: Mapping[str, str], tables: Mapping[str, PassTable]
) -> "DataFrame":
    """Tokens per second of each draft, from its passes and tokens on development prompts.

    The columns are: draft, kind, predicted, tokens_per_round, host_share (of the seconds, outside
    the models), and round_overhead, guess_overhead and pass_overhead, the `Overhead` of its kind.

    development    by name of the draft
    kinds          the kind of each draft: the overhead is fitted to all drafts of a kind together
    tables         pass seconds by model, as the models count them themselves

    Raises ValueError if a draft has no kind or a model no table.
    """
    import pandas as pd

    if missing := set(development) - set(kinds):
        raise ValueError(f"no kind is given for {', '.join(sorted(missing))}")
    overheads = {
        kind: fitted_overhead([one for name, one in development.items() if kinds[name] == kind])
        for kind in set(map(kinds.get, development))
    }
    rows = []
    for name, one in development.items():
        overhead = overheads[kinds[name]]
        seconds, inside = one.work.seconds(tables, overhead), one.work.model_seconds(tables)
        found = {
            "predicted": one.work.tokens / seconds,
            "tokens_per_round": one.work.tokens_per_round,
            "host_share": 1 - inside / seconds,
        }
        parts = {
            "round_overhead": overhead.round,
            "guess_overhead": overhead.guess,
            "pass_overhead": overhead.draft_pass,
        }
        rows.append({"draft": name, "kind": kinds[name]} | found | parts)
    return pd.DataFrame(rows)


def median_and_largest(errors: Sequence[float]) -> tuple[float, float]:
    """Of errors without their signs; NaN where there is none."""
    sizes = [abs(float(error)) for error in errors]
    return (float(np.median(sizes)), max(sizes)) if sizes else (math.nan, math.nan)
