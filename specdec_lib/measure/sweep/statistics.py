"""Ratios over prompts with their intervals, per setting of a sweep."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from specdec_lib.measure.intervals import bootstrap, named_interval
from specdec_lib.measure.sweep.repetition import LOOPING

if TYPE_CHECKING:
    from pandas import DataFrame

SETTING = ("draft", "temperature", "top_k", "top_p", "rule")


def summary(table: "DataFrame", *, by: Sequence[str] = SETTING, seed: int = 0) -> "DataFrame":
    """Per setting: tokens per round and acceptance rate with 95 % intervals over prompts,
    repetition, and tokens per round without loops.

    A prompt loops where 0.3 or more of its tokens repeat; the others are counted in `prompts_kept`,
    their tokens per round are `tokens_per_round_kept`.  Where nothing was tried, or no prompt is
    left, the ratio and its interval are NaN.
    """
    import pandas as pd

    def ratio(name: str, numerator: "pd.Series", denominator: "pd.Series") -> dict[str, float]:
        return named_interval(name, bootstrap(numerator, denominator, seed=seed))

    rows = []
    for key, group in table.groupby(list(by), sort=False, dropna=False):
        kept = group[group.repetition < LOOPING]
        rows.append(
            dict(zip(by, key, strict=True))
            | ratio("tokens_per_round", group.tokens, group.rounds)
            | ratio("acceptance_rate", group.accepted, group.tried)
            | {
                "repetition": float(np.average(group.repetition, weights=group.tokens)),
                "prompts": len(group),
                "prompts_kept": len(kept),
            }
            | ratio("tokens_per_round_kept", kept.tokens, kept.rounds)
        )
    return pd.DataFrame(rows)
