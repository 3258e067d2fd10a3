"""Seconds per pass as a function of rows and context, and each model's price against the target.

Every model takes its turn in every repeat, so that a machine that slows down slows all of them. A
pass reads on from where the model's last one ended, as in decoding: it computes its rows and
nothing else, which is checked for every model that counts.
"""

import math
import time
from collections.abc import Iterator, Sequence
from itertools import product

import pandas as pd
from tqdm.auto import tqdm

from specdec_lib.core.context import Context
from specdec_lib.core.protocols import LanguageModel
from specdec_lib.core.tree import ROOT, TokenTree
from specdec_lib.measure.race.contenders import Clock

QUARTILES = (0.25, 0.75)
ROWS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
CONTEXTS = (64, 256, 1024)


def prices(passes: pd.DataFrame) -> pd.DataFrame:
    """What a pass costs, from passes over one row and one context: a row per model, target first,
    with `seconds` (the median), `price` (÷ the target's) and quartiles.

    `paired_price` is the median of the ratios of each repeat, `low_price` and `high_price` their
    quartiles: a `price` far from it comes from a busy machine, and is to be measured anew.
    """
    low, high = QUARTILES
    seconds = passes.pivot(index="repeat", columns="model", values="seconds")
    seconds = seconds[list(dict.fromkeys(passes.model))]
    ratios = seconds.div(seconds.iloc[:, 0], axis=0)
    medians = seconds.median()
    found = {
        "seconds": medians,
        "low_seconds": seconds.quantile(low),
        "high_seconds": seconds.quantile(high),
        "price": medians / medians.iloc[0],
        "paired_price": ratios.median(),
        "low_price": ratios.quantile(low),
        "high_price": ratios.quantile(high),
        "repeats": len(seconds),
    }
    return pd.DataFrame(found).reset_index()


def time_passes(
    models: Sequence[LanguageModel],
    rows: Sequence[int] = (1,),
    contexts: Sequence[int] = (256,),
    *,
    repeats: int = 51,
    clock: Clock = time.perf_counter,
    progress: bool = True,
) -> pd.DataFrame:
    """Every timed pass as a row: model, runtime, rows, context_tokens, repeat, seconds of `score`,
    network_seconds, which the model itself counts as its pass (NaN if it counts nothing).

    models      may share a name if their `runtime` differs; an encoder-decoder is not timed here
    rows        of a pass: the context's last token and a chain of guesses, one row fewer
    contexts    tokens read before the first pass of a repeat; each pass adds one

    In each repeat every model reads each context anew and makes one pass, both untimed, and then
    one over each number of rows; which goes first changes. A first repeat is not counted.
    Raises ValueError if there is nothing to time, a model is too small, or one that counts ran
    anything but one pass over its rows.
    """
    names = [(model.name, model.runtime) for model in models]
    counts = (*rows, *contexts, repeats)
    if not models or len({*names}) < len(names) or not rows or not contexts or min(counts) < 1:
        raise ValueError(
            "timing needs models of different names or runtimes and at least 1 row, 1 token of"
            f" context and 1 repeat, got models {names}, rows {list(rows)}, contexts"
            f" {list(contexts)}, repeats={repeats}"
        )
    turns = tqdm(range(-1, repeats), desc="passes", disable=not progress, mininterval=1)
    found = [one for turn in turns for one in one_repeat(models, rows, contexts, turn, clock=clock)]
    table = pd.DataFrame(found)
    return table[table.repeat >= 0].reset_index(drop=True)


def one_repeat(
    models: Sequence[LanguageModel],
    rows: Sequence[int],
    contexts: Sequence[int],
    repeat: int,
    *,
    clock: Clock = time.perf_counter,
) -> Iterator[dict[str, object]]:
    """The rows of one repeat of `time_passes`; its number decides what goes first."""
    for context, model in _rotated(list(product(contexts, models)), repeat):
        counts = [1, *_rotated(list(rows), repeat)]  # the first: the caches are the last pass's
        timed = zip(counts, _passes(model, context, counts, clock), strict=True)
        labels = {"runtime": model.runtime, "context_tokens": context, "repeat": repeat}
        for count, seconds in list(timed)[1:]:
            yield {"model": model.name, "rows": count} | labels | seconds


def _rotated(turns: list, by: int) -> list:
    first = by % len(turns)
    return turns[first:] + turns[:first]


def _passes(
    model: LanguageModel, prompt: int, counts: Sequence[int], clock: Clock
) -> Iterator[dict[str, float]]:
    """The seconds of passes over so many rows, each one token further after a prompt of so many.

    A pass reads the next token and a chain of guesses below it, none of which is how the context
    goes on: they are not known already when it does.
    """
    positions = prompt + len(counts) + max(counts) - 1
    if model.max_positions < positions or model.vocabulary < 2:
        raise ValueError(
            f"{model.name} has {model.max_positions} positions and {model.vocabulary} tokens; these"
            f" passes need {positions} positions and 2 tokens"
        )
    text = [place % model.vocabulary for place in range(positions + 1)]
    model.forget()  # an earlier run may have read the same
    context = Context.of(text[:prompt])
    model.score(context, TokenTree.rooted(context))
    for length, rows in enumerate(counts, prompt + 1):
        context, chain = context.extended(text[length - 1 : length]), range(ROOT, rows - 1)
        guesses, scores = text[length + 1 : length + rows], (1.0,) * (rows - 1)
        tree = TokenTree.rooted(context).grown(guesses, chain, source="made up", scores=scores)
        before, started = model.usage, clock()
        float(model.score(context, tree)[-1, 0])  # waits for a device that runs ahead
        seconds, network = clock() - started, math.nan
        if before is not None:
            spent = model.usage - before
            network = spent.seconds
            if (spent.passes, spent.rows) != (1, rows):
                raise ValueError(
                    f"one pass over {rows} rows was to be timed, {model.name} ran {spent.passes}"
                    f" over {spent.rows} in all"
                )
        yield {"seconds": seconds, "network_seconds": network}
