"""Ratios of sums over prompts, alone or against a baseline, with 95 % intervals: how far each would
move with other prompts of the same kind. The one summary of every measurement.

Whole prompts are the sample, because the rounds of one depend on each other. An interval is
Student's t on the logarithm of the ratio, of a share on its log odds, with the standard error of a
ratio of sums. Source: Cochran 1977, section 6.4. With 10, 20 or 40 prompts drawn anew from stored
ones it holds the ratio of all of them about as often as it says, where the percentiles of a
bootstrap hold it too seldom (`tests/test_ratios.py`).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, SupportsFloat

import numpy as np
import pandas as pd
from scipy.special import expit, logit, stdtrit

WITHIN = 0.975  # of Student's t, so that 95 % lie between both ends
LEAST_PROMPTS = 10  # an interval from fewer says too little: none is printed or drawn
LEAST_FOR_WORDS = 4  # yet a verdict in words may rest on one, unseen
ALL = "all"  # domains together
SETTING = ("draft", "temperature", "top_k", "top_p", "rule")
Interval = tuple[float, float, float]  # ratio, low, high
NOTHING: Interval = (math.nan, math.nan, math.nan)


def interval(
    above: Iterable[SupportsFloat],
    below: Iterable[SupportsFloat],
    base_above: Iterable[SupportsFloat] | None = None,
    base_below: Iterable[SupportsFloat] | None = None,
    *,
    share: bool = False,
    least: int = LEAST_PROMPTS,
) -> Interval:
    """A ratio of sums over prompts, Σ above ÷ Σ below, and its 95 % interval.

    above, below    a number per prompt
    base_…          those of a baseline on the same prompts: the ratio is divided by the baseline's,
                    and the interval is of prompts that both had
    share           whether the ratio counts some of what is below: it lies from 0 to 1
    least           fewer prompts than this have a ratio and no interval: its ends are NaN

    A sum of 0 above, and a share of 1, have an interval of no width. All is NaN where a sum below,
    or of the baseline, is 0.  Raises ValueError for columns of different lengths, and for a share
    above 1 or with a baseline.
    """
    given = [one for one in (above, below, base_above, base_below) if one is not None]
    columns = [np.array(list(values), dtype=float) for values in given]
    if len({len(column) for column in columns}) > 1:
        got = " and ".join(str(len(column)) for column in columns)
        raise ValueError(f"a ratio needs as many numerators as denominators, got {got}")
    sums = [column.sum() for column in columns]
    if not min(sums[1:]) > 0:
        return NOTHING
    ratio = float(sums[0] / sums[1])
    if share and (ratio > 1 or len(sums) > 2):
        raise ValueError(f"a share is at most 1 and has no baseline, got {ratio:g}")
    if len(sums) > 2:
        ratio /= float(sums[2] / sums[3])
    prompts = len(columns[0])
    if prompts < max(2, least):
        return ratio, math.nan, math.nan
    if ratio == 0 or (share and ratio == 1):
        return ratio, ratio, ratio
    if share:
        columns[1] = columns[1] - columns[0]
        sums[1] -= sums[0]
    shares = [column / total for column, total in zip(columns, sums, strict=True)]
    moved = shares[0] - shares[1]
    if len(shares) > 2:
        moved = moved - shares[2] + shares[3]
    error = math.sqrt(prompts / (prompts - 1) * float((moved**2).sum()))
    width = float(stdtrit(prompts - 1, WITHIN)) * error
    if share:
        return ratio, float(expit(logit(ratio) - width)), float(expit(logit(ratio) + width))
    return ratio, ratio * math.exp(-width), ratio * math.exp(width)


def named_interval(name: str, found: Sequence[float]) -> dict[str, float]:
    """An interval as columns of a table: `name`, `name_low` and `name_high`."""
    return dict(zip((name, f"{name}_low", f"{name}_high"), found, strict=True))


def with_interval(ratio: float, low: float, high: float) -> str:
    """The ratio in words, and its interval where it has one: "2.15 (2.05–2.26)"."""
    return f"{ratio:.2f}" + ("" if math.isnan(low) else f" ({low:.2f}–{high:.2f})")


class Ratio(NamedTuple):
    """What a ratio is made of: two columns of a table with a row per setting and prompt.

    share       see `interval`
    relative    whether it is divided by the baseline's
    times       what it is multiplied by, for another unit
    ends        whether its interval is wanted too
    """

    above: str
    below: str
    share: bool = False
    relative: bool = False
    times: float = 1.0
    ends: bool = True


def summarise(
    table: pd.DataFrame,
    by: Sequence[str],
    wanted: Mapping[str, Ratio],
    *,
    baseline: Mapping[str, object] | None = None,
    within: Sequence[str] = (),
    least: int = LEAST_PROMPTS,
) -> pd.DataFrame:
    """A row per group of `by`: these columns; per ratio its `name`, and `name_low` and `name_high`
    where its ends are wanted; and prompts, how many are behind it.

    baseline    the rows of the baseline by their values, such as {"draft": "plain"}
    within      columns in which a group and its baseline are the same, such as the sampler
    least       see `interval`

    A column that a group lacks wholly counts as 0.  Raises ValueError for other missing numbers or
    infinite ones, if the table is empty or lacks a column that is needed, and unless each group's
    baseline has its prompts.
    """
    used = [name for one in wanted.values() for name in (one.above, one.below)]
    relative = any(one.relative for one in wanted.values())
    known = (*by, *used, *within, *(baseline or {}), *(["prompt"] if relative else []))
    _check_columns(table, dict.fromkeys(known))
    bases = table
    for name, value in (baseline or {}).items():
        bases = bases[bases[name] == value]
    rows = []
    groups = table.groupby([*by], sort=False, dropna=False) if by else [((), table)]
    for key, group in groups:
        _check_numbers(group, used)
        base = _baseline_of(group, bases, within, baseline) if relative else None
        row = dict(zip(by, key, strict=True))
        for name, one in wanted.items():
            sides = [group, base] if one.relative else [group]
            pair = (one.above, one.below)
            columns = [side[column].fillna(0) for side in sides for column in pair]
            found = interval(*columns, share=one.share, least=least)
            scaled = [one.times * value for value in found]
            row |= named_interval(name, scaled) if one.ends else {name: scaled[0]}
        rows.append(row | {"prompts": len(group)})
    return pd.DataFrame(rows)


def _baseline_of(
    group: pd.DataFrame,
    bases: pd.DataFrame,
    within: Sequence[str],
    baseline: Mapping[str, object] | None,
) -> pd.DataFrame:
    """The baseline's rows on the prompts of a group, in their order."""
    first = group.iloc[0]
    for name in within:
        bases = bases[bases[name] == first[name]]
    same = bases.set_index("prompt")
    if not set(group.prompt) <= set(same.index) or not same.index.is_unique:
        where = ", ".join(str(first[name]) for name in within)
        called = ", ".join(map(str, (baseline or {}).values()))
        group_name = ", ".join(str(first[name]) for name in baseline or {})
        raise ValueError(
            f"{where}: the baseline {called!r} has {len(same)} prompts,"
            f" {group_name!r} {len(group)}, or others"
        )
    return same.loc[group.prompt]


def _check_numbers(group: pd.DataFrame, columns: Sequence[str]) -> None:
    for name in columns:
        if not (group[name].isna().all() or np.isfinite(group[name].astype(float)).all()):
            raise ValueError(f"{name} has a finite number in all rows of a setting, or in none")


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


def summarise_rounds(table: pd.DataFrame, by: Sequence[str] = SETTING) -> pd.DataFrame:
    """Per setting: tokens per round and acceptance rate (NaN where nothing was tried) with 95 %
    intervals over prompts, repetition, and the number of prompts.

    Raises ValueError if the table is empty or lacks a column that is needed.
    """
    wanted = {
        "tokens_per_round": Ratio("tokens", "rounds"),
        "acceptance_rate": Ratio("accepted", "tried", share=True),
        "repetition": Ratio("repeated", "tokens", ends=False),
    }
    _check_columns(table, ("repetition", "tokens"))
    return summarise(table.assign(repeated=table.repetition * table.tokens), by, wanted)


def summarise_speeds(table: pd.DataFrame, by: Sequence[str], *, plain: str) -> pd.DataFrame:
    """Per group, domain (and all of them together) and draft of a race: tokens per round,
    milliseconds per token, and the speed ÷ that of the draft `plain` on the same prompts, with 95 %
    intervals over prompts.
    """
    wanted = {
        "tokens_per_round": Ratio("tokens", "rounds"),
        "ms_per_token": Ratio("seconds", "tokens", times=1000, ends=False),
        "speed_up": Ratio("tokens", "seconds", relative=True),
    }
    within = [*by, "domain"]
    whole = pd.concat([table, table.assign(domain=ALL)])
    found = summarise(whole, [*within, "draft"], wanted, baseline={"draft": plain}, within=within)
    found.insert(len(within) + 1, "prompts", found.pop("prompts"))
    return found


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
                prompts, and the interval is of prompts that both had

    Raises ValueError as `summarise` does.
    """
    one = Ratio(numerator, denominator, relative=baseline is not None)
    if baseline is None:
        found = summarise(table, by, {"value": one})
    else:
        found = summarise(
            table, by, {"value": one}, baseline={"draft": baseline}, within=["sampling"]
        )
    return found.rename(columns={"value_low": "low", "value_high": "high"})


def without_few(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of a stored table, without their intervals (`low`, `high`, `…_low`, `…_high`) where
    fewer than 10 prompts are behind them.
    """
    ends = [name for name in map(str, rows) if name.rpartition("_")[2] in ("low", "high")]
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


def _check_columns(table: pd.DataFrame, needed: Iterable[str]) -> None:
    """Raises ValueError if the table is empty or lacks one of these columns."""
    missing = [name for name in needed if name not in table.columns]
    if missing:
        raise ValueError(
            f"the table lacks {', '.join(missing)}; `sampling` comes from `with_sampling`"
        )
    if table.empty:
        raise ValueError("the table has no rows: there is nothing to count")
