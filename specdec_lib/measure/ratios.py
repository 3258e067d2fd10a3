"""Ratios of sums over prompts, alone or against a baseline, and their intervals: how far each would
move with other prompts of the same kind. Whole prompts are drawn again, because the rounds of one
depend on each other.
"""

import functools
import math
from collections.abc import Iterable, Sequence
from numbers import Real

import numpy as np
import pandas as pd

WITHIN, RESAMPLES = (0.025, 0.975), 2000
LEAST_PROMPTS = 10  # an interval from fewer says too little: none is printed or drawn
LEAST_FOR_WORDS = 4  # yet a verdict in words may rest on one, unseen
SETTING = ("draft", "temperature", "top_k", "top_p", "rule")
Interval = tuple[float, float, float]  # ratio, low, high
NOTHING: Interval = (math.nan, math.nan, math.nan)


def bootstrap(*columns: Iterable[Real], seed: int = 0, least: int = LEAST_PROMPTS) -> Interval:
    """A ratio of sums over prompts, and its 95 % interval when prompts are drawn again.

    columns    a number per prompt in each. Two columns, numerators and denominators, give
               Σ numerators ÷ Σ denominators. Four columns, those of a and those of b on the same
               prompts, give the quotient of both ratios, (Σa ÷ Σa') ÷ (Σb ÷ Σb')
    least      fewer prompts than this have a ratio and no interval: its ends are NaN

    All NaN where a denominator, or the numerators of b, sum to 0; resamples in which they do are
    left out. Source: Efron and Tibshirani 1993, chapter 13, the percentile interval.
    """
    arrays = [np.array(list(values), dtype=float) for values in columns]
    if len({len(array) for array in arrays}) > 1:
        got = " and ".join(str(len(array)) for array in arrays)
        raise ValueError(f"a ratio needs as many numerators as denominators, got {got}")
    by_prompt = np.stack(arrays, axis=1)
    above, below, *others = (array.sum() for array in arrays)
    if not min([below, *others]) > 0:
        return NOTHING
    ratio = above / below / (others[0] / others[1] if others else 1.0)
    if len(by_prompt) < least:
        return float(ratio), math.nan, math.nan
    sums = (_times_drawn(len(by_prompt), seed) @ by_prompt).T
    tops, bottoms = (sums[0] * sums[3], sums[1] * sums[2]) if others else sums
    possible = sums[1:].min(axis=0) > 0
    if not possible.any():
        return NOTHING
    low, high = np.quantile(tops[possible] / bottoms[possible], WITHIN)
    return float(ratio), float(low), float(high)


def named_interval(name: str, interval: Interval) -> dict[str, float]:
    """An interval as columns of a table: `name`, `name_low` and `name_high`."""
    return dict(zip((name, f"{name}_low", f"{name}_high"), interval, strict=True))


def with_interval(ratio: float, low: float, high: float) -> str:
    """The ratio in words, and its interval where it has one: "2.15 (2.05–2.26)"."""
    return f"{ratio:.2f}" + ("" if math.isnan(low) else f" ({low:.2f}–{high:.2f})")


# scipy.stats.bootstrap gives the same intervals, but draws prompts anew for each ratio: it takes 3
# to 6 ms where this takes 0.2, which tables of many ratios and the explorers would feel.
@functools.lru_cache(maxsize=8)
def _times_drawn(prompts: int, seed: int) -> np.ndarray:
    """How often each resample draws each prompt, [RESAMPLES prompts]."""
    drawn = np.random.default_rng(seed).integers(prompts, size=(RESAMPLES, prompts))
    cells = drawn + prompts * np.arange(RESAMPLES)[:, None]
    counts = np.bincount(cells.ravel(), minlength=RESAMPLES * prompts)
    return counts.reshape(RESAMPLES, prompts).astype(float)


def sampling_of(temperature: float, top_k: float | None, top_p: float = 1.0) -> str:
    """How a sampler is called in tables: "greedy", "T = 1, top-k 50", …; top-k 0 or NaN is none."""
    if temperature == 0:
        return "greedy"
    cut = f", top-k {top_k:.0f}" if top_k and top_k == top_k else ""
    return f"T = {temperature:g}{cut}" + (f", top-p {top_p:g}" if top_p < 1 else "")


def with_sampling(table: pd.DataFrame) -> pd.DataFrame:
    """The table with a column `sampling`, the sampler in words."""
    samplers = zip(table.temperature, table.top_k, table.top_p, strict=True)
    return table.assign(sampling=[sampling_of(*one) for one in samplers])


def summarise(table: pd.DataFrame, by: Sequence[str] = SETTING) -> pd.DataFrame:
    """Per setting: tokens per round and acceptance rate (NaN where nothing was tried) with 95 %
    intervals over prompts, repetition, and the number of prompts.

    Raises ValueError if the table is empty or lacks a column that is needed.
    """
    _check_columns(table, (*by, "tokens", "rounds", "accepted", "tried", "repetition"))
    return pd.DataFrame(
        dict(zip(by, key, strict=True))
        | named_interval("tokens_per_round", bootstrap(group.tokens, group.rounds))
        | named_interval("acceptance_rate", bootstrap(group.accepted, group.tried))
        | {"repetition": float(np.average(group.repetition, weights=group.tokens))}
        | {"prompts": len(group)}
        for key, group in table.groupby([*by], sort=False, dropna=False)
    )


def ratios(
    table: pd.DataFrame,
    numerator: str,
    denominator: str,
    *,
    by: Sequence[str] = (*SETTING, "sampling"),
    baseline: str | None = None,
) -> pd.DataFrame:
    """Per setting, the ratio of two columns' sums as `value`, with its 95 % interval over prompts:
    `by`, value, low, high, prompts.

    baseline    a draft: the ratio is divided by this draft's under the same sampler, on the same
                prompts, and the interval is over prompts drawn together for both sides

    A column that a setting lacks wholly counts as 0.  Raises ValueError for other missing numbers
    or infinite ones, if the table is empty or lacks a column that is needed, and unless each
    sampler has its baseline, on the same prompts.
    """
    columns, rows = [numerator, denominator], []
    beside = () if baseline is None else ("draft", "sampling", "prompt")
    _check_columns(table, (*columns, *by, *beside))
    for key, group in table.groupby([*by], sort=False, dropna=False):
        sides = [group]
        for name in columns:
            if not (group[name].isna().all() or np.isfinite(group[name].astype(float)).all()):
                raise ValueError(f"{name} has a finite number in all rows of a setting, or in none")
        if baseline is not None:
            sampling = group.sampling.iloc[0]
            plain = table[(table.draft == baseline) & (table.sampling == sampling)]
            if set(group.prompt) != set(plain.prompt):
                sizes = f"{len(plain)} prompts, {group.draft.iloc[0]!r} {len(group)}, or others"
                raise ValueError(f"{sampling}: the baseline {baseline!r} has {sizes}")
            sides.append(plain.set_index("prompt").loc[group.prompt])
        found = bootstrap(*(side[name].fillna(0) for side in sides for name in columns))
        rows.append((*key, *found, len(group)))
    return pd.DataFrame(rows, columns=[*by, "value", "low", "high", "prompts"])


def without_few(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of a stored table, without their intervals (`low`, `high`, `…_low`, `…_high`) where
    fewer than 10 prompts are behind them.
    """
    ends = [name for name in rows if name.rpartition("_")[2] in ("low", "high")]
    return rows.assign(**{name: rows[name].mask(rows.prompts < LEAST_PROMPTS) for name in ends})


def per_prompt(table: pd.DataFrame, column: str, *, baseline: str) -> pd.DataFrame:
    """How many times less of a column each setting took per token than `baseline`, by prompt:
    sampling, prompt, method, relative.  Raises ValueError if the table is empty or lacks a column
    that is needed.
    """
    keys = ["sampling", "prompt"]
    _check_columns(table, (column, "tokens", "draft", *keys))
    cost = table.assign(cost=table[column] / table.tokens)
    plain = cost[cost.draft == baseline].set_index(keys).cost.rename("plain")
    found = cost[cost.draft != baseline].join(plain, on=keys)
    return found[keys].assign(method=found.draft, relative=found.plain / found.cost)


def _check_columns(table: pd.DataFrame, needed: Sequence[str]) -> None:
    """Raises ValueError if the table is empty or lacks one of these columns."""
    missing = [name for name in needed if name not in table.columns]
    if missing:
        raise ValueError(
            f"the table lacks {', '.join(missing)}; `sampling` comes from `with_sampling`"
        )
    if table.empty:
        raise ValueError("the table has no rows: there is nothing to count")
