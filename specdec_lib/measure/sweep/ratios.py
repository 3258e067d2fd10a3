"""Ratios of a sweep's columns per setting, alone or against a baseline, with intervals over
prompts: tokens per round, tokens per second, bytes per token.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from specdec_lib.measure.intervals import bootstrap, named_interval, paired_bootstrap
from specdec_lib.measure.sweep.repetition import LOOPING

if TYPE_CHECKING:
    from pandas import DataFrame

SETTING = ("draft", "temperature", "top_k", "top_p", "rule")
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


def summarise(table: "DataFrame") -> "DataFrame":
    """Per setting: tokens per round and acceptance rate with 95 % intervals over prompts,
    repetition, and tokens per round without loops.

    A prompt loops where 0.3 or more of its tokens repeat; the others are counted in `prompts_kept`,
    their tokens per round are `tokens_per_round_kept`.  Where nothing was tried, or no prompt is
    left, the ratio and its interval are NaN.
    """
    import pandas as pd

    rows = []
    for key, group in table.groupby(list(SETTING), sort=False, dropna=False):
        kept = group[group.repetition < LOOPING]
        counts = {
            "repetition": float(np.average(group.repetition, weights=group.tokens)),
            "prompts": len(group),
            "prompts_kept": len(kept),
        }
        rows.append(
            dict(zip(SETTING, key, strict=True))
            | named_interval("tokens_per_round", bootstrap(group.tokens, group.rounds))
            | named_interval("acceptance_rate", bootstrap(group.accepted, group.tried))
            | counts
            | named_interval("tokens_per_round_kept", bootstrap(kept.tokens, kept.rounds))
        )
    return pd.DataFrame(rows)


def ratios(
    table: "DataFrame", numerator: str, denominator: str, *, by: Sequence[str] = BY
) -> "DataFrame":
    """Per setting, the ratio of two columns' sums as `value`, with its 95 % interval over prompts:
    `by`, value, low, high, prompts.

    A column that a setting lacks (a model it does not use) counts as 0.
    """
    import pandas as pd

    _check(table, (numerator, denominator, *by))
    table, rows = table.fillna({numerator: 0, denominator: 0}), []
    for key, group in table.groupby(list(by), sort=False, dropna=False):
        found = bootstrap(group[numerator], group[denominator])
        rows.append((*key, *found, len(group)))
    return pd.DataFrame(rows, columns=[*by, "value", "low", "high", "prompts"])


def relative(
    table: "DataFrame",
    numerator: str,
    denominator: str,
    *,
    baseline: str,
    by: Sequence[str] = BY,
) -> "DataFrame":
    """`ratios` ÷ that of the draft called `baseline` under the same sampler, on the same prompts.

    The interval is over prompts, drawn together for both sides.  Raises ValueError unless each
    sampler has its baseline, on the same prompts.
    """
    import pandas as pd

    _check(table, (numerator, denominator, *by))
    table, rows = table.fillna({numerator: 0, denominator: 0}), []
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
            sides = (own[numerator], own[denominator], base[numerator], base[denominator])
            rows.append((*key, *paired_bootstrap(*sides), len(own)))
    return pd.DataFrame(rows, columns=[*by, "value", "low", "high", "prompts"])


def per_prompt(table: "DataFrame", column: str, *, baseline: str) -> "DataFrame":
    """Per setting and prompt, how many times less of a column it took per token than the draft
    called `baseline`: sampling, prompt, method, relative.
    """
    _check(table, (column, "tokens", "sampling", "prompt"))
    cost = table.assign(cost=table[column] / table.tokens)[["sampling", "prompt", "draft", "cost"]]
    plain = cost[cost.draft == baseline].set_index(["sampling", "prompt"]).cost
    others = cost[cost.draft != baseline]
    found = plain.reindex(list(zip(others.sampling, others.prompt, strict=True))).to_numpy()
    compared = others.assign(relative=found / others.cost).drop(columns="cost")
    return compared.rename(columns={"draft": "method"})


def _check(table: "DataFrame", columns: Sequence[str]) -> None:
    missing = [column for column in columns if column not in table.columns]
    if table.empty or missing:
        raise ValueError(
            f"the table has {len(table)} rows and lacks {', '.join(missing) or 'nothing'};"
            " `sampling` comes from `with_sampling`"
        )
