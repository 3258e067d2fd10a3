"""The latency of models over rows and context: a measured table, a line through it, and the table
as theory reads it.
"""

import math
import time
from collections.abc import Iterator, Sequence
from itertools import product
from numbers import Integral
from typing import TYPE_CHECKING

import numpy as np

from specdec_lib.core.protocols import LanguageModel
from specdec_lib.measure.latency.passes import QUARTILES, Clock, Reader
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
    quartiles over the repeats.

    models      may share a name if their `runtime`, in words, differs ("" where a model does not
                say)
    rows        of a pass: the context's last token and a chain of guesses below it
    contexts    tokens read before the passes; within a repeat they grow by one with each pass, from
                the number given on

    The columns are: model, runtime, rows, context_tokens; seconds, low_seconds, high_seconds of
    `score`; network_seconds, what the model itself counts as its pass (NaN if it counts nothing);
    repeats. In each repeat every model reads each context anew, untimed, makes one pass that is not
    timed, and then one over each number of rows; who goes first, and with which number, changes
    from repeat to repeat. One more repeat comes before all and is not counted.
    Raises ValueError as `pass_seconds` does.
    """
    from tqdm.auto import tqdm

    names = [(model.name, runtime_of(model)) for model in models]
    if (
        not models
        or len(set(names)) < len(names)
        or not rows
        or not contexts
        or min((*rows, *contexts, repeats)) < 1
    ):
        raise ValueError(
            "timing needs models of different names or runtimes and at least 1 row, 1 token of"
            " context and 1 repeat,"
            f" got models {names}, rows {list(rows)}, contexts {list(contexts)}, repeats={repeats}"
        )
    every = tqdm(range(-1, int(repeats)), desc="curves", disable=not progress, mininterval=1)
    return medians(
        [
            one
            for repeat in every
            for one in timed_once(models, rows, contexts, repeat, clock=clock)
            if repeat >= 0
        ]
    )


def timed_once(
    models: Sequence[LanguageModel],
    rows: Sequence[Integral],
    contexts: Sequence[Integral],
    repeat: int,
    *,
    clock: Clock = time.perf_counter,
) -> list[dict[str, object]]:
    """One repeat of `curves`, to be timed in turn with something else; `medians` of many repeats
    are the curve.

    repeat    who goes first
    """
    turns = _turned(list(product(contexts, models)), repeat)
    return [
        one for context, model in turns for one in _block(model, rows, int(context), repeat, clock)
    ]


def runtime_of(model: LanguageModel) -> str:
    """What ran, in the model's own words; "" if it has none."""
    return model.runtime


def _turned(turns: list, repeat: int) -> list:
    first = repeat % len(turns)
    return turns[first:] + turns[:first]


def _block(
    model: LanguageModel, rows: Sequence[Integral], context: int, repeat: int, clock: Clock
) -> Iterator[dict[str, object]]:
    """One pass over each number of rows, on from a context that was just read."""
    reader = Reader(model, clock, context)
    reader.start(len(rows) + 1, max(rows))
    reader.run(1)  # the caches are the last pass's
    for count in _turned(list(map(int, rows)), repeat):
        yield reader.run(count) | {"runtime": runtime_of(model), "context_tokens": context}


def medians(timed: Sequence[dict[str, object]]) -> "DataFrame":
    """The table of `curves` from the passes of `timed_once`."""
    import pandas as pd

    grouped = pd.DataFrame(timed).groupby(KEYS, sort=False)
    found = grouped.seconds.median().to_frame()
    found["low_seconds"], found["high_seconds"] = (
        grouped.seconds.quantile(share) for share in QUARTILES
    )
    found["network_seconds"] = grouped.network_seconds.median()
    found["repeats"] = grouped.size()
    return found.reset_index().sort_values(KEYS, kind="stable", key=_order, ignore_index=True)


def _order(column: "DataFrame") -> "DataFrame":
    """Numbers by size, all else as it first came."""
    import pandas as pd

    return (
        column
        if pd.api.types.is_numeric_dtype(column)
        else pd.Series(pd.factorize(column)[0], column.index)
    )


def fitted(table: "DataFrame") -> "DataFrame":
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
