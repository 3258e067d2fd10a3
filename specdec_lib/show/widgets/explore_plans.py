"""The explorer of plans: which tree of a draft pays best, by how much, and what that hangs on."""

import html
from collections.abc import Mapping, Sequence
from dataclasses import astuple, replace
from functools import partial
from typing import Any, NamedTuple

import pandas as pd
import plotly.graph_objects as go

from specdec_lib import theory
from specdec_lib.measure.machine_prices import Machines
from specdec_lib.show import figures
from specdec_lib.show.tables import shape_nodes
from specdec_lib.show.widgets.bookmark import Bookmark
from specdec_lib.show.widgets.explore_costs import SHARES
from specdec_lib.show.widgets.knobs import slider, turn_knob
from specdec_lib.show.widgets.machine_menu import MachineMenu, priced_panel
from specdec_lib.show.widgets.panel import Panel, Shown
from specdec_lib.show.widgets.words import aligned_table, bullets, counted
from specdec_lib.theory import Overhead, PassTable
from specdec_lib.theory.choosing import Margin

BUDGETS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32)
DEPTHS = (1, 2, 3, 4, 6, 8)
CONTEXT = 256  # tokens before the passes of a plan, as in `theory`
COSTS = (0.001, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1.0)
FACTORS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)


class Source(NamedTuple):
    """What guesses: how often its guess of each rank is accepted, and the seconds of its passes.

    model    its name, under which other machines' pass times have it
    """

    rates: Sequence[float]
    passes: PassTable
    model: str = "draft"


def plan_explorer(
    sources: Mapping[str, Source],
    target: PassTable,
    tree: Overhead,
    plain: Overhead,
    *,
    machines: Machines | None = None,
) -> Panel:
    """Knobs over `figures.shapes` and `figures.budget_speed_ups`: which tree of a draft model pays
    best, by how much, and what that hangs on.

    sources     by name, a button each that sets acceptance and cost to its own, with rates of two
                ranks or more; the knobs start at the first, whose passes stand for those of all
    target      seconds of the target's passes
    tree        seconds outside the models of a round with a tree, `plain` of one of plain decoding
    machines    whose passes a menu offers; those of sources and target are of its `given`
    """
    if not sources:
        raise ValueError("a plan needs a source with rates of two ranks, got none")
    menu = None if machines is None else MachineMenu(machines, given=True)
    planned = _Planned(sources, target, menu, _starts(sources, target))
    (_, *rest), *_ = next(iter(sources.values()))
    start = next(iter(planned.starts.values()))

    def draw(first: float, others: float, cost: float, rows: float, **at: Any) -> Shown:
        host = at["host"]
        machine = at.get("machine")
        left = (1 - first) * others / sum(rest)
        rates = theory.monotone([[first, *(left * rate for rate in rest)]])
        tables = planned.tables(machine, cost, rows)
        shown = _plan(rates, tables, _times(tree, host), _times(plain, host))
        return Shown(shown.figures, shown.words + planned.whose(machine))

    others = "how often one of them is accepted, where the likeliest guess is not"
    rows = "what rows beyond the first add to a target pass, times as measured; 0 as on a large GPU"
    knobs = {
        "first": slider(SHARES[1:-1], start["first"], "how often it is accepted", "first guess"),
        "others": slider(SHARES[1:-1], start["others"], others, "other guesses"),
        "cost": slider(COSTS, start["cost"], "a target pass being 1", "cost of a pass"),
        "rows": slider(FACTORS, 1.0, rows, "cost of rows"),
        "host": slider(FACTORS, 1.0, "outside the models, times as measured", "host's seconds"),
    }
    return priced_panel(
        menu,
        knobs,
        draw,
        fit=planned.fit,
        bookmark=Bookmark("05b_what_to_pick"),
        presets=planned.starts,
        heights=(300, 490),
    )


class _Planned(NamedTuple):
    """The sources of a plan on the machine that the menu is at.

    starts    where a source's button puts the knobs, by its name; costs are the machine's
    """

    sources: Mapping[str, Source]
    target: PassTable
    menu: MachineMenu | None
    starts: dict[str, dict[str, float]]

    def tables(self, name: str | None, cost: float, rows: float) -> dict[str, PassTable]:
        """Seconds of passes by model, the first source's as the draft's: scaled to this cost over
        one row, and the rows of the target beyond the first to so many times what they cost.
        """
        target, passes = self._measured(name, next(iter(self.sources.values())))
        own = _cost(passes, target)
        seconds = [[line[0] + rows * (one - line[0]) for one in line] for line in target.seconds]
        scaled = replace(target, seconds=tuple(map(tuple, seconds)))
        return {"target": scaled, "draft": passes.faster(own / cost)}

    def fit(self, made: Mapping[str, Any]) -> None:
        """Let costs be those of the machine that was turned to: of the buttons, and of the source
        that the knobs are at, else of the first one.
        """
        name = None if self.menu is None else self.menu.moved()
        if name is None:
            return
        at = {knob: made[knob].value for knob in ("first", "others")}
        here = [one for one, start in self.starts.items() if at.items() <= start.items()]
        for one, source in self.sources.items():
            target, passes = self._measured(name, source)
            self.starts[one]["cost"] = _cost(passes, target)
        turn_knob(made["cost"], self.starts[next(iter([*here, *self.starts]))]["cost"])

    def whose(self, name: str | None) -> str:
        """Whose prices these are, as HTML."""
        if self.menu is None or name is None:
            return ""
        own = self.menu.machines.given
        named = html.escape(self.menu.describe(name))
        said = f"Pass times of {named}"
        if name != own:
            return f"{said}; the host's seconds are those of {html.escape(own)}."
        return f"{said}, and the host's seconds too."

    def _measured(self, name: str | None, source: Source) -> tuple[PassTable, PassTable]:
        """The passes of the target and of a source on a machine."""
        if self.menu is None or name is None or name == self.menu.machines.given:
            return self.target, source.passes
        tables = self.menu.machines.tables(name)
        if source.model not in tables:
            raise ValueError(f"{source.model} was not timed there, timed were {', '.join(tables)}")
        return tables["target"], tables[source.model]


def _starts(sources: Mapping[str, Source], target: PassTable) -> dict[str, dict[str, float]]:
    """Where the knobs stand for each source."""
    found = {}
    for name, source in sources.items():
        likeliest, *rest = source.rates
        if not (sum(rest) > 0 and likeliest < 1):
            raise ValueError(
                f"a plan needs rates of two ranks, between 0 and 1, got {source.rates}"
            )
        rates = {"first": likeliest, "others": sum(rest) / (1 - likeliest)}
        found[name] = {one: _rounded(rate) for one, rate in rates.items()}
        found[name]["cost"] = _cost(source.passes, target)
    return found


def _cost(passes: PassTable, target: PassTable) -> float:
    """A pass over one row in those of the target."""
    return _rounded(passes.at(1, CONTEXT) / target.at(1, CONTEXT))


def _rounded(value: float) -> float:
    return float(f"{value:.2g}")


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
    rows = [
        ("plain decoding", 0, ms, 1.0),
        ("the best chain", int(length), ms / chain.speed_up, float(chain.speed_up)),
        ("the best tree", shape.guesses, ms / best.speed_up, float(best.speed_up)),
    ]
    heads = ("predicted", "guesses", "ms per token", "times plain decoding")
    picture = figures.shapes(shape_nodes({name: shape}, rates), title=named)
    words = f"<b>{verdict}</b>{aligned_table(heads, rows)}{bullets(_margins(hangs))}"
    return Shown((picture, _by_budget(trees)), words)


def _margins(hangs: Margin) -> list[str]:
    """What a plan hangs on, as HTML."""
    dearer = f"draft passes may take {hangs.dearer_drafts:.2f} times as long before it pays no more"
    if hangs.dearer_drafts < 1:
        dearer = f"it would pay with draft passes in {hangs.dearer_drafts:.2f} of their time"
    if hangs.dearer_drafts <= 0:
        dearer = "even free draft passes would not make it pay"
    free = f"{hangs.free_drafts:.2f} times with free drafts, {hangs.free_rows:.2f} with free rows"
    return [
        f"the tree emits {hangs.tokens:.2f} tokens per round and pays from {hangs.needed:.2f} on",
        f"{dearer}; {free}",
    ]


def _by_budget(gains: pd.DataFrame, title: str = "") -> go.Figure:
    """The gains of one width, each depth up to the budget that it can spend."""
    rows = gains.drop(columns="width").drop_duplicates(["depth", "speed_up"])
    return figures.budget_speed_ups(rows, title=title)
