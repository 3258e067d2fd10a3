"""Seconds per pass as a function of rows and context, and each model's price against the target.

Every model takes its turn in every repeat, so that a machine that slows down slows all of them. A
pass reads on from where the model's last one ended, as in decoding: it computes its rows and
nothing else, which is checked for every model that counts.
"""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from numbers import Integral
from typing import TYPE_CHECKING

from specdec_lib.core.context import Context
from specdec_lib.core.protocols import LanguageModel
from specdec_lib.core.tree import ROOT, TokenTree
from specdec_lib.measure.race.contenders import Clock

if TYPE_CHECKING:
    from pandas import DataFrame

QUARTILES = (0.25, 0.75)
ROWS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
CONTEXTS = (64, 256, 1024)


def prices(passes: "DataFrame") -> "DataFrame":
    """What a pass costs, from passes of `time_passes` over one row and one context: a row per
    model, the target first, with `seconds` (the median), `price` (÷ the target's) and quartiles.

    `paired_price` is the median of the ratio to the target's pass of the same repeat, `low_price`
    and `high_price` are that ratio's quartiles: a `price` far from it comes from a machine that was
    busy, and is to be measured anew.
    """
    import pandas as pd

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
    rows: Sequence[Integral] = (1,),
    contexts: Sequence[Integral] = (256,),
    *,
    repeats: Integral = 51,
    clock: Clock = time.perf_counter,
    progress: bool = True,
) -> "DataFrame":
    """Every timed pass as a row: model, runtime, rows, context_tokens, repeat, seconds of `score`,
    network_seconds, which the model itself counts as its pass (NaN if it counts nothing).

    models      may share a name if their `runtime` differs; an encoder-decoder is not timed here
    rows        of a pass: the context's last token and a chain of guesses, one row fewer
    contexts    tokens read before the first pass of a repeat; each pass adds one

    In each repeat every model reads each context anew, untimed, makes one pass that is not timed,
    and then one over each number of rows; which goes first changes from repeat to repeat. One more
    repeat comes before all and is not counted.
    Raises ValueError if there is nothing to time, a model is too small, or one that counts ran
    anything but one pass over its rows.
    """
    import pandas as pd
    from tqdm.auto import tqdm

    names = [(model.name, model.runtime) for model in models]
    counts = (*rows, *contexts, repeats)
    if not models or len({*names}) < len(names) or not rows or not contexts or min(counts) < 1:
        raise ValueError(
            "timing needs models of different names or runtimes and at least 1 row, 1 token of"
            f" context and 1 repeat, got models {names}, rows {list(rows)}, contexts"
            f" {list(contexts)}, repeats={repeats}"
        )
    turns = tqdm(range(-1, int(repeats)), desc="passes", disable=not progress, mininterval=1)
    found = [one for turn in turns for one in one_repeat(models, rows, contexts, turn, clock=clock)]
    table = pd.DataFrame(found)
    return table[table.repeat >= 0].reset_index(drop=True)


def one_repeat(
    models: Sequence[LanguageModel],
    rows: Sequence[Integral],
    contexts: Sequence[Integral],
    repeat: int,
    *,
    clock: Clock = time.perf_counter,
) -> Iterator[dict[str, object]]:
    """The rows of one repeat of `time_passes`, to be timed in turn with something else; its number
    decides which model, context and number of rows go first.
    """
    for context, model in _rotated(list(product(contexts, models)), repeat):
        reader = _Reader(model, clock, int(context), int(context))
        reader.start(len(rows) + 1, max(rows))
        reader.run(1)  # the caches are the last pass's
        labels = {"runtime": model.runtime, "context_tokens": int(context), "repeat": repeat}
        for count in _rotated(list(map(int, rows)), repeat):
            yield {"model": model.name, "rows": count} | labels | reader.run(count)


def _rotated(turns: list, by: int) -> list:
    first = by % len(turns)
    return turns[first:] + turns[:first]


@dataclass
class _Reader:
    """A model that reads on after a prompt, a token per pass; `tokens` of them so far."""

    model: LanguageModel
    clock: Clock
    prompt: int
    tokens: int

    def start(self, passes: int, rows: int) -> None:
        """Read the context, untimed, if so many passes over so many rows fit the model."""
        positions = self.tokens + passes + rows - 1
        if self.model.max_positions < positions or self.model.vocabulary < 2:
            raise ValueError(
                f"{self.model.name} has {self.model.max_positions} positions and"
                f" {self.model.vocabulary} tokens; these passes need {positions} positions and 2"
                " tokens"
            )
        self.model.forget()  # an earlier run may have read the same
        context = self._context()
        self.model.score(context, TokenTree.rooted(context))

    def run(self, rows: int) -> dict[str, float]:
        """The seconds of one pass over the next token and a chain of guesses below it, none of
        which is how the context goes on: they are not known already when it does.
        """
        self.tokens += 1
        context = self._context()
        guesses = [self._token(self.tokens + 1 + depth) for depth in range(rows - 1)]
        tree = TokenTree.rooted(context).grown(
            guesses, range(ROOT, rows - 1), source="made up", scores=(1.0,) * (rows - 1)
        )
        before = self.model.usage
        started = self.clock()
        float(self.model.score(context, tree)[-1, 0])  # waits for a device that runs ahead
        seconds, network = self.clock() - started, math.nan
        if before is not None:
            spent = self.model.usage - before
            network = spent.seconds
            if (spent.passes, spent.rows) != (1, rows):
                raise ValueError(
                    f"one pass over {rows} rows was to be timed, {self.model.name} ran"
                    f" {spent.passes} over {spent.rows} in all"
                )
        return {"seconds": seconds, "network_seconds": network}

    def _context(self) -> Context:
        tokens = tuple(map(self._token, range(self.tokens)))
        return Context.of(tokens[: self.prompt]).extended(tokens[self.prompt :])

    def _token(self, place: int) -> int:
        return place % self.model.vocabulary
