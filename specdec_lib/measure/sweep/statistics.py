"""Ratios over prompts with their intervals, and how much of a text is a loop."""

from collections.abc import Iterable, Sequence
from numbers import Real
from typing import TYPE_CHECKING

import numpy as np

from specdec_lib.measure.intervals import bootstrap

if TYPE_CHECKING:
    from pandas import DataFrame

REPEATED = 8  # tokens of an n-gram that count as a loop
SETTING = ("draft", "temperature", "top_k", "top_p", "rule")
LOOPING = 0.3  # a generation that repeats this share or more is reported apart


def repetition(tokens: Sequence[int], length: int = REPEATED) -> float:
    """The share of tokens that end an n-gram of `length` tokens which was generated before: how
    much of a text is a loop.
    """
    seen: set[tuple[int, ...]] = set()
    repeated = 0
    for end in range(length, len(tokens) + 1):
        gram = tuple(tokens[end - length : end])
        repeated += gram in seen
        seen.add(gram)
    return repeated / len(tokens) if tokens else 0.0


def summary(table: "DataFrame", *, by: Sequence[str] = SETTING, seed: int = 0) -> "DataFrame":
    """Per setting: tokens per round and acceptance rate with 95 % intervals over prompts,
    repetition, and tokens per round without loops.

    A prompt loops where 0.3 or more of its tokens repeat; the others are counted in `prompts_kept`,
    their tokens per round are
    `tokens_per_round_kept`.  Where nothing was tried, or no prompt is left, the ratio and its
    interval are NaN.
    """
    import pandas as pd

    rows = []
    for key, group in table.groupby(list(by), sort=False, dropna=False):
        kept = group[group.repetition < LOOPING]
        rows.append(
            dict(zip(by, key, strict=True))
            | _ratio("tokens_per_round", group.tokens, group.rounds, seed)
            | _ratio("acceptance_rate", group.accepted, group.tried, seed)
            | {
                "repetition": float(np.average(group.repetition, weights=group.tokens)),
                "prompts": len(group),
                "prompts_kept": len(kept),
            }
            | _ratio("tokens_per_round_kept", kept.tokens, kept.rounds, seed)
        )
    return pd.DataFrame(rows)


def _ratio(
    name: str, numerator: Iterable[Real], denominator: Iterable[Real], seed: int
) -> dict[str, float]:
    ratio, low, high = bootstrap(numerator, denominator, seed=seed)
    return {name: ratio, f"{name}_low": low, f"{name}_high": high}
