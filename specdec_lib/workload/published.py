"""The papers' published numbers, from data/paper_numbers.json, the only place that holds them."""

import functools
import json
import math
from collections.abc import Mapping
from itertools import product
from typing import TYPE_CHECKING

from specdec_lib.core.files import DATA

if TYPE_CHECKING:
    from pandas import DataFrame

PRICES = ("ms", "pw")  # names of price lists


@functools.cache
def _items() -> dict:
    return json.loads((DATA / "paper_numbers.json").read_text(encoding="utf-8"))["items"]


def published(item: str) -> "DataFrame":
    """The rows of a table or figure, such as "staged.table1"; raises ValueError for others."""
    import pandas as pd

    if (found := _items().get(item)) is None:
        raise ValueError(f"published items are {', '.join(_items())}; got {item!r}")
    return pd.DataFrame(found["rows"], columns=found["columns"])


def number(item: str, key: str, column: str | None = None) -> float:
    """The number in the row whose first column is `key`, in `column` (by default the second).

    Raises ValueError unless there are one such row and such a column.
    """
    table = published(item)
    first, *columns = table.columns
    row = table[table[first] == key]
    if len(row) != 1:
        known = ", ".join(map(repr, table[first]))
        raise ValueError(f"{item} needs one row with {first} {key!r}, has {len(row)} in: {known}")
    if column is not None and column not in columns:
        raise ValueError(f"{item} has the columns {', '.join(columns)}; got {column!r}")
    return float(row.iloc[0][columns[0] if column is None else column])


def price_list(name: str) -> dict[str, float]:
    """The cascade paper's price of a pass by model: "ms" from parameter counts, "pw" from times in
    previous work. As in its code, llama-7b under "ms" is ten times too dear (7000 is right).

    Raises ValueError for another name.
    """
    if name not in PRICES:
        raise ValueError(f"price lists are {', '.join(PRICES)}; got {name!r}")
    table = published("cascade.text.prices").set_index("model")
    return {str(model): float(price) for model, price in table[name].dropna().items()}


def published_beside(
    item: str, ours: "DataFrame", *, methods: Mapping[str, str], samplings: Mapping[str, str]
) -> "DataFrame":
    """A published table of one number per sampling and method, with ours: `sampling`, `method`,
    `paper`, `ours`, `ours_low`, `ours_high`, `prompts`.

    ours         a row per draft and sampling: `draft`, `sampling`, `value`, `low`, `high` …
    methods      the paper's column (maybe one it has not) to our draft's name
    samplings    the paper's word for the sampler to ours
    """
    import pandas as pd

    table = published(item).set_index("sampling")
    rows = []
    for (theirs, sampling), (method, draft) in product(samplings.items(), methods.items()):
        found = ours[(ours.draft == draft) & (ours.sampling == sampling)]
        if len(found) != 1:
            raise ValueError(
                f"one row of ours is needed for {draft!r}, {sampling!r}, got {len(found)}"
            )
        if theirs not in table.index:
            raise ValueError(f"{item} has the samplings {', '.join(table.index)}; got {theirs!r}")
        paper = float(table[method][theirs]) if method in table.columns else math.nan
        rows.append((sampling, method, paper, *found.iloc[0][["value", "low", "high", "prompts"]]))
    columns = ["sampling", "method", "paper", "ours", "ours_low", "ours_high", "prompts"]
    return pd.DataFrame(rows, columns=columns)
