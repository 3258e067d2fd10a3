"""What each idea would be worth on another machine: the counted rounds of `specdec measure ideas`,
priced by passes that were measured, or by three numbers that describe a machine.

The settings are those that were fastest on the machine of the race: elsewhere others may be, so
that a ratio is that of this pair of settings, not of the best ones there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pandas as pd

from specdec_lib.measure.latency.passes import pass_tables
from specdec_lib.measure.machine import stored_clocked
from specdec_lib.measure.settings.ideas import (
    AUTOREGRESSIVE,
    BOTH,
    CHAIN,
    COPIED,
    HORIZONTAL,
    SCOUT,
    SPECULATIVE,
    TREE,
    VERTICAL,
)
from specdec_lib.theory import Machine, ModelShape, PassTable, Work, roofline_seconds

CONTEXT = 256  # tokens before a pass that is priced
MANY = 16  # rows of the pass that is compared with one of a single row
TARGET = "target"
CLAIMS = {  # of the maps: a method, and the one that it is compared with
    "tree": (TREE, SPECULATIVE),
    "second stage, of a tree": (TREE + SCOUT, TREE),
    "second stage, of a chain": (CHAIN + SCOUT, CHAIN),
    "vertical cascade": (VERTICAL, SPECULATIVE),
    "horizontal cascade": (HORIZONTAL, SPECULATIVE),
    "both cascades": (BOTH, SPECULATIVE),
    "copies (Max-Gram) before a tree": (TREE + COPIED, TREE),
    "vertical cascade beside copies": (VERTICAL, CHAIN + COPIED),
}
SIXTEENS = tuple(1 + step / 8 for step in range(25))  # 16 rows ÷ 1 row, from 1 to 4
DRAFTS = tuple(float(cost) for cost in np.geomspace(0.005, 0.3, 25))  # draft pass ÷ target pass


@dataclass(frozen=True)
class PricePoint:
    """A machine in three numbers, in passes of the target over one row.

    sixteen    a pass of the target over 16 rows
    draft      a pass of the draft model over one row
    host       seconds outside the models, of a round, as many times those of the race's machine;
               these count in its passes of the target
    """

    sixteen: float
    draft: float
    host: float = 1.0


def raced_work(rows: pd.DataFrame) -> Work:
    """What the rounds in rows of a race did, all together: their columns `passes` and `context`
    say so.
    """
    passes: dict[tuple[str, int, int], float] = {}
    guesses = 0.0
    for said, context in zip(rows.passes, rows.context, strict=True):
        for part in said.split("; "):
            model, *counts = part.split(" ")
            for one in counts:
                size, count = one.split(":")
                place = (model, int(size), int(context))
                passes[place] = passes.get(place, 0.0) + float(count)
                guesses += (int(size) - 1) * float(count) if model == TARGET else 0.0
    return Work(float(rows.tokens.sum()), float(rows["rounds"].sum()), guesses, passes, TARGET)


def predicted_beside_clock(ideas: pd.DataFrame, passes: pd.DataFrame) -> pd.DataFrame:
    """Per edition, sampler and method: milliseconds per token by the clock, and as its counted
    passes at their measured seconds, and its seconds outside the models, foretell; and the ratio.

    passes    of the same machine, by `specdec measure passes`
    """
    found = []
    for (edition, heat, top_k), group in ideas.groupby(["edition", "temperature", "top_k"]):
        tables = tables_of(passes, str(edition), float(str(heat)))
        for method, rows in group.groupby("method", sort=False):
            work = raced_work(rows)
            predicted = work.model_seconds(tables) + rows.outside.sum()
            clocked = rows.seconds.sum()
            head = {"edition": edition, "temperature": heat, "top_k": top_k, "method": method}
            both = {"predicted": 1000 * predicted / work.tokens}
            both |= {"clocked": 1000 * clocked / work.tokens, "prompts": len(rows)}
            found.append(head | both | {"ratio": predicted / clocked})
    return pd.DataFrame(found)


def tables_of(
    passes: pd.DataFrame, edition: str, temperature: float | None = None
) -> dict[str, PassTable]:
    """The pass times of an edition by model; those of drafts with what they take to choose their
    guesses at a temperature, where one is given.
    """
    own = passes[passes.edition == edition]
    if temperature is not None:
        choice = own.greedy_choice if temperature == 0 else own.drawn_choice
        own = own.assign(seconds=own.seconds + choice)
    return pass_tables(own.assign(runtime=edition), column="seconds")


def one_row_prices(passes: pd.DataFrame, edition: str) -> dict[str, float]:
    """A pass over one row by model, in those of the target of an edition: the prices of SWI."""
    tables = tables_of(passes, edition)
    plain = tables[TARGET].at(1, CONTEXT)
    return {name: table.at(1, CONTEXT) / plain for name, table in tables.items()}


def timed_prices(machine: str = "") -> dict[str, float]:
    """`one_row_prices` of the target in float32 and drafts in int8 as `specdec measure passes`
    timed them on a machine: "" is the README's, "here" this one.
    """
    return one_row_prices(stored_clocked("passes", machine), "exact")


def place_of(
    passes: pd.DataFrame, edition: str, model: str, temperature: float | None = None
) -> PricePoint:
    """A measured machine in three numbers."""
    tables = tables_of(passes, edition, temperature)
    plain = tables[TARGET].at(1, CONTEXT)
    many = tables[TARGET].at(MANY, CONTEXT)
    return PricePoint(many / plain, tables[model].at(1, CONTEXT) / plain)


def modelled_place(
    target: ModelShape, draft: ModelShape, machine: Machine, layer_seconds: float
) -> PricePoint:
    """A machine in three numbers by its data sheet: the longer of moving bytes and computing, and
    for every layer the time of its launches.
    """

    def seconds(shape: ModelShape, rows: int) -> float:
        ideal = roofline_seconds(shape, machine, rows=rows, context=CONTEXT)
        return ideal + layer_seconds * shape.layers

    plain = seconds(target, 1)
    return PricePoint(seconds(target, MANY) / plain, seconds(draft, 1) / plain)


@dataclass(frozen=True)
class Priced:
    """The methods of a race in one edition and under one sampler, ready to be priced.

    works      by method
    outside    their seconds outside the models, in passes of the target over one row there
    tables     measured seconds of passes by model there, of which the map keeps the shape: how
               much of what 16 rows cost is due at 2, 3, … rows
    """

    works: Mapping[str, Work]
    outside: Mapping[str, float]
    tables: Mapping[str, PassTable]

    @classmethod
    def of(cls, rows: pd.DataFrame, passes: pd.DataFrame) -> "Priced":
        """Of the rows of one edition and sampler, and the pass times of the same machine."""
        [edition], [heat] = rows.edition.unique(), rows.temperature.unique()
        tables = tables_of(passes, edition, heat)
        plain = tables[TARGET].at(1, CONTEXT)
        groups = {str(method): own for method, own in rows.groupby("method", sort=False)}
        works = {method: _at_one_context(raced_work(own)) for method, own in groups.items()}
        outside = {method: own.outside.sum() / plain for method, own in groups.items()}
        return cls(works, outside, tables)

    def per_token(self, method: str, point: PricePoint) -> float:
        """A method's time per token on such a machine, in passes of the target over one row."""
        work = self.works[method]
        models = {model for model, _, _ in work.passes}
        tables = {model: self._table_at(model, point) for model in models}
        seconds = work.model_seconds(tables)
        return (seconds + point.host * self.outside[method]) / work.tokens

    def gain(self, method: str, base: str, point: PricePoint) -> float:
        """The speed of a method ÷ that of another on such a machine."""
        return self.per_token(base, point) / self.per_token(method, point)

    def _table_at(self, model: str, point: PricePoint) -> PassTable:
        """Passes of a model in passes of the target over one row: the part of each that is due to
        rows beyond the first grows as that of the target's pass over 16 rows does.
        """
        target, own = self.tables[TARGET], self.tables[model]
        plain, many = (target.at(rows, CONTEXT) for rows in (1, MANY))
        more = (point.sixteen - 1) / (many / plain - 1)
        size = 1.0 if model == TARGET else point.draft
        first = own.at(1, CONTEXT)
        line = [size * (1 + more * (own.at(rows, CONTEXT) / first - 1)) for rows in own.rows]
        return PassTable(own.rows, (CONTEXT,), (tuple(max(one, size / 2) for one in line),))


def _at_one_context(work: Work) -> Work:
    """The same work with every pass after `CONTEXT` tokens, as a map prices it."""
    passes: dict[tuple[str, int, int], float] = {}
    for (model, rows, _), count in work.passes.items():
        place = (model, rows, CONTEXT)
        passes[place] = passes.get(place, 0.0) + count
    return replace(work, passes=passes)


def claim_gains(
    priced: Priced,
    *,
    host: float,
    claims: Sequence[str] = tuple(CLAIMS),
    sixteens: Sequence[float] = SIXTEENS,
    drafts: Sequence[float] = DRAFTS,
) -> pd.DataFrame:
    """Per claim and place: claim, sixteen, draft, and gain, the speed of the method ÷ that of the
    one that it is compared with.
    """
    return pd.DataFrame(
        {
            "claim": claim,
            "sixteen": sixteen,
            "draft": draft,
            "gain": priced.gain(*CLAIMS[claim], PricePoint(sixteen, draft, host)),
        }
        for claim, sixteen, draft in product(claims, sixteens, drafts)
    )


def gains_over_plain(priced: Priced, place: PricePoint) -> pd.Series:
    """The speed of every method ÷ plain decoding's on such a machine, by method."""
    methods = [name for name in priced.works if name != AUTOREGRESSIVE]
    return pd.Series({name: priced.gain(name, AUTOREGRESSIVE, place) for name in methods})
