"""The explorers of costs: what a pass takes, and whether a chain pays."""

import html
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import ipywidgets
import pandas as pd
import plotly.graph_objects as go

from specdec_lib import theory
from specdec_lib.measure import latency
from specdec_lib.measure.machine_prices import Machines
from specdec_lib.measure.price_map import tables_of
from specdec_lib.measure.settings.ladder_drafts import EDITIONS
from specdec_lib.show import figures
from specdec_lib.show.widgets.bookmark import Bookmark
from specdec_lib.show.widgets.knobs import choice, slider, turn_knob
from specdec_lib.show.widgets.machine_menu import MachineMenu, priced_panel
from specdec_lib.show.widgets.panel import Panel, Shown
from specdec_lib.show.widgets.words import aligned_table, bullets, counted
from specdec_lib.theory import PassTable, Verify, chain_map, chain_tokens
from specdec_lib.theory.planner import LENGTHS

SHARES = [step / 50 for step in range(51)]  # what an acceptance rate or a cost may be
MAP_RATES = [step / 40 for step in range(2, 40)]
MAP_COSTS = [step / 40 for step in range(41)]
HOSTS = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1.0, 2.0)
CONTEXT = 256  # tokens before a pass that is compared with one of the target
NOTEBOOK = "05_latency_sweep"
BEST = "the best length"
AS_SET = "the length set"


def latency_explorer(curves: pd.DataFrame) -> Panel:
    """Knobs over `figures.pass_at`: model, runtime, rows and context of a pass, with seconds on
    straight lines between measured ones. The runtimes are those in which the chosen model was
    timed; words below the knobs say which others there are.

    curves    of `latency.with_roofline`, perhaps with a column `machine`; ValueError where
              `latency.pass_tables` refuses it
    """
    machine = ", ".join(curves.machine.unique()) if "machine" in curves else ""
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
        if machine:
            words.append(f"timed on {machine}")
        return Shown((figure,), bullets(words))

    between = [*contexts, *((low + high) // 2 for low, high in pairwise(contexts))]
    verified = "tokens read in the pass: the last one, and the guesses that it verifies"
    knobs = {
        "model": choice(timed),
        "runtime": choice(next(iter(timed.values()))),
        "rows": slider(counts, min(4, len(counts)), verified),
        "context": slider(between, contexts[len(contexts) // 2], "tokens that were read before"),
    }
    bookmark = Bookmark(NOTEBOOK, "pass_explorer")
    return Panel(knobs, draw, fit=partial(_offer_timed, timed), bookmark=bookmark)


def _offer_timed(timed: Mapping[str, Sequence[str]], made: Mapping[str, Any]) -> None:
    """Let the runtimes be those in which the model that the knobs are at was timed."""
    _offer(made["runtime"], timed[made["model"].value])


def _offer(menu: Any, values: Iterable[str]) -> None:
    """Let a menu offer these; it stays where it is if it can."""
    offered = choice(values).options
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
    machines: Machines | None = None,
) -> Panel:
    """Knobs over `figures.break_even` and `figures.chain_lengths`: does a chain pay, and which?

    verify      curves by name: what a target pass over so many rows costs, over that of one row;
                None is flat
    points      our pairs, as of `figures.break_even`; a pair's name begins with that of its model
    machines    whose prices a menu offers: it sets the curves (one per edition, "target, fast" and
                "target, int8"), the pairs and the cost, of the first pair's model; curves, points
                and cost at first are of its `given`

    The knobs are acceptance_rate, cost, length, host, verify and map; two start as given.
    Raises ValueError if there is no curve.
    """
    if not verify:
        raise ValueError("the map needs a curve of the target's pass, or None, by name; got none")
    menu = None if machines is None else MachineMenu(machines, given=True)
    prices = _Prices(verify, points, menu)

    def draw(length: int, host: float, verify: str, map: str, **at: Any) -> Shown:
        rate = at["acceptance_rate"]
        cost = at["cost"]
        name = at.get("machine")
        options = {"verify": prices.curves(name)[verify], "overhead": host}
        mapped = [length]
        which = f"a chain of {length}"
        if map == BEST:
            mapped = LENGTHS
            which = "the best chain"
        title = f"Predicted speed-up of {which}; {verify}; host {host:g}"
        cells = pd.DataFrame(chain_map(MAP_RATES, MAP_COSTS, lengths=mapped, **options))
        own = prices.pairs(name)
        speed_ups = figures.break_even(cells, own, here=(rate, cost), title=title)
        bars, words = _by_length(rate, cost, length, options)
        return Shown((speed_ups, bars), words + prices.whose(name))

    return priced_panel(
        menu,
        _pair_knobs(verify, acceptance_rate, cost),
        draw,
        fit=prices.fit,
        bookmark=Bookmark(NOTEBOOK, "pair_explorer"),
    )


def _pair_knobs(
    verify: Iterable[str], acceptance_rate: float, cost: float
) -> dict[str, ipywidgets.DOMWidget]:
    """The knobs of a pair: its two numbers, the chain and the target's curve."""
    tried = "how often a guess is accepted, where it is tried"
    outside = "seconds of a round outside the models, beyond plain decoding's, in target passes"
    return {
        "acceptance_rate": slider(SHARES, acceptance_rate, tried, "acceptance rate"),
        "cost": slider(SHARES, cost, "of a draft pass, a target pass over one row being 1"),
        "length": slider(LENGTHS, 4, "guesses per round, a draft pass each"),
        "host": slider(HOSTS, 0.0, outside),
        "verify": choice(verify, "cost of a target pass over more rows"),
        "map": choice((BEST, AS_SET), "which length the map shows", label="map of"),
    }


class _Prices(NamedTuple):
    """What the machine in the menu says of curves, pairs and costs."""

    given: Mapping[str, Verify | None]
    points: pd.DataFrame
    menu: MachineMenu | None

    def curves(self, name: str | None) -> Mapping[str, Verify | None]:
        """What a target pass over more rows costs, by the curve's name."""
        machines = self._others(name)
        if machines is None or name is None:
            return self.given
        passes = machines.passes(name)
        found: dict[str, Verify | None] = {}
        for edition in passes.edition.unique():
            timed = tables_of(passes, str(edition))["target"]
            plain = timed.at(1, CONTEXT)
            found[f"target, {EDITIONS[edition]}"] = partial(_times_one_row, timed, plain)
        return found | {one: None for one, curve in self.given.items() if curve is None}

    def pairs(self, name: str | None) -> pd.DataFrame:
        """Our pairs at their costs there."""
        machines = self._others(name)
        if machines is None or name is None:
            return self.points
        prices = machines.one_row_prices(name)
        models = self.points.pair.str.partition(",")[0]
        known = models.isin([*prices])
        return self.points[known].assign(cost=models[known].map(prices))

    def fit(self, made: Mapping[str, Any]) -> None:
        """Offer the machine's curves, and set the cost where another machine was turned to."""
        if self.menu is None:
            return
        name = self.menu.menu.value
        _offer(made["verify"], self.curves(name))
        if self.menu.moved() is not None:
            pairs = self.pairs(name)
            if len(pairs):
                turn_knob(made["cost"], float(f"{pairs.cost.iloc[0]:.2g}"))

    def whose(self, name: str | None) -> str:
        """Whose prices curves and pairs have, as HTML."""
        if self.menu is None or name is None:
            return ""
        named = html.escape(self.menu.describe(name))
        return f"Curves of the target and the pairs on the map: {named}."

    def _others(self, name: str | None) -> Machines | None:
        """The machines, where another one than the caller's is asked for."""
        if self.menu is None or name == self.menu.machines.given:
            return None
        return self.menu.machines


def _times_one_row(timed: PassTable, plain: float, rows: int) -> float:
    return timed.at(rows, CONTEXT) / plain


def _by_length(
    rate: float, cost: float, length: int, options: Mapping[str, Any]
) -> tuple[go.Figure, str]:
    """The speed-up by length, and as HTML the verdict, what the chosen length and the best one
    give, and where the break-even lies.
    """
    lengths = range(1, max(length, *LENGTHS) + 1)
    rows = [chain_map([rate], [cost], lengths=[one], **options)[0] for one in lengths]
    table = pd.DataFrame(rows).assign(tokens_per_round=[chain_tokens(rate, n) for n in lengths])
    title = f"At acceptance rate {rate:.3g} and cost {cost:.3g}, by length"
    best = table.iloc[table.speed_up.argmax()]
    speculate = f"Speculate, with {counted(best.length)} per round."
    verdict = speculate if best.speed_up > 1 else "Do not speculate: no length pays."
    chains = {f"as set: {length}": table.iloc[length - 1], f"the best: {best.length:.0f}": best}
    shown = [
        (name, one.tokens_per_round, one.tokens_per_round / one.speed_up, one.speed_up)
        for name, one in chains.items()
    ]
    heads = ("a chain", "tokens per round", "target passes per round", "times plain decoding")
    even = theory.chain_break_even(rate, cost, **options)
    least = "no acceptance rate pays"
    most = "even a free draft does not pay"
    if even.acceptance_rate is not None:
        least = f"{even.acceptance_rate:.2f} of the guesses or more must be right"
    if even.cost is not None:
        most = f"a draft pass may cost up to {even.cost:.2f} target passes"
    words = f"<b>{verdict}</b>{aligned_table(heads, shown)}"
    words += f"Break-even: at this cost {least}; at this acceptance rate {most}.<br>"
    return figures.chain_lengths(table, length=length, title=title), words
