"""A ratio of sums over prompts, and its interval.

What one prompt's rounds hold hangs together, so a prompt is drawn whole: an interval says how far
the ratio would move with other prompts of the same kind, not with more tokens of the same ones.
"""

import functools
import math
from collections.abc import Iterable
from numbers import Real

import numpy as np

WITHIN = (0.025, 0.975)


def bootstrap(
    numerator: Iterable[Real], denominator: Iterable[Real], *, resamples: int = 2000, seed: int = 0
) -> tuple[float, float, float]:
    """A ratio of sums over prompts, and its 95 % interval when prompts are drawn again: (ratio,
    low, high).

    NaN where the denominators sum to 0; resamples in which they do are left out.  Raises ValueError
    unless there are as many of both.
    Source: Efron and Tibshirani 1993, chapter 13, the percentile interval.
    """
    above, below = _columns(numerator, denominator)
    if not below.sum() > 0:
        return math.nan, math.nan, math.nan
    tops, bottoms = _resampled(resamples, seed, above, below)
    low, high = np.quantile(tops[bottoms > 0] / bottoms[bottoms > 0], WITHIN)
    return float(above.sum() / below.sum()), float(low), float(high)


def paired_bootstrap(
    numerators_a: Iterable[Real],
    denominators_a: Iterable[Real],
    numerators_b: Iterable[Real],
    denominators_b: Iterable[Real],
    *,
    resamples: int = 2000,
    seed: int = 0,
) -> tuple[float, float, float]:
    """How many times one ratio of sums is the other, (Σa ÷ Σa') ÷ (Σb ÷ Σb'), and its 95 %
    interval: (ratio, low, high).

    Entry i of all four belongs to the same prompt, and a resample draws the same prompts on both
    sides: what makes a prompt easy for both cancels, so the interval is narrower than what two
    separate ones suggest.
    NaN where a denominator or the numerators of b sum to 0; resamples in which they do are left
    out.  Raises ValueError unless there are as many of each.
    """
    columns = above_a, below_a, above_b, below_b = _columns(
        numerators_a, denominators_a, numerators_b, denominators_b
    )
    if not min(below_a.sum(), above_b.sum(), below_b.sum()) > 0:
        return math.nan, math.nan, math.nan
    tops_a, bottoms_a, tops_b, bottoms_b = _resampled(resamples, seed, *columns)
    tops, bottoms = tops_a * bottoms_b, bottoms_a * tops_b
    possible = (bottoms > 0) & (bottoms_b > 0)
    if not possible.any():
        return math.nan, math.nan, math.nan
    low, high = np.quantile(tops[possible] / bottoms[possible], WITHIN)
    return (
        float(above_a.sum() / below_a.sum() / (above_b.sum() / below_b.sum())),
        float(low),
        float(high),
    )


def _columns(*given: Iterable[Real]) -> list[np.ndarray]:
    columns = [np.array(list(values), dtype=float) for values in given]
    lengths = [len(column) for column in columns]
    if len(set(lengths)) > 1:
        raise ValueError(
            "a ratio needs as many numerators as denominators, got"
            f" {' and '.join(map(str, lengths))}"
        )
    return columns


def _resampled(resamples: int, seed: int, *columns: np.ndarray) -> np.ndarray:
    """The sum of each column in each resample, [columns resamples]."""
    if resamples < 1:
        raise ValueError(f"an interval needs at least 1 resample, got {resamples}")
    return (_times_drawn(len(columns[0]), resamples, seed) @ np.stack(columns, axis=1)).T


@functools.lru_cache(maxsize=8)
def _times_drawn(prompts: int, resamples: int, seed: int) -> np.ndarray:
    """How often each resample draws each prompt, [resamples prompts]; kept, because a table has
    many ratios over the same prompts.
    """
    drawn = np.random.default_rng(seed).integers(prompts, size=(resamples, prompts))
    places = drawn + prompts * np.arange(resamples)[:, None]
    return (
        np.bincount(places.ravel(), minlength=resamples * prompts)
        .reshape(resamples, prompts)
        .astype(float)
    )
