"""Seconds per pass as a function of rows and context: measured, as medians, as a line and as
theory reads them; and each model's price against the target.

Every model takes its turn in every repeat. A pass reads on from where the model's last one ended.
"""

import math
import time
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from specdec_lib.core.context import Context
from specdec_lib.core.protocols import LanguageModel
from specdec_lib.core.tree import TokenTree
from specdec_lib.theory import PassTable

ROWS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
CONTEXTS = (64, 256, 1024)
MODEL, PLACE = ["model", "runtime"], ["rows", "context_tokens"]


def prices(passes: pd.DataFrame) -> pd.DataFrame:
    """Passes over one row and one context as the columns of `curves`, the target first, and their
    price: the median ÷ the target's.
    """
    table = curves(passes)[["model", "seconds", "low_seconds", "high_seconds", "repeats"]]
    return table.assign(price=table.seconds / table.seconds.iloc[0])


def time_passes(
    models: Sequence[LanguageModel],
    rows: Sequence[int] = (1,),
    contexts: Sequence[int] = (256,),
    *,
    repeats: int = 51,
    progress: bool = True,
) -> pd.DataFrame:
    """Every timed pass as a row: model, runtime, rows, context_tokens, repeat, seconds of `score`,
    network_seconds, which the model itself counts as its pass (NaN if it counts nothing).

    models      may share a name if their `runtime` differs; an encoder-decoder is not timed here
    rows        of a pass: the context's last token and a chain of guesses, one row fewer
    contexts    tokens read before the first pass of a repeat; each pass adds one

    In each repeat every model reads each context anew and makes one pass, both untimed, and then
    one over each number of rows; which goes first changes. A first repeat is not counted.
    """
    names = [(model.name, model.runtime) for model in models]
    counts = (*rows, *contexts, repeats)
    if not models or len({*names}) < len(names) or not rows or not contexts or min(counts) < 1:
        wanted = "models of different names or runtimes, and rows, contexts and repeats from 1"
        got = f"models {names}, rows {[*rows]}, contexts {[*contexts]}, repeats={repeats}"
        raise ValueError(f"timing needs {wanted}, got {got}")
    turns = tqdm(range(-1, repeats), desc="passes", disable=not progress, mininterval=1)
    found = [one for turn in turns for one in one_repeat(models, rows, contexts, turn)]
    table = pd.DataFrame(found)
    return table[table.repeat >= 0].reset_index(drop=True)


def one_repeat(
    models: Sequence[LanguageModel], rows: Sequence[int], contexts: Sequence[int], repeat: int
) -> Iterator[dict[str, object]]:
    """The rows of one repeat of `time_passes`; its number decides what goes first."""
    for context, model in _rotated(list(product(contexts, models)), repeat):
        counts = [1, *_rotated(list(rows), repeat)]  # the first: the caches are the last pass's
        timed = zip(counts, _passes(model, context, counts), strict=True)
        labels = {"runtime": model.runtime, "context_tokens": context, "repeat": repeat}
        for count, seconds in list(timed)[1:]:
            yield {"model": model.name, "rows": count} | labels | seconds


def _rotated(turns: list, by: int) -> list:
    first = by % len(turns)
    return turns[first:] + turns[:first]


def _passes(model: LanguageModel, prompt: int, counts: Sequence[int]) -> Iterator[dict[str, float]]:
    """The seconds of passes over so many rows, each one token further after a prompt of so many.
    The guesses are not how the context goes on: none is known already when it does.
    """
    positions = prompt + len(counts) + max(counts) - 1
    if model.max_positions < positions or model.vocabulary < 2:
        has = f"{model.max_positions} positions and {model.vocabulary} tokens"
        raise ValueError(f"{model.name} has {has}; these passes need {positions} and 2")
    text = [place % model.vocabulary for place in range(positions + 1)]
    model.forget()  # an earlier run may have read the same
    context = Context.of(text[:prompt])
    model.score(context, TokenTree.rooted(context))
    for length, rows in enumerate(counts, prompt + 1):
        context = context.extended(text[length - 1 : length])
        tree = TokenTree.of_paths(context, [text[length + 1 : length + rows]])
        before, started = model.usage, time.perf_counter()
        float(model.score(context, tree)[-1, 0])  # waits for a device that runs ahead
        seconds, network = time.perf_counter() - started, math.nan
        if before is not None:
            spent = model.usage - before
            network = spent.seconds
            if (spent.passes, spent.rows) != (1, rows):
                ran = f"{model.name} ran {spent.passes} over {spent.rows} in all"
                raise ValueError(f"one pass over {rows} rows was to be timed, {ran}")
        yield {"seconds": seconds, "network_seconds": network}


def curves(passes: pd.DataFrame) -> pd.DataFrame:
    """The passes of `time_passes` as medians: model, runtime, rows, context_tokens; seconds,
    low_seconds, high_seconds of `score` (median and quartiles), network_seconds, repeats.
    """
    medians = [
        group.groupby([*MODEL, *PLACE]).agg(
            seconds=("seconds", "median"),
            low_seconds=("seconds", lambda seconds: seconds.quantile(0.25)),
            high_seconds=("seconds", lambda seconds: seconds.quantile(0.75)),
            network_seconds=("network_seconds", "median"),
            repeats=("seconds", "size"),
        )
        for _, group in passes.groupby(MODEL, sort=False)
    ]
    return pd.concat(medians).reset_index()


def fit_lines(table: pd.DataFrame) -> pd.DataFrame:
    """Per model and runtime a line by least squares of the relative error: seconds = fixed_seconds
    + row_seconds · rows + context_seconds · context_tokens; median_error and largest_error are
    shares.
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

    Raises ValueError unless each model has one number of seconds at each place of its grid.
    """
    rows = table if runtime is None else table[table.runtime.fillna("") == runtime]
    if rows.empty:
        known = sorted(set(table.runtime.fillna("")))
        raise ValueError(f"no pass was timed with runtime {runtime!r}; there are {known}")
    found = {}
    for model, group in rows.groupby("model", sort=False):
        axes = {"index": "context_tokens", "columns": "rows", "values": column}
        grid = group.pivot_table(**axes, aggfunc="first", dropna=False)
        seconds = grid.to_numpy(float)
        if group.duplicated(PLACE).any() or not math.isfinite(seconds.sum()):
            got = f"{len(group)} for {grid.size} places"
            raise ValueError(f"{model} needs one value of {column} per place, got {got}")
        places = (tuple(map(int, grid.columns)), tuple(map(int, grid.index)))
        found[str(model)] = PassTable(*places, tuple(map(tuple, seconds.tolist())))
    return found
