"""What was measured of a claim."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import pandas as pd

from specdec_lib.core.files import DATA


@dataclass(frozen=True)
class Evidence:
    """Our number for a claim, with its 95 % interval and the prompts behind it; NaN is none.

    facts    by name, what the claim's reason says of it
    """

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    prompts: float = math.nan
    facts: Mapping[str, str] = field(default_factory=dict)


def evidence_of(row: pd.Series, facts: Mapping[str, str] | None = None) -> Evidence:
    """The evidence of a row of `ratios`."""
    value, low, high, prompts = map(float, row[["value", "low", "high", "prompts"]])
    return Evidence(value, low, high, prompts, facts or {})


def row_of(table: pd.DataFrame, **labels: str) -> pd.Series:
    """The first row whose columns have these values; raises ValueError if there is none."""
    for column, value in labels.items():
        table = table[table[column] == value]
    if table.empty:
        raise ValueError(f"no row has {labels}; `specdec measure` makes the stored tables")
    return table.iloc[0]


def read_measured(pattern: str) -> pd.DataFrame:
    """The stored tables of `data/measured` whose names fit a pattern, one below the other."""
    paths = sorted((DATA / "measured").glob(f"{pattern}.csv"))
    if not paths:
        raise ValueError(f"there is no {pattern}.csv in {DATA / 'measured'}")
    return pd.concat(map(pd.read_csv, paths), ignore_index=True)
