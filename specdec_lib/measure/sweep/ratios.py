"""Ratios of a sweep's columns per setting, alone or against a baseline, with intervals."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from specdec_lib.measure.intervals import LEAST_PROMPTS, bootstrap, named_interval

SETTING = ("draft", "temperature", "top_k", "top_p", "rule")


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
