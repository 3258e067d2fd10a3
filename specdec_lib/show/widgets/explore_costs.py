"""The explorers of costs: what a pass takes, whether a chain pays, and which tree pays best."""

from collections.abc import Mapping, Sequence
from dataclasses import astuple, replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import pandas as pd
import plotly.graph_objects as go

from specdec_lib import theory
from specdec_lib.measure import latency
from specdec_lib.show import figures
from specdec_lib.show.tables import shape_nodes
from specdec_lib.show.widgets.knobs import choice, slider, turn_knob
from specdec_lib.show.widgets.panel import Panel, Shown, bullets, counted
from specdec_lib.theory import Overhead, PassTable, Verify, chain_map, chain_tokens
from specdec_lib.theory.planner import LENGTHS

SHARES = [step / 50 for step in range(51)]  # what an acceptance rate or a cost may be
MAP_RATES = [step / 40 for step in range(2, 40)]
MAP_COSTS = [step / 40 for step in range(41)]
HOSTS = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1.0, 2.0)
BUDGETS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32)
DEPTHS = (1, 2, 3, 4, 6, 8)
CONTEXT = 256  # tokens before the passes of a plan, as in `theory`
COSTS = (0.001, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1.0)
FACTORS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
BEST = "the best length"
AS_SET = "the length set"


def latency_explorer(curves: pd.DataFrame) -> Panel:
    """Knobs over `figures.pass_at`: model, runtime, rows and context of a pass, with seconds on
    straight lines between measured ones. The runtimes are those in which the chosen model was
    timed; words below the knobs say which others there are.

    curves    of `latency.with_roofline`; ValueError where `latency.pass_tables` refuses it
    """
    counts = range(1, int(curves.rows.max()) + 1)
    contexts = sorted({*curves.context_tokens})
    timed = {
        str(model): [*own.unique()] for model, own in curves.groupby("model", sort=False).runtime
    }

    def draw(model: str, runtime: str, rows: int, context: int) -> Shown:
        own = curves[curves.model == model]
        line = pd.DataFrame({"rows": list(counts)})
        for column in ("seconds", "roofline_seconds"):
            passes = latency.pass_tables(own, runtime, column=column)[model]
            line[column] = [passes.at(count, context) for count in counts]
        title = f"{model}, {runtime}: a pass over {rows} rows after {context} tokens"
        figure = figures.pass_at(own[own.runtime == runtime], line, rows=rows, title=title)
        took = line.seconds[rows - 1]
        bound = line.roofline_seconds[rows - 1]
        ratio = took / line.seconds[0]
        words = [
            f"{1e3 * took:.2f} ms, {1e3 * took / rows:.2f} ms per row",
            f"{ratio:.2f} times a pass over one row: {rows - 1} guesses to verify cost"
            f" {ratio - 1:+.0%} of a pass",
            f"the machine would allow {1e3 * bound:.2f} ms (bandwidth or arithmetic):"
            f" {bound / took:.0%} of what it takes",
        ]
        if missing := [one for one in curves.runtime.unique() if one not in timed[model]]:
            words.append(f"passes of {model} were not timed in the runtime {', '.join(missing)}")
        return Shown((figure,), bullets(words))

    between = [*contexts, *((low + high) // 2 for low, high in pairwise(contexts))]
    verified = "tokens read in the pass: the last one, and the guesses that it verifies"
    knobs = {
        "model": choice(timed),
        "runtime": choice(next(iter(timed.values()))),
        "rows": slider(counts, min(4, len(counts)), verified),
        "context": slider(between, contexts[len(contexts) // 2], "tokens that were read before"),
    }
    return Panel(knobs, draw, fit=partial(_offer_timed, timed))


def _offer_timed(timed: Mapping[str, Sequence[str]], made: Mapping[str, Any]) -> None:
    """Let the runtimes be those in which the model that the knobs are at was timed."""
    offered = choice(timed[made["model"].value]).options
    menu = made["runtime"]
    if menu.options != offered:
        kept = menu.value
        menu.options = offered
        turn_knob(menu, kept)


def break_even_explorer(
    verify: Mapping[str, Verify | None],
    points: pd.DataFrame,
    *,
    acceptance_rate: float,
    cost: float,
) -> Panel:
    """Knobs over `figures.break_even` and `figures.chain_lengths`: does a chain pay, and which?

    verify    curves by name: what a target pass over so many rows costs, over that of one row; None
              is flat
    points    our pairs, as of `figures.break_even`

    The knobs are acceptance_rate, cost, length, host, verify and map; two start as given.
    Raises ValueError if there is no curve.
    """
    curves = dict(verify)
    if not curves:
        raise ValueError("the map needs a curve of the target's pass, or None, by name; got none")

    def draw(length: int, host: float, verify: str, map: str, **at: float) -> Shown:
        rate = at["acceptance_rate"]
        cost = at["cost"]
        here = rate, cost
        options = {"verify": curves[verify], "overhead": host}
        mapped = [length]
        which = f"a chain of {length}"
        if map == BEST:
            mapped = LENGTHS
            which = "the best chain"
        title = f"Predicted speed-up of {which}; {verify}; host {host:g}"
        cells = pd.DataFrame(chain_map(MAP_RATES, MAP_COSTS, lengths=mapped, **options))
        speed_ups = figures.break_even(cells, points, here=here, title=title)
        bars, words = _by_length(rate, cost, length, options)
        return Shown((speed_ups, bars), words)

    tried = "how often a guess is accepted, where it is tried"
    outside = "seconds of a round outside the models, beyond plain decoding's, in target passes"
    knobs = {
        "acceptance_rate": slider(SHARES, acceptance_rate, tried, "acceptance rate"),
        "cost": slider(SHARES, cost, "of a draft pass, a target pass over one row being 1"),
        "length": slider(LENGTHS, 4, "guesses per round, a draft pass each"),
        "host": slider(HOSTS, 0.0, outside),
        "verify": choice(curves, "cost of a target pass over more rows"),
        "map": choice((BEST, AS_SET), "which length the map shows", label="map of"),
    }
    return Panel(knobs, draw)


def _by_length(
    rate: float, cost: float, length: int, options: Mapping[str, Any]
) -> tuple[go.Figure, str]:
    """The speed-up by length, and as HTML the verdict, what the chosen length gives, and where the
    break-even lies.
    """
    lengths = range(1, max(length, *LENGTHS) + 1)
    rows = [chain_map([rate], [cost], lengths=[one], **options)[0] for one in lengths]
    table = pd.DataFrame(rows).assign(tokens_per_round=[chain_tokens(rate, n) for n in lengths])
    title = f"At acceptance rate {rate:.3g} and cost {cost:.3g}, by length"
    best = table.iloc[table.speed_up.argmax()]
    chosen = table.iloc[length - 1]
    speculate = f"Speculate, with {counted(best.length)} per round."
    verdict = speculate if best.speed_up > 1 else "Do not speculate: no length pays."
    even = theory.chain_break_even(rate, cost, **options)
    least = "no acceptance rate pays"
    most = "even a free draft does not pay"
    if even.acceptance_rate is not None:
        least = f"{even.acceptance_rate:.2f} of the guesses or more must be right"
    if even.cost is not None:
        most = f"a draft pass may cost up to {even.cost:.2f} target passes"
    tokens = chosen.tokens_per_round
    lines = [
        f"a chain of {length}: {tokens:.2f} tokens per round in {tokens / chosen.speed_up:.2f}"
        f" target passes, {chosen.speed_up:.2f} times plain decoding",
        f"the best length is {best.length:.0f}: {best.speed_up:.2f} times",
        f"break-even: at this cost {least}; at this acceptance rate {most}",
    ]
    return figures.chain_lengths(table, length=length, title=title), bullets(lines, verdict)


class Source(NamedTuple):
    """What guesses: how often its guess of each rank is accepted, and the seconds of its passes."""

    rates: Sequence[float]
    passes: PassTable


def plan_explorer(
    sources: Mapping[str, Source], target: PassTable, tree: Overhead, plain: Overhead
) -> Panel:
    """Knobs over `figures.shapes` and `figures.budget_speed_ups`: which tree of a draft model pays
    best, by how much, and what that hangs on.

    sources    by name, a button each that sets acceptance and cost to its own, with rates of two
               ranks or more; the knobs start at the first, whose passes stand for those of all
    target     seconds of the target's passes
    tree       seconds outside the models of a round with a tree, `plain` of one of plain decoding
    """
    if not sources:
        raise ValueError("a plan needs a source with rates of two ranks, got none")
    starts = {name: _start(one, target) for name, one in sources.items()}
    (_, *rest), passes = next(iter(sources.values()))
    start = next(iter(starts.values()))

    def draw(first: float, others: float, cost: float, rows: float, host: float) -> Shown:
        left = (1 - first) * others / sum(rest)
        rates = theory.monotone([[first, *(left * rate for rate in rest)]])
        seconds = [[line[0] + rows * (one - line[0]) for one in line] for line in target.seconds]
        faster = passes.faster(start["cost"] / cost)
        tables = {"target": replace(target, seconds=tuple(map(tuple, seconds))), "draft": faster}
        return _plan(rates, tables, _times(tree, host), _times(plain, host))

    others = "how often one of them is accepted, where the likeliest guess is not"
    rows = "what rows beyond the first add to a target pass, times as measured; 0 as on a large GPU"
    knobs = {
        "first": slider(SHARES[1:-1], start["first"], "how often it is accepted", "first guess"),
        "others": slider(SHARES[1:-1], start["others"], others, "other guesses"),
        "cost": slider(COSTS, start["cost"], "a target pass being 1", "cost of a pass"),
        "rows": slider(FACTORS, 1.0, rows, "cost of rows"),
        "host": slider(FACTORS, 1.0, "outside the models, times as measured", "host's seconds"),
    }
    return Panel(knobs, draw, presets=starts, heights=(300, 540))


def _start(source: Source, target: PassTable) -> dict[str, float]:
    """Where the knobs stand for a source."""
    likeliest, *rest = source.rates
    if not (sum(rest) > 0 and likeliest < 1):
        raise ValueError(f"a plan needs rates of two ranks, between 0 and 1, got {source.rates}")
    cost = source.passes.at(1, CONTEXT) / target.at(1, CONTEXT)
    found = {"first": likeliest, "others": sum(rest) / (1 - likeliest), "cost": cost}
    return {name: float(f"{value:.2g}") for name, value in found.items()}


def _times(overhead: Overhead, factor: float) -> Overhead:
    return Overhead(*(factor * seconds for seconds in astuple(overhead)))


def _plan(
    rates: Sequence[Sequence[float]],
    tables: Mapping[str, PassTable],
    tree: Overhead,
    plain: Overhead,
) -> Shown:
    """The best tree, speed-ups by budget, the verdict and what it hangs on."""
    widths = (1, len(rates[0]))
    gain = partial(theory.tree_gains, budgets=BUDGETS, depths=DEPTHS, widths=widths)
    gains = pd.DataFrame(gain(rates, tables, overhead=tree, plain=plain))
    chains, trees = (gains[gains.width == width] for width in widths)
    best, chain = (found.iloc[found.speed_up.argmax()] for found in (trees, chains))
    shape = theory.best_tree(rates, int(best.budget), int(best.depth))
    kind = "chain" if max(shape.ranks) == 0 else "tree"
    named = f"a {kind} of {counted(shape.guesses)}, {shape.depth} deep"
    name = "the best tree"
    speed = f"{best.speed_up:.2f} times"
    verdict = f"Speculate with {named}: {speed} plain decoding"
    if best.speed_up <= 1:
        name += ", which does not pay"
        verdict = f"Do not speculate: {named} would run at {speed}"
    alone = theory.plain_work()
    work = theory.tree_work(shape, rates)
    ms = 1000 / alone.tokens_per_second(tables, plain)
    length = min(chain.budget, chain.depth)
    hangs = theory.margin(work, alone, tables, tree, plain)
    dearer = f"draft passes may take {hangs.dearer_drafts:.2f} times as long before it pays no more"
    if hangs.dearer_drafts < 1:
        dearer = f"it would pay with draft passes in {hangs.dearer_drafts:.2f} of their time"
    if hangs.dearer_drafts <= 0:
        dearer = "even free draft passes would not make it pay"
    free = f"{hangs.free_drafts:.2f} times with free drafts, {hangs.free_rows:.2f} with free rows"
    lines = [
        f"predicted: {ms / best.speed_up:.1f} ms a token, plain decoding {ms:.1f}",
        f"the best chain: {counted(length)}, {chain.speed_up:.2f} times plain decoding",
        f"it emits {hangs.tokens:.2f} tokens per round and pays from {hangs.needed:.2f} on",
        f"{dearer}; {free}",
    ]
    picture = figures.shapes(shape_nodes({name: shape}, rates), title=named)
    return Shown((picture, _by_budget(trees)), bullets(lines, verdict))


def _by_budget(gains: pd.DataFrame, title: str = "") -> go.Figure:
    """The gains of one width, each depth up to the budget that it can spend."""
    rows = gains.drop(columns="width").drop_duplicates(["depth", "speed_up"])
    return figures.budget_speed_ups(rows, title=title)
