"""Studies over replayed cascades: settings tuned, their ratios, survival, and what is left of a
cascade without each of its ideas, or with another entry or lenience, retuned.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from specdec_lib.measure.intervals import Interval, bootstrap
from specdec_lib.measure.replay.cascade_rounds import replay_cascade
from specdec_lib.measure.replay.recording import MAX_GRAM, CascadeSetting, Recording
from specdec_lib.measure.replay.tuning import LENIENCES, Tuned, costs_of, replayed_swi, tune
from specdec_lib.measure.sweep.ratios import ratios

ALONE = (("middle",), ("draft",), (MAX_GRAM,))
CASCADES = (("middle", MAX_GRAM), ("draft", MAX_GRAM), ("middle", "draft", MAX_GRAM))
LENIENT = (1.0, 2.0, 5.0, 10.0)
K00 = (1, 2, 3, 4)
WAYS = {"SWI, counted": "cost", "speed, measured": "seconds"}  # and what each divides tokens by
LEFT_OUT: dict[str, Callable[[CascadeSetting], bool]] = {
    "no horizontal": lambda one: all(sum(map(bool, row)) <= 1 for row in one.matrix),
    "no vertical": lambda one: not any(map(any, one.matrix[1:])),
    "no Max-Gram": lambda one: MAX_GRAM not in one.drafters,
    "no lenience": lambda one: one.lenience == 1,
}


def tune_stacks(
    recordings: Sequence[Recording], prices: Mapping[str, float]
) -> dict[tuple[str, ...], Tuned]:
    """The best setting of each drafter alone and of each cascade on these texts; that of three is
    also looked for around those of two.  Raises ValueError as `tune` does.
    """
    search = partial(tune, recordings, prices=prices, progress=False)
    found = {drafters: search(drafters) for drafters in (*ALONE, *CASCADES[:-1])}
    starts = (_among_three(found[drafters].setting) for drafters in CASCADES[:-1])
    return found | {CASCADES[-1]: search(CASCADES[-1], starts=starts)}


def _among_three(setting: CascadeSetting) -> CascadeSetting:
    """A cascade of one model as one of both: the other contributes one token where it fits."""
    (own, tail), (_, below) = setting.matrix
    matrix = ((1, own, tail), (0, 0, below), (0, 0, below))
    if setting.drafters[0] == "middle":
        matrix = ((own, 0, tail), (0, 1, below), (0, 0, below))
    return replace(setting, drafters=CASCADES[-1], matrix=matrix)


def swi_ratio(
    recordings: Sequence[Recording],
    setting: CascadeSetting,
    other: CascadeSetting,
    prices: Mapping[str, float],
) -> Interval:
    """How many times one setting's SWI is the other's on the same texts, and the interval."""
    ours, theirs = (costs_of(recordings, one, prices) for one in (setting, other))
    return bootstrap(*ours, *theirs)


def survival(recordings: Sequence[Recording], drafter: str, *, length: int = 30) -> pd.DataFrame:
    """P(a draft of `length` tokens is accepted up to and including a position), by position from 1:
    position, at_risk (drafts that the text is long enough for), rate, low, high.

    Source: Chen et al. 2024, figure 2.
    """
    setting, rows = CascadeSetting((drafter,), ((length,),)), []
    accepted, tried = np.zeros((2, len(recordings), length), dtype=int)
    for text, recording in enumerate(recordings):
        left = len(recording.tokens) - 1  # no round may guess the text's last token
        for emitted in replay_cascade(recording, setting).emitted:
            tried[text, : max(0, left)] += 1
            accepted[text, : min(emitted - 1, max(0, left))] += 1
            left -= emitted
    for place in range(length):
        rate = bootstrap(accepted[:, place], tried[:, place])
        rows.append((place + 1, tried[:, place].sum(), *rate))
    return pd.DataFrame(rows, columns=["position", "at_risk", "rate", "low", "high"])


def ablations(setting: CascadeSetting) -> dict[str, CascadeSetting]:
    """A cascade of models above Max-Gram, and the same cascade without each of its ideas.

    Without the horizontal cascade, each reviewer gets tokens of the first drafter in its row alone;
    without the vertical one, every model guesses token by token; without Max-Gram, the weakest
    model takes its place at the bottom.
    """
    matrix = setting.matrix
    alone = tuple(
        tuple(0 if any(row[:column]) else length for column, length in enumerate(row))
        for row in matrix
    )
    idle = (matrix[0], *((0,) * len(row) for row in matrix[1:]))
    fewer = tuple(row[:-1] for row in matrix[:-1])
    return {
        "full": setting,
        "no horizontal": replace(setting, matrix=alone),
        "no vertical": replace(setting, matrix=idle),
        "no Max-Gram": replace(setting, drafters=setting.drafters[:-1], matrix=fewer),
        "no lenience": replace(setting, lenience=1.0),
    }


def variants(
    recordings: Sequence[Recording], prices: Mapping[str, float]
) -> dict[str, CascadeSetting]:
    """By "study: variant" the best setting on these recordings of each kind: the ablations of three
    drafters and Max-Gram alone, their lenience, and K00 of the draft above Max-Gram.
    """
    best = tune_stacks(recordings, prices)
    three, alone = best[CASCADES[-1]].setting, best[MAX_GRAM,].setting
    kinds = {f"ablation: {name}": (ablations(three)[name], LEFT_OUT[name]) for name in LEFT_OUT}
    for value in LENIENT:
        kept = partial(lambda value, one: one.lenience == value, value)
        kinds[f"lenience: {value:g}"] = replace(three, lenience=value), kept
    for value in K00:
        kept = partial(lambda value, one: one.matrix[0][0] == value, value)
        kinds[f"K00: {value}"] = CascadeSetting(CASCADES[1], ((value, 10), (0, 10))), kept
    found = {name: _retuned(recordings, one, prices, kept) for name, (one, kept) in kinds.items()}
    return {"ablation: full": three, "ablation: Max-Gram alone": alone} | found


def _retuned(
    recordings: Sequence[Recording],
    start: CascadeSetting,
    prices: Mapping[str, float],
    kept: Callable[[CascadeSetting], bool],
) -> CascadeSetting:
    def worth(setting: CascadeSetting) -> float:
        return replayed_swi(recordings, setting, prices) if kept(setting) else 0.0

    leniences = sorted({*LENIENCES, start.lenience})
    options = {"leniences": leniences, "starts": [start], "worth": worth, "progress": False}
    return tune(recordings, start.drafters, prices, **options).setting


def by_swi_and_clock(
    timings: pd.DataFrame, prices: Mapping[str, float], *, prefix: str, baseline: str
) -> pd.DataFrame:
    """Each method ÷ `baseline` on the same prompts, by counted passes at these prices and by the
    clock: `draft`, `value`, `low`, `high`, `prompts`, `domain`, `by` (one of `WAYS`), `variant`.

    prefix    of the methods' names, which their variants go without; no row where none has it
    """
    timings = timings[timings.draft.str.startswith(prefix) | (timings.draft == baseline)]
    passes = timings.reindex(columns=[f"{name}_passes" for name in prices]).fillna(0)
    table = timings.assign(cost=passes @ list(prices.values()), sampling="greedy")
    if not table.draft.str.startswith(prefix).any():
        return pd.DataFrame()
    pair = {"baseline": baseline, "by": ("draft", "sampling")}
    found = [
        ratios(own, "tokens", column, **pair).assign(domain=domain, by=way)
        for way, column in WAYS.items()
        for domain, own in table.groupby("domain", sort=False)
    ]
    rows = pd.concat(found, ignore_index=True).drop(columns="sampling")
    rows = rows[rows.draft.str.startswith(prefix)]
    return rows.assign(variant=rows.draft.str.removeprefix(prefix))
