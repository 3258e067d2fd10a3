"""Ratios over prompts with their intervals, and how much of a text is a loop."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pandas import DataFrame

REPEATED = 8  # tokens of an n-gram that count as a loop
LOOPING = 0.3  # a generation that repeats this share or more is reported apart


def repetition(tokens: Sequence[int], length: int = REPEATED) -> float:
    """The share of tokens that end an n-gram of `length` tokens which was generated before: how much of a text is a loop."""
    seen: set[tuple[int, ...]] = set()
    repeated = 0
    for end in range(length, len(tokens) + 1):
        gram = tuple(tokens[end - length : end])
        repeated += gram in seen
        seen.add(gram)
    return repeated / len(tokens) if tokens else 0.0


def bootstrap(numerator: Iterable[float], denominator: Iterable[float], *, resamples: int = 2000, seed: int = 0) -> tuple[float, float, float]:
    """A ratio of sums over prompts, and its 95 % interval when prompts are drawn again: (ratio, low, high)."""
    above, below = np.array(list(numerator), dtype=float), np.array(list(denominator), dtype=float)
    drawn = np.random.default_rng(seed).integers(len(above), size=(resamples, len(above)))
    ratios = above[drawn].sum(1) / np.maximum(below[drawn].sum(1), np.finfo(float).tiny)
    low, high = np.quantile(ratios, (0.025, 0.975))
    return float(above.sum() / below.sum()) if below.sum() else 0.0, float(low), float(high)


def summary(table: "DataFrame", *, by: Sequence[str] = ("draft", "temperature"), seed: int = 0) -> "DataFrame":
    """Per group: tokens per round and acceptance rate with 95 % intervals over prompts, repetition, and both again without looping prompts.

    A prompt loops where more than 0.3 of its tokens repeat; `prompts_kept` are the others.
    """
    import pandas as pd

    rows = []
    for key, group in table.groupby(list(by), sort=False):
        kept = group[group.repetition < LOOPING]
        rows.append(
            dict(zip(by, key, strict=True))
            | _ratio("tokens_per_round", group.tokens, group.rounds, seed)
            | _ratio("acceptance_rate", group.accepted, group.tried, seed)
            | {"repetition": float(np.average(group.repetition, weights=group.tokens)), "prompts": len(group), "prompts_kept": len(kept)}
            | (_ratio("tokens_per_round_kept", kept.tokens, kept.rounds, seed) if len(kept) else {})
        )
    return pd.DataFrame(rows)


def _ratio(name: str, numerator, denominator, seed: int) -> dict[str, float]:
    ratio, low, high = bootstrap(numerator, denominator, seed=seed)
    return {name: ratio, f"{name}_low": low, f"{name}_high": high}
