"""The latency of models over rows and context: a measured table, a line through it, and the table
as theory reads it.
"""

import math
import time
from collections.abc import Sequence
from numbers import Integral
from typing import TYPE_CHECKING

import numpy as np

from specdec_lib.core.protocols import LanguageModel
from specdec_lib.measure.latency.passes import QUARTILES, time_passes
from specdec_lib.measure.race.contenders import Clock
from specdec_lib.theory import PassTable

if TYPE_CHECKING:
    from pandas import DataFrame

KEYS = ["model", "runtime", "rows", "context_tokens"]
ROWS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
CONTEXTS = (64, 256, 448)


def curves(
    models: Sequence[LanguageModel],
    rows: Sequence[Integral] = ROWS,
    contexts: Sequence[Integral] = CONTEXTS,
    *,
    repeats: Integral = 15,
    clock: Clock = time.perf_counter,
    progress: bool = True,
) -> "DataFrame":
    """Seconds of a pass, a row per model, runtime, number of rows and context: medians with
    quartiles over the repeats; see `time_passes` for the arguments.

    The columns are: model, runtime, rows, context_tokens; seconds, low_seconds, high_seconds of
    `score`; network_seconds, which the model itself counts (NaN if it counts nothing); repeats.
    """
    options = {"repeats": repeats, "clock": clock, "progress": progress}
    return medians(time_passes(models, rows, contexts, **options))


def medians(passes: "DataFrame") -> "DataFrame":
    """The table of `curves` from the passes of `time_passes`, in their order of models."""
    order = {key: place for place, key in enumerate(dict.fromkeys(_names(passes)))}
    grouped = passes.groupby(KEYS, sort=False)
    found = grouped.seconds.median().to_frame()
    for name, share in zip(("low_seconds", "high_seconds"), QUARTILES, strict=True):
        found[name] = grouped.seconds.quantile(share)
    found["network_seconds"] = grouped.network_seconds.median()
    found["repeats"] = grouped.size()
    found = found.reset_index()
    place = [order[name] for name in _names(found)]
    found = found.assign(place=place).sort_values(["place", *KEYS[2:]], ignore_index=True)
    return found.drop(columns="place")


def _names(table: "DataFrame") -> list[tuple[str, str]]:
    return list(zip(table.model, table.runtime, strict=True))


def fit_lines(table: "DataFrame") -> "DataFrame":
    """A line through each model's table: seconds = fixed_seconds + row_seconds · rows +
    context_seconds · context_tokens.

    table    of `curves`

    A row per model and runtime, with median_error and largest_error of the line as shares of what
    was measured, which is what the line is worth.
    Least squares of the relative error.  A number that never varies has slope 0.
    """
    import pandas as pd

    found = []
    for (model, runtime), group in table.groupby(["model", "runtime"], sort=False):
        seconds = group.seconds.to_numpy(float)
        columns = [
            np.ones(len(group)),
            *(group[name].to_numpy(float) for name in ("rows", "context_tokens")),
        ]
        used = [
            number for number, column in enumerate(columns) if number == 0 or np.ptp(column) > 0
        ]
        design = np.stack([columns[number] for number in used], axis=1)
        line = np.zeros(3)
        line[used] = np.linalg.lstsq(design / seconds[:, None], np.ones(len(group)), rcond=None)[0]
        errors = abs(np.stack(columns, axis=1) @ line / seconds - 1)
        slopes = dict(
            zip(("fixed_seconds", "row_seconds", "context_seconds"), line.tolist(), strict=True)
        )
        found.append(
            {"model": model, "runtime": runtime}
            | slopes
            | {"median_error": float(np.median(errors)), "largest_error": float(errors.max())}
        )
    return pd.DataFrame(found)


def tables(
    table: "DataFrame", runtime: str | None = None, *, column: str = "network_seconds"
) -> dict[str, PassTable]:
    """Per model the measured seconds as `theory` reads them.

    table      of `curves`
    runtime    which one; None where every model has only one
    column     "network_seconds", or "seconds" of the whole `score`

    Raises ValueError if no row is of that runtime, or a model has several, a place of its grid is
    missing, or it counts no seconds.
    """
    rows = table if runtime is None else table[table.runtime.fillna("") == runtime]
    if rows.empty:
        raise ValueError(
            f"no pass was timed with runtime {runtime!r}; there are"
            f" {sorted(set(table.runtime.fillna('')))}"
        )
    found = {}
    for model, group in rows.groupby("model", sort=False):
        grid = group.pivot_table(
            index="context_tokens", columns="rows", values=column, aggfunc="first", dropna=False
        )
        if group.duplicated(["rows", "context_tokens"]).any() or not math.isfinite(
            grid.to_numpy(float).sum()
        ):
            raise ValueError(
                f"{model} needs one value of {column} per number of rows and context, got"
                f" {len(group)} for {grid.size} places"
            )
        found[str(model)] = PassTable(
            tuple(map(int, grid.columns)),
            tuple(map(int, grid.index)),
            tuple(map(tuple, grid.to_numpy(float).tolist())),
        )
    return found
