"""Ratios of a sweep's columns per setting against a baseline, with intervals over prompts: tokens
per second, bytes per token.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from specdec_lib.measure.intervals import bootstrap, paired_bootstrap
from specdec_lib.measure.sweep.statistics import SETTING

if TYPE_CHECKING:
    from pandas import DataFrame

BY = (*SETTING, "sampling")


def sampling_of(temperature: float, top_k: float | None, top_p: float = 1.0) -> str:
    """How a sampler is called in tables: "greedy", "T = 1, top-k 50", …"""
    if temperature == 0:
        return "greedy"
    cut = f", top-k {top_k:.0f}" if top_k is not None and top_k == top_k else ""
    return f"T = {temperature:g}{cut}" + (f", top-p {top_p:g}" if top_p < 1 else "")


def with_sampling(table: "DataFrame") -> "DataFrame":
    """The table with a column `sampling`, the sampler in words."""
    return table.assign(
        sampling=[sampling_of(row.temperature, row.top_k, row.top_p) for row in table.itertuples()]
    )


def ratios(
    table: "DataFrame", numerator: str, denominator: str, *, by: Sequence[str] = BY, seed: int = 0
) -> "DataFrame":
    """Per setting, the ratio of two columns' sums as `value`, with its 95 % interval over prompts.

    The interval's ends are `low` and `high`. A column that a setting lacks (a model it does not
    use) counts as 0.  Raises ValueError for a column the table lacks.
    """
    import pandas as pd

    _check(table, (numerator, denominator, *by))
    rows = []
    for key, group in table.groupby(list(by), sort=False, dropna=False):
        value, low, high = bootstrap(
            group[numerator].fillna(0), group[denominator].fillna(0), seed=seed
        )
        found = {"value": value, "low": low, "high": high, "prompts": len(group)}
        rows.append(dict(zip(by, key, strict=True)) | found)
    return pd.DataFrame(rows)


def relative(
    table: "DataFrame",
    numerator: str,
    denominator: str,
    *,
    baseline: str,
    inverse: bool = False,
    by: Sequence[str] = BY,
    seed: int = 0,
) -> "DataFrame":
    """Per setting, its ratio of two columns ÷ that of the draft called `baseline` under the same
    sampler, on the same prompts.

    inverse    the other way up: baseline ÷ setting

    The interval is over prompts, drawn together for both sides.  Raises ValueError unless each
    sampler has its baseline, on the same prompts.
    """
    import pandas as pd

    _check(table, (numerator, denominator, *by))
    rows = []
    for sampling, whole in table.groupby("sampling", sort=False):
        plain = whole[whole.draft == baseline].set_index("prompt")
        for key, group in whole.groupby(list(by), sort=False, dropna=False):
            own = group.set_index("prompt")
            if set(own.index) != set(plain.index):
                raise ValueError(
                    f"{sampling}: the baseline {baseline!r} has {len(plain)} prompts,"
                    f" {group.draft.iloc[0]!r} {len(own)}, or others"
                )
            base = plain.loc[own.index]
            sides = [
                [side[numerator].fillna(0), side[denominator].fillna(0)]
                for side in ((base, own) if inverse else (own, base))
            ]
            value, low, high = paired_bootstrap(*sides[0], *sides[1], seed=seed)
            rows.append(
                dict(zip(by, key, strict=True))
                | {"value": value, "low": low, "high": high, "prompts": len(own)}
            )
    return pd.DataFrame(rows)


def per_prompt(table: "DataFrame", column: str, *, baseline: str) -> "DataFrame":
    """Per setting and prompt, how many times less of a column it took per token than the draft
    called `baseline`, as `relative`.
    """
    _check(table, (column, "tokens", "sampling", "prompt"))
    cost = table.assign(cost=table[column] / table.tokens)[["sampling", "prompt", "draft", "cost"]]
    plain = cost[cost.draft == baseline].set_index(["sampling", "prompt"]).cost
    others = cost[cost.draft != baseline]
    found = plain.reindex(list(zip(others.sampling, others.prompt, strict=True))).to_numpy()
    return (
        others.assign(relative=found / others.cost)
        .drop(columns="cost")
        .rename(columns={"draft": "method"})
    )


def _check(table: "DataFrame", columns: Sequence[str]) -> None:
    missing = [column for column in columns if column not in table.columns]
    if table.empty or missing:
        raise ValueError(
            f"the table has {len(table)} rows and lacks {', '.join(missing) or 'nothing'};"
            " `sampling` comes from `with_sampling`"
        )
