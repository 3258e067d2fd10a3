"""The explorer of a plan: which tree pays best; and figures of best trees for plain sliders."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import pandas as pd
import plotly.graph_objects as go

from specdec_lib import theory
from specdec_lib.show import figures
from specdec_lib.show.widgets.knobs import slider
from specdec_lib.show.widgets.panel import Panel, Shown, bullets, counted
from specdec_lib.theory import Gain, Margin, Overhead, PassTable, Rates, best_tree

BUDGETS, DEPTHS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32), (1, 2, 3, 4, 6, 8)
CONTEXT = 256  # tokens before the passes
SHARES = [step / 50 for step in range(1, 50)]  # what an acceptance rate may be
COSTS = (0.001, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1.0)
FACTORS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
HEIGHTS = (300, 540)  # pixels
FIRST = "how often the likeliest guess is accepted, where it is tried"
OTHERS = "how often one of the other guesses is accepted, where the likeliest is not"
COST = "seconds of a draft pass ÷ of a target pass, over one row"
ROWS = "what rows beyond the first add to a target pass, times as measured; 0 as on a large GPU"
HOST = "seconds of a round outside the models, times as measured"
KNOBS = {
    "first": slider(SHARES, 0.5, FIRST, label="first guess", digits=".3g", widen=True),
    "others": slider(SHARES, 0.5, OTHERS, label="other guesses", digits=".3g", widen=True),
    "cost": slider(COSTS, 0.1, COST, label="cost of a pass", digits=".3g", widen=True),
    "rows": slider(FACTORS, 1.0, ROWS, label="cost of rows", digits=".3g"),
    "host": slider(FACTORS, 1.0, HOST, label="host's seconds", digits=".3g"),
}


class Source(NamedTuple):
    """What guesses: how often its guess of each rank is accepted, and the seconds of its passes."""

    rates: Sequence[float]
    passes: PassTable


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
    start = next(iter(starts.values()))

    def draw(first: float, others: float, cost: float, rows: float, host: float) -> Shown:
        left = (1 - first) * others / sum(rest)
        rates = theory.monotone([[first, *(left * rate for rate in rest)]])
        seconds = (
            [one + rows * (more - one) for more in (one, *line)] for one, *line in target.seconds
        )
        tables = {
            "target": replace(target, seconds=tuple(map(tuple, seconds))),
            "draft": passes.faster(start["cost"] / cost),
        }
        return _draw(rates, tables, _times(tree, host), _times(plain, host))

    return Panel(KNOBS, draw, start=start, presets=starts, heights=HEIGHTS)


def _start(source: Source, target: PassTable) -> dict[str, float]:
    """Where the knobs stand for a source."""
    likeliest, *rest = source.rates
    cost = source.passes.at(1, CONTEXT) / target.at(1, CONTEXT)
    others = sum(rest) / (1 - likeliest) if likeliest < 1 else 0.0
    cost = max(min(COSTS), round(cost, 3))  # no pass is free
    return {"first": round(likeliest, 2), "others": round(others, 2), "cost": cost}


def _times(overhead: Overhead, factor: float) -> Overhead:
    return Overhead(factor * overhead.round, factor * overhead.guess, factor * overhead.draft_pass)


def _draw(rates: Rates, tables: Mapping[str, PassTable], tree: Overhead, plain: Overhead) -> Shown:
    """The best tree, speed-ups by budget, the verdict and what it hangs on."""
    options = {"depths": DEPTHS, "overhead": tree, "plain": plain, "context": CONTEXT}
    trees, chains = (
        pd.DataFrame(theory.tree_gains(rates, tables, budgets=budgets, widths=[width], **options))
        for budgets, width in ((BUDGETS, len(rates[0])), ([max(DEPTHS)], 1))
    )
    best, chain = (Gain(*found.loc[found.speed_up.idxmax()]) for found in (trees, chains))
    shape = best_tree(rates, int(best.budget), int(best.depth))
    kind = "chain" if max(shape.ranks) == 0 else "tree"
    named = f"a {kind} of {counted(shape.guesses)}, {shape.depth} deep"
    verdict = f"Speculate with {named}: {best.speed_up:.2f} times plain decoding"
    name = "the best tree"
    if best.speed_up <= 1:
        verdict = f"Do not speculate: {named} would run at {best.speed_up:.2f} times"
        name = "the best tree, which does not pay"
    picture = figures.shapes(figures.slots({name: shape}, rates), title=named)
    alone = theory.plain_work(context=CONTEXT)
    ms = 1000 / alone.tokens_per_second(tables, plain)
    work = theory.tree_work(shape, rates, context=CONTEXT)
    hangs = theory.margin(work, alone, tables, tree, plain)
    lines = [
        f"predicted: {ms / best.speed_up:.1f} ms a token, plain decoding {ms:.1f}",
        f"the best chain: {counted(chain.depth)}, {chain.speed_up:.2f} times plain decoding",
        f"it emits {hangs.tokens:.2f} tokens per round and pays from {hangs.needed:.2f} on",
        _hanging(hangs),
    ]
    pictures = picture, figures.budget_speed_ups(distinct_budgets(trees))
    return Shown(pictures, f"<p><b>{verdict}.</b></p>{bullets(lines)}")


def _hanging(hangs: Margin) -> str:
    dearer = f"draft passes may take {hangs.dearer_drafts:.2f} times as long before it pays no more"
    if hangs.dearer_drafts < 1:
        dearer = f"it would pay with draft passes in {hangs.dearer_drafts:.2f} of their time"
    if hangs.dearer_drafts <= 0:
        dearer = "even free draft passes would not make it pay"
    free = f"{hangs.free_drafts:.2f} times with free drafts, {hangs.free_rows:.2f} with free rows"
    return f"{dearer}; {free}"


def best_shape(rates: Rates, *, budget: int, depth: int, width: int) -> go.Figure:
    """The best tree of a budget under these rates, no deeper than `depth` and with at most `width`
    children per node.
    """
    allowed = [list(vector)[:width] for vector in rates]
    tree = best_tree(allowed, budget, depth)
    title = f"{tree.guesses} guesses, {tree.depth} deep"
    return figures.shapes(figures.slots({"best static": tree}, allowed), title=title)


def distinct_budgets(gains: pd.DataFrame) -> pd.DataFrame:
    """The rows of `theory.tree_gains` of one width, up to the budget that a depth can spend."""
    return gains.drop(columns="width").drop_duplicates(["depth", "speed_up"])


def faster_draft(
    gains: Callable[[Mapping[str, PassTable], Overhead, Overhead], Sequence[Gain]],
    tables: Mapping[str, PassTable],
    overheads: tuple[Overhead, Overhead],
    *,
    draft: float,
    host: float,
    about: str = "",
) -> go.Figure:
    """Speed-up against the budget if the draft were `draft` times as fast as its table says, and
    all code outside the models `host` times.

    gains        from tables and the two overheads to gains, as of `theory.tree_gains`
    overheads    of a tree's round and of a plain one, as measured
    about        what it is predicted from, for the headline
    """
    faster = dict(tables) | {"draft": tables["draft"].faster(draft)}
    hosts = (_times(one, 1 / host) for one in overheads)
    found = distinct_budgets(pd.DataFrame(gains(faster, *hosts)))
    changed = "" if draft == host == 1 else f"; draft {draft:g} × as fast, host {host:g} ×"
    title = f"Which budget pays{about and f', {about}'}: predicted{changed}"
    return figures.budget_speed_ups(found, title=title)
