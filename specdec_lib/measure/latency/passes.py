"""Seconds per pass as a function of rows and context: measured, as medians, as a line and as
theory reads them; and what bounds a pass: what the machine moves and computes at best.

Every model takes its turn in every repeat. A pass reads on from where the model's last one ended.
"""

import math
import time
import timeit
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import torch
from tqdm.auto import tqdm

from specdec_lib.core.context import Context
from specdec_lib.core.protocols import LanguageModel, StateReader, Usage
from specdec_lib.core.tree import TokenTree
from specdec_lib.measure.bytes_moved import model_shape
from specdec_lib.measure.machine import machine_name
from specdec_lib.models.fast.model import FastModel
from specdec_lib.models.loading import LoadedModel
from specdec_lib.theory import Machine, ModelShape, PassTable, pass_flops, roofline_seconds

ROWS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
CONTEXTS = (64, 256, 1024)
MODEL = ["model", "runtime"]
PLACE = ["rows", "context_tokens"]
COPIED = 64 * 2**20  # numbers: 256 MB in float32, far more than any cache
REPEATS = 7
MULTIPLIED = 1536  # rows and columns of the matrices that are multiplied


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
    rows        of a pass: the context's last token and a chain of guesses, one row fewer; of a
                model that reads its target, guesses beside each other below a token that was read
    contexts    tokens read before the first pass of a repeat; each pass adds one

    In each repeat every model reads each context anew and makes one pass, both untimed, and then
    one over each number of rows; which goes first changes. A first repeat is not counted.
    """
    names = [(model.name, model.runtime) for model in models]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"timing needs models of different names or runtimes, got {names}")
    if not rows or not contexts or min(*rows, *contexts, repeats) < 1:
        raise ValueError(
            f"timing needs rows, contexts and repeats from 1, got rows {[*rows]},"
            f" contexts {[*contexts]}, repeats={repeats}"
        )
    turns = tqdm(range(-1, repeats), desc="passes", disable=not progress, mininterval=1)
    table = pd.DataFrame(one for turn in turns for one in one_repeat(models, rows, contexts, turn))
    return table[table.repeat >= 0].reset_index(drop=True)


def one_repeat(
    models: Sequence[LanguageModel], rows: Sequence[int], contexts: Sequence[int], repeat: int
) -> Iterator[dict[str, object]]:
    """The rows of one repeat of `time_passes`; its number decides what goes first. The guesses are
    not how the context goes on: none is known already when it does.
    """
    for tokens, model in _rotated(list(product(contexts, models)), repeat):
        labels = {"model": model.name, "runtime": model.runtime, "context_tokens": tokens}
        counts = [1, *_rotated(list(rows), repeat)]  # the first: the caches are the last pass's
        size = tokens + len(counts) + max(counts) + 1
        text = [place % model.vocabulary for place in range(size)]
        model.forget()  # an earlier run may have read the same
        context = Context.of(text[:tokens])
        model.score(context, TokenTree.rooted(context))
        for length, count in enumerate(counts, tokens + 1):
            context = context.extended(text[length - 1 : length])
            guesses = text[length + 1 : length + count + 1]
            tree = _pass_to_time(model, context, guesses)
            before = model.usage
            started = time.perf_counter()
            float(model.score(context, tree)[-1, 0])  # waits for a device that runs ahead
            seconds = time.perf_counter() - started
            network = math.nan if before is None else _seconds_of_one(model, before, count)
            if length > tokens + 1:
                timed = {"rows": count, "seconds": seconds, "network_seconds": network}
                yield labels | {"repeat": repeat} | timed


def _pass_to_time(model: LanguageModel, context: Context, guesses: list[int]) -> TokenTree:
    """A tree of which as many rows as there are guesses are not read yet, in one pass: the root and
    all but the last of them as a chain.

    Where a model reads the target's hidden states, the target has read the context before, as it
    has in decoding, and the rows of one pass are those of one level: the root alone, or all guesses
    below a root that was read.
    """
    if not isinstance(model, StateReader) or model.target is None:
        return TokenTree.of_paths(context, [guesses[:-1]])
    model.target.states(context, len(context) - 1)
    root = TokenTree.rooted(context)
    if len(guesses) == 1:
        return root
    model.score(context, root)
    return TokenTree.of_paths(context, [[guess] for guess in guesses])


def _seconds_of_one(model: LanguageModel, before: Usage, rows: int) -> float:
    """What the model counts as the seconds of the pass that it just ran over so many rows."""
    assert model.usage is not None  # it counted before
    spent = model.usage - before
    if (spent.passes, spent.rows) != (1, rows):
        raise ValueError(
            f"one pass over {rows} rows was to be timed, {model.name} ran {spent.passes} over"
            f" {spent.rows} in all"
        )
    return spent.seconds


def _rotated(turns: list, by: int) -> list:
    first = by % len(turns)
    return turns[first:] + turns[:first]


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
    rows = table if runtime is None else table[table.runtime == runtime]
    if rows.empty:
        known = sorted(set(table.runtime))
        raise ValueError(f"no pass was timed with runtime {runtime!r}; there are {known}")
    found = {}
    for model, group in rows.groupby("model", sort=False):
        size = group.context_tokens.nunique() * group["rows"].nunique()
        twice = group.duplicated(PLACE).any()
        if twice or len(group) < size or not np.isfinite(group[column].astype(float)).all():
            raise ValueError(
                f"{model} needs one value of {column} per place, got {len(group)} for {size} places"
            )
        grid = group.pivot(index="context_tokens", columns="rows", values=column)
        places = (tuple(map(int, grid.columns)), tuple(map(int, grid.index)))
        seconds = grid.to_numpy(float).tolist()
        found[str(model)] = PassTable(*places, tuple(map(tuple, seconds)))
    return found


def measure_machine() -> Machine:
    """This machine, with the threads that torch has now: bytes read and written per second by the
    fastest copy of a large tensor, operations per second of the fastest product of two matrices in
    float32.
    """
    source = torch.ones(COPIED)
    copied = partial(torch.empty_like(source).copy_, source)
    matrix = torch.ones(MULTIPLIED, MULTIPLIED)
    multiplied = partial(torch.matmul, matrix, matrix, out=torch.empty_like(matrix))
    moved = 2 * source.nbytes / _least_seconds(copied)
    computed = 2 * MULTIPLIED**3 / _least_seconds(multiplied)
    return Machine(machine_name(), moved, computed)


def _least_seconds(run: Callable[[], object]) -> float:
    run()
    return min(timeit.repeat(run, timer=time.perf_counter, repeat=REPEATS, number=1))


def with_reached(machine: Machine, table: pd.DataFrame, models: Sequence[LoadedModel]) -> Machine:
    """The machine with the operations per second of its quickest float32 pass in the table of
    `curves`, where those are more than the matrix product's: a library need not use all that a
    processor has.
    """
    shapes, packed = _shapes(models)
    most = float(machine.flops_per_second)
    columns = [table[name] for name in (*MODEL, *PLACE, "seconds")]
    for model, runtime, rows, context, seconds in zip(*columns, strict=True):
        if (model, runtime) not in packed:
            done = pass_flops(shapes[model, runtime], int(rows), int(context))
            most = max(most, done / float(seconds))
    return replace(machine, flops_per_second=most)


def with_roofline(
    table: pd.DataFrame, models: Sequence[LoadedModel], machine: Machine
) -> pd.DataFrame:
    """The table of `curves` with `roofline_seconds`: weights, keys and values, and activations
    over the bandwidth, or operations over the peak; packed weights have fewer bytes, and only those
    bound them: what a machine multiplies in whole numbers at best is not measured.
    """
    shapes, packed = _shapes(models)
    for model, runtime in table[MODEL].drop_duplicates().itertuples(index=False):
        if (model, runtime) not in shapes:
            known = ", ".join(f"{name} ({how})" for name, how in shapes) or "none"
            raise ValueError(f"{model} ({runtime}) was timed and is not among the models: {known}")
    places = zip(table.model, table.runtime, table.rows, table.context_tokens, strict=True)
    endless = replace(machine, flops_per_second=math.inf)
    seconds = [
        roofline_seconds(
            shapes[model, runtime],
            endless if (model, runtime) in packed else machine,
            rows=rows,
            context=context,
        )
        for model, runtime, rows, context in places
    ]
    return table.assign(roofline_seconds=seconds)


def _shapes(
    models: Sequence[LoadedModel],
) -> tuple[dict[tuple[str, str], ModelShape], set[tuple[str, str]]]:
    """The shape of each model by name and runtime, and which of them have packed weights."""
    shapes = {}
    packed = set()
    for model in models:
        size = float(model.model.dtype.itemsize)
        if isinstance(model, FastModel):  # its weights are packed
            width = model.model.config.get_text_config().hidden_size
            size = model.weights.head[0].nbytes / (model.weights.columns * width)
        if isinstance(model, FastModel) and model.edition == "int8":
            packed.add((model.name, model.runtime))
        shapes[model.name, model.runtime] = model_shape(model, bytes_per_number=size)
    return shapes, packed
