"""Seconds per pass as a function of rows and context, measured, and the price of each model's pass
against the target's.

Every model takes its turn in every repeat, so that a machine that slows down slows all of them. A
pass reads on from where the model's last one ended, as in decoding: it computes the rows asked for
and nothing else, which is checked for every model that counts.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from numbers import Integral
from typing import TYPE_CHECKING

from specdec_lib.core.context import Context
from specdec_lib.core.protocols import LanguageModel
from specdec_lib.core.tree import ROOT, TokenTree

if TYPE_CHECKING:
    from pandas import DataFrame

WARM_UPS = 3  # untimed repeats: the first passes of a shape set things up
QUARTILES = (0.25, 0.75)

Clock = Callable[[], float]


def prices(
    models: Sequence[LanguageModel],
    *,
    context_tokens: Integral = 256,
    repeats: Integral = 51,
    clock: Clock = time.perf_counter,
    progress: bool = True,
) -> "DataFrame":
    """What a pass over one row costs: a row per model, the target first, with `seconds` (the
    median), `price` (÷ the target's) and quartiles.

    models     the target first; device and dtype as they are
    repeats    timed passes per model, in turn

    The quartiles of the seconds are `low_seconds` and `high_seconds`. `paired_price` is the median
    of the ratio to the target's pass of the same repeat, `low_price` and `high_price` are that
    ratio's quartiles: a `price` far from it comes from a machine that was busy, and is to be
    measured anew.  Raises ValueError as `pass_seconds` does.
    """
    passes = pass_seconds(
        models, context_tokens=context_tokens, repeats=repeats, clock=clock, progress=progress
    )
    return summarised(passes, target=models[0].name).drop(columns="rows")


def summarised(passes: "DataFrame", *, target: str) -> "DataFrame":
    """The passes that `pass_seconds` timed, a row per model and number of rows: the columns of
    `prices` and `rows`.

    The price is relative to the target's pass over one row.
    Raises ValueError if the target made no pass over one row, or one that took no time.
    """
    import pandas as pd

    plain = passes[(passes.model == target) & (passes.rows == 1)].set_index("repeat").seconds
    if plain.empty:
        raise ValueError(
            f"prices are relative to a pass of {target!r} over one row, and none was timed"
        )
    if not plain.min() > 0:
        raise ValueError(
            f"a pass of {target!r} over one row took no time by this clock; it is too coarse"
        )
    rows = []
    for (model, count), group in passes.groupby(["model", "rows"], sort=False):
        ratios = group.set_index("repeat").seconds / plain
        low_seconds, high_seconds = group.seconds.quantile(list(QUARTILES))
        low_price, high_price = ratios.quantile(list(QUARTILES))
        seconds = group.seconds.median()
        found = {"seconds": seconds, "low_seconds": low_seconds, "high_seconds": high_seconds}
        found |= {
            "price": seconds / plain.median(),
            "paired_price": ratios.median(),
            "low_price": low_price,
            "high_price": high_price,
        }
        rows.append({"model": model, "rows": count} | found | {"repeats": len(group)})
    return pd.DataFrame(rows)


def pass_seconds(
    models: Sequence[LanguageModel],
    rows: Sequence[Integral] = (1,),
    *,
    context_tokens: Integral = 256,
    repeats: Integral = 51,
    clock: Clock = time.perf_counter,
    progress: bool = True,
) -> "DataFrame":
    """Every timed pass as a row: `model`, `rows`, `context_tokens` (cached before it), `repeat`,
    `seconds`.

    rows              of a pass: the context's last token and a chain of guesses, one row fewer
    context_tokens    read before the first pass; each pass lengthens the context by one
    clock             seconds, read before and after each pass; a pass is over when a number of its
                      last row can be read

    A model that remembers is told to forget first; one that needs a source is not timed here and
    says so.
    Raises ValueError if there is no model, two share a name, rows, context or repeats are below 1,
    a model's positions or vocabulary do not suffice, or a model that counts ran anything but one
    pass over the rows asked for.
    """
    import pandas as pd
    from tqdm.auto import tqdm

    names = [model.name for model in models]
    if (
        not models
        or len(set(names)) < len(names)
        or not rows
        or min((*rows, context_tokens, repeats)) < 1
    ):
        raise ValueError(
            "timing needs models of different names and at least 1 row, 1 token of context and 1"
            " repeat,"
            f" got models {names}, rows {list(rows)}, context_tokens={context_tokens},"
            f" repeats={repeats}"
        )
    readers = [Reader(model, clock, int(context_tokens)) for model in models]
    for reader in readers:
        reader.start((WARM_UPS + int(repeats)) * len(rows), max(rows))
    timed = []
    for repeat in tqdm(
        range(-WARM_UPS, int(repeats)), desc="passes", disable=not progress, mininterval=1
    ):
        timed += [{"repeat": repeat} | found for found in _turns(readers, rows, repeat)]
    table = pd.DataFrame(timed)
    return table[table.repeat >= 0][
        ["model", "rows", "context_tokens", "repeat", "seconds"]
    ].reset_index(drop=True)


def _turns(
    readers: Sequence["Reader"], rows: Sequence[Integral], repeat: int
) -> Iterator[dict[str, object]]:
    """One pass of each model over each number of rows; who goes first changes from repeat to
    repeat.
    """
    turns = list(product(readers, map(int, rows)))
    first = repeat % len(turns)
    for reader, count in turns[first:] + turns[:first]:
        yield reader.run(count)


@dataclass
class Reader:
    """A model that reads on, a token per pass.

    tokens    that it has read
    """

    model: LanguageModel
    clock: Clock
    tokens: int

    def start(self, passes: int, rows: int) -> None:
        """Read the context, untimed.

        Raises ValueError if so many passes over so many rows do not fit the model.
        """
        positions = self.tokens + passes + rows - 1
        if self.model.max_positions < positions or self.model.vocabulary < 2:
            raise ValueError(
                f"{self.model.name} has {self.model.max_positions} positions and"
                f" {self.model.vocabulary} tokens;"
                f" these passes need {positions} positions and 2 tokens"
            )
        self.model.forget()  # an earlier run may have read the same
        context = self._context()
        self.model.score(context, TokenTree.rooted(context))

    def run(self, rows: int) -> dict[str, object]:
        """One timed pass over the next token and guesses below it; `network_seconds` is what the
        model itself counts, NaN if it does not.
        """
        cached = self.tokens
        self.tokens += 1
        context = self._context()
        tree = self._guessed(context, rows - 1)
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
        return {
            "model": self.model.name,
            "rows": rows,
            "context_tokens": cached,
            "seconds": seconds,
            "network_seconds": network,
        }

    def _context(self) -> Context:
        return Context.of(tuple(self._token(place) for place in range(self.tokens)))

    def _guessed(self, context: Context, guesses: int) -> TokenTree:
        """A chain below the context's end; never how the context goes on, so that it is not known
        already when it does.
        """
        tokens = [self._token(len(context) + depth + 1) for depth in range(guesses)]
        return TokenTree.rooted(context).grown(
            tokens, range(ROOT, guesses), source="made up", scores=(1.0,) * guesses
        )

    def _token(self, place: int) -> int:
        return place % self.model.vocabulary
