"""The latency of models over rows and context: a measured table, a line through it, and the table
as theory reads it.
"""

import math

import numpy as np
import pandas as pd

from specdec_lib.measure.latency.passes import QUARTILES
from specdec_lib.theory import PassTable

MODEL = ["model", "runtime"]
PLACE = ["rows", "context_tokens"]


def curves(passes: pd.DataFrame) -> pd.DataFrame:
    """The passes of `time_passes` as medians: model, runtime, rows, context_tokens; seconds,
    low_seconds, high_seconds of `score` (median and quartiles); network_seconds, which the model
    itself counts (or NaN); repeats.
    """
    low, high = QUARTILES
    medians = [
        group.groupby([*MODEL, *PLACE]).agg(
            seconds=("seconds", "median"),
            low_seconds=("seconds", lambda seconds: seconds.quantile(low)),
            high_seconds=("seconds", lambda seconds: seconds.quantile(high)),
            network_seconds=("network_seconds", "median"),
            repeats=("seconds", "size"),
        )
        for _, group in passes.groupby(MODEL, sort=False)
    ]
    return pd.concat(medians).reset_index()


def fit_lines(table: pd.DataFrame) -> pd.DataFrame:
    """A line through the table of `curves`, per model and runtime: seconds = fixed_seconds +
    row_seconds · rows + context_seconds · context_tokens; median_error and largest_error are
    shares.

    Least squares of the relative error. A number that never varies has slope 0.
    """
    found = []
    for key, group in table.groupby(MODEL, sort=False):
        seconds = group.seconds.to_numpy(float)
        design = np.column_stack([np.ones(len(group)), group[PLACE].to_numpy(float)])
        used = [0, *(1 + np.flatnonzero(np.ptp(design[:, 1:], axis=0) > 0))]
        line = np.zeros(3)
        scaled = design[:, used] / seconds[:, None]
        line[used] = np.linalg.lstsq(scaled, np.ones(len(group)), rcond=None)[0]
        errors = abs(design @ line / seconds - 1)
        found.append((*key, *line.tolist(), float(np.median(errors)), float(errors.max())))
    slopes = ["fixed_seconds", "row_seconds", "context_seconds"]
    return pd.DataFrame(found, columns=[*MODEL, *slopes, "median_error", "largest_error"])


def pass_tables(
    table: pd.DataFrame, runtime: str | None = None, *, column: str = "network_seconds"
) -> dict[str, PassTable]:
    """Per model the seconds of `curves` as `theory` reads them.

    runtime    which one; None where every model has only one
    column     "network_seconds", or "seconds" of the whole `score`

    Raises ValueError unless each model has one number of seconds at each place of its grid.
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
        seconds = grid.to_numpy(float)
        if group.duplicated(PLACE).any() or not math.isfinite(seconds.sum()):
            raise ValueError(
                f"{model} needs one value of {column} per number of rows and context, got"
                f" {len(group)} for {grid.size} places"
            )
        places = (tuple(map(int, grid.columns)), tuple(map(int, grid.index)))
        found[str(model)] = PassTable(*places, tuple(map(tuple, seconds.tolist())))
    return found
