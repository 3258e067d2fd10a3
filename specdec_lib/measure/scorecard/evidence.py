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


def read_measured(pattern: str) -> pd.DataFrame:
    """The stored tables of `data/measured` whose names fit a pattern, one below the other."""
    paths = sorted((DATA / "measured").glob(f"{pattern}.csv"))
    if not paths:
        raise ValueError(f"there is no {pattern}.csv in {DATA / 'measured'}")
    return pd.concat(map(pd.read_csv, paths), ignore_index=True)
