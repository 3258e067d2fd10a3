"""Cascades whose K was tuned on development prompts, as `specdec measure cascades` stored them."""

from collections.abc import Sequence

import pandas as pd

from specdec_lib.core.files import DATA
from specdec_lib.measure.cascade.record import CascadeSetting, read_matrix

TABLE = DATA / "measured" / "cascade_swi.csv"


def tuned_cascade(
    drafters: Sequence[str], domain: str, sampling: str, prices: str = "measured"
) -> CascadeSetting:
    """The setting of these drafters that was tuned for a kind of text, at a list of prices.

    sampling    "greedy" or "T = 1"
    prices      "measured", "parameters" or "reported"

    Raises ValueError if there is none.
    """
    table = pd.read_csv(TABLE)
    asked = {"drafters": " + ".join(drafters), "domain": domain, "sampling": sampling}
    asked["prices"] = prices
    for column, value in asked.items():
        if value not in set(table[column]):
            known = ", ".join(map(repr, table[column].unique()))
            raise ValueError(f"{TABLE.name} has {column} {known}, got {value!r}")
        table = table[table[column] == value]
    [one] = table.itertuples()
    matrix = read_matrix(str(one.matrix))
    return CascadeSetting(tuple(drafters), matrix, float(str(one.lenience)), bool(one.exempt))
