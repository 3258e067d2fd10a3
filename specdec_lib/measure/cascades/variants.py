"""A tuned cascade, what is left of it without each of its ideas, and what one entry or the lenience
changes: each variant retuned, and all beside each other by SWI and by the clock.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import pandas as pd

from specdec_lib.measure.cascades.studies import CASCADES, ablations, tune_stacks
from specdec_lib.measure.replay.recording import MAX_GRAM, CascadeSetting, Recording
from specdec_lib.measure.replay.tuning import LENIENCES, replayed_swi, tune
from specdec_lib.measure.sweep.ratios import relative, without_few

LENIENT = (1.0, 2.0, 5.0, 10.0)
K00 = (1, 2, 3, 4)
WAYS = {"SWI, counted": "cost", "speed, measured": "seconds"}  # and what each divides tokens by
LEFT_OUT: dict[str, Callable[[CascadeSetting], bool]] = {
    "no horizontal": lambda one: all(sum(map(bool, row)) <= 1 for row in one.matrix),
    "no vertical": lambda one: not any(map(any, one.matrix[1:])),
    "no Max-Gram": lambda one: MAX_GRAM not in one.drafters,
    "no lenience": lambda one: one.lenience == 1,
}


def variants(
    recordings: Sequence[Recording], prices: Mapping[str, float]
) -> dict[str, CascadeSetting]:
    """The settings by "study: variant", each the one with the largest SWI on these recordings among
    those of its kind: the ablations of three drafters and Max-Gram alone, their lenience, and K00
    of the draft above Max-Gram.
    """
    best = tune_stacks(recordings, prices, progress=False)
    three, alone = best[CASCADES[-1]].setting, best[MAX_GRAM,].setting
    kinds = {f"ablation: {name}": (ablations(three)[name], LEFT_OUT[name]) for name in LEFT_OUT}
    for value in LENIENT:
        kept = partial(lambda value, one: one.lenience == value, value)
        kinds[f"lenience: {value:g}"] = replace(three, lenience=value), kept
    for value in K00:
        kept = partial(lambda value, one: one.matrix[0][0] == value, value)
        kinds[f"K00: {value}"] = CascadeSetting(CASCADES[1], ((value, 10), (0, 10))), kept
    found = {name: retune(recordings, start, prices, kept) for name, (start, kept) in kinds.items()}
    return {"ablation: full": three, "ablation: Max-Gram alone": alone} | found


def retune(
    recordings: Sequence[Recording],
    start: CascadeSetting,
    prices: Mapping[str, float],
    kept: Callable[[CascadeSetting], bool],
) -> CascadeSetting:
    """The best setting that a climb from `start` finds among those for which `kept` holds."""

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

    Raises ValueError as `relative` does.
    """
    timings = timings[timings.draft.str.startswith(prefix) | (timings.draft == baseline)]
    passes = timings.reindex(columns=[f"{name}_passes" for name in prices]).fillna(0)
    table = timings.assign(cost=passes @ list(prices.values()), sampling="greedy")
    if not table.draft.str.startswith(prefix).any():
        return pd.DataFrame()
    found = [
        relative(own, "tokens", column, baseline=baseline, by=("draft", "sampling")).assign(
            domain=domain, by=way
        )
        for way, column in WAYS.items()
        for domain, own in table.groupby("domain", sort=False)
    ]
    rows = without_few(pd.concat(found, ignore_index=True).drop(columns="sampling"))
    rows = rows[rows.draft.str.startswith(prefix)]
    return rows.assign(variant=rows.draft.str.removeprefix(prefix))
