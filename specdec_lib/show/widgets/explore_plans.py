"""The explorer of a plan: acceptance and prices as knobs, the tree that pays best, the verdict."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pandas as pd

from specdec_lib.core.tree import Shape
from specdec_lib.show import figures
from specdec_lib.show.widgets.explore_trees import distinct_budgets
from specdec_lib.show.widgets.knobs import Knob, make_knobs, slider
from specdec_lib.show.widgets.panel import Panel, Shown, bullets
from specdec_lib.theory import (
    Gain,
    Margin,
    Overhead,
    PassTable,
    Rates,
    best_tree,
    margin,
    monotone,
    plain_work,
    tree_gains,
    tree_work,
)

BUDGETS, DEPTHS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32), (1, 2, 3, 4, 6, 8)
CONTEXT = 256  # tokens before the passes
SHARES = [step / 50 for step in range(1, 50)]  # what an acceptance rate may be
COSTS = (0.001, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1.0)
FACTORS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
HEIGHTS = (300, 540)  # pixels


class Source(NamedTuple):
    """What guesses: how often its guess of each rank is accepted, and the seconds of its passes."""

    rates: Sequence[float]
    passes: PassTable


class _Prices(NamedTuple):
    """Seconds of passes of "target" and "draft", and outside them of a tree's round and a plain."""

    tables: Mapping[str, PassTable]
    tree: Overhead
    plain: Overhead


def plan_explorer(
    sources: Mapping[str, Source], target: PassTable, tree: Overhead, plain: Overhead
) -> Panel:
    """Knobs over `figures.shapes` and `figures.budget_speed_ups`: which tree of a draft model pays
    best, by how much, and what that hangs on.

    sources    by name, a button each that sets acceptance and cost to its own; the knobs start at
               the first, whose passes over more rows also say what all others' cost
    target     seconds of the target's passes
    tree       seconds outside the models of a round with a tree, `plain` of one of plain decoding

    The knobs are first, others, cost, rows and host.  Raises ValueError if there is no source, or
    one whose guesses beyond the likeliest are never accepted.
    """
    if not (sources and min(sum(one.rates[1:]) for one in sources.values()) > 0):
        got = {name: list(one.rates) for name, one in sources.items()}
        raise ValueError(f"a plan needs sources with rates above 0 of two ranks or more, got {got}")
    starts = {name: _start(one, target) for name, one in sources.items()}
    (_, *rest), passes = next(iter(sources.values()))
    measured = next(iter(starts.values()))["cost"]

    def draw(first: float, others: float, cost: float, rows: float, host: float) -> Shown:
        left = (1 - first) * others / sum(rest)
        rates = monotone([[first, *(left * rate for rate in rest)]])
        tables = {"target": _with_rows(target, rows), "draft": passes.faster(measured / cost)}
        return _draw(rates, _Prices(tables, _times(tree, host), _times(plain, host)))

    return Panel(make_knobs(_knobs(starts)), draw, presets=starts, heights=HEIGHTS)


def _start(source: Source, target: PassTable) -> dict[str, float]:
    """Where the knobs stand for a source."""
    likeliest, *rest = source.rates
    cost = source.passes.at(1, CONTEXT) / target.at(1, CONTEXT)
    others = sum(rest) / (1 - likeliest) if likeliest < 1 else 0.0
    cost = max(min(COSTS), round(cost, 3))  # no pass is free
    return {"first": round(likeliest, 2), "others": round(others, 2), "cost": cost}


def _knobs(starts: Mapping[str, Mapping[str, float]]) -> dict[str, Knob]:
    at, share = next(iter(starts.values())), {"digits": ".3g"}
    offered = {
        name: sorted({*values, *(start[name] for start in starts.values())})
        for name, values in (("first", SHARES), ("others", SHARES), ("cost", COSTS))
    }
    likeliest = "how often the likeliest guess is accepted, where it is tried"
    others = "how often one of the other guesses is accepted, where the likeliest is not"
    price = "seconds of a draft pass ÷ of a target pass, over one row"
    rows = "what rows beyond the first add to a target pass, times as measured; 0 as on a large GPU"
    host = "seconds of a round outside the models, times as measured"
    return {
        "first": slider(offered["first"], at["first"], likeliest, label="first guess", **share),
        "others": slider(offered["others"], at["others"], others, label="other guesses", **share),
        "cost": slider(offered["cost"], at["cost"], price, label="cost of a pass", **share),
        "rows": slider(FACTORS, 1.0, rows, label="cost of rows", **share),
        "host": slider(FACTORS, 1.0, host, label="host's seconds", **share),
    }


def _with_rows(table: PassTable, times: float) -> PassTable:
    """The same with what more rows add to a pass over one multiplied."""
    seconds = tuple(
        tuple(line[0] + times * (one - line[0]) for one in line) for line in table.seconds
    )
    return PassTable(table.rows, table.contexts, seconds)


def _times(overhead: Overhead, factor: float) -> Overhead:
    return Overhead(factor * overhead.round, factor * overhead.guess, factor * overhead.draft_pass)


def _draw(rates: Rates, prices: _Prices) -> Shown:
    options = {"depths": DEPTHS, "overhead": prices.tree, "plain": prices.plain, "context": CONTEXT}
    trees, chains = (
        pd.DataFrame(tree_gains(rates, prices.tables, **limits, **options))
        for limits in (
            {"budgets": BUDGETS, "widths": [len(rates[0])]},
            {"budgets": [max(DEPTHS)], "widths": [1]},
        )
    )
    best, chain = (Gain(*found.loc[found.speed_up.idxmax()]) for found in (trees, chains))
    shape = best_tree(rates, int(best.budget), int(best.depth))
    name = "the best tree" if best.speed_up > 1 else "the best tree, which does not pay"
    picture = figures.shapes(figures.slots({name: shape}, rates), title=_named(shape))
    lines = figures.budget_speed_ups(distinct_budgets(trees))
    return Shown((picture, lines), _words(rates, prices, shape, best, chain))


def _named(shape: Shape) -> str:
    kind = "chain" if max(shape.ranks) == 0 else "tree"
    return f"a {kind} of {_guesses(shape.guesses)}, {shape.depth} deep"


def _guesses(count: float) -> str:
    return "1 guess" if count == 1 else f"{count:.0f} guesses"


def _words(rates: Rates, prices: _Prices, shape: Shape, best: Gain, chain: Gain) -> str:
    """The verdict, the best chain beside it and what the gain hangs on, as HTML."""
    work, plain = tree_work(shape, rates, context=CONTEXT), plain_work(context=CONTEXT)
    taken = {"speculating": (work, prices.tree), "plain": (plain, prices.plain)}
    ms = {
        name: 1000 * its.seconds(prices.tables, overhead) / its.tokens
        for name, (its, overhead) in taken.items()
    }
    hangs = margin(work, plain, prices.tables, prices.tree, prices.plain)
    beside = f"{ms['speculating']:.1f} ms a token, plain decoding {ms['plain']:.1f}"
    verdict = f"Speculate with {_named(shape)}: {best.speed_up:.2f} times plain decoding"
    if best.speed_up <= 1:
        verdict = f"Do not speculate: {_named(shape)} would run at {best.speed_up:.2f} times"
    lines = [
        f"predicted: {beside}",
        f"the best chain: {_guesses(chain.depth)}, {chain.speed_up:.2f} times plain decoding",
        f"it emits {hangs.tokens:.2f} tokens per round and pays from {hangs.needed:.2f} on",
        _hanging(hangs),
    ]
    return f"<p><b>{verdict}.</b></p>{bullets(lines)}"


def _hanging(hangs: Margin) -> str:
    dearer = f"draft passes may take {hangs.dearer_drafts:.2f} times as long before it pays no more"
    if hangs.dearer_drafts < 1:
        dearer = f"it would pay with draft passes in {hangs.dearer_drafts:.2f} of their time"
    if hangs.dearer_drafts <= 0:
        dearer = "even free draft passes would not make it pay"
    free = f"{hangs.free_drafts:.2f} times with free drafts, {hangs.free_rows:.2f} with free rows"
    return f"{dearer}; {free}"
