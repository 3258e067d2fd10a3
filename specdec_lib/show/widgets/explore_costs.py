"""The explorers of costs: what a pass takes over so many rows, and whether a chain pays."""

from collections.abc import Mapping
from itertools import pairwise

import pandas as pd

from specdec_lib.measure import latency
from specdec_lib.show import figures
from specdec_lib.show.widgets.knobs import choice, slider
from specdec_lib.show.widgets.panel import Panel, Shown, bullets, counted
from specdec_lib.theory import Verify, chain_break_even, chain_map, chain_tokens
from specdec_lib.theory.planner import BreakEven

SECONDS = ("seconds", "roofline_seconds")
SHARES = [step / 50 for step in range(51)]  # what an acceptance rate or a cost may be
MAP_RATES, MAP_COSTS = [step / 40 for step in range(2, 40)], [step / 40 for step in range(41)]
HOSTS = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1.0, 2.0)
LENGTHS = range(1, 13)
BEST, AS_SET = "the best length", "the length set"
RATE = "how often a guess is accepted, where it is tried"
PRICE = "seconds of a draft pass ÷ of a target pass over one row"
HOST = "seconds of a round outside the models, beyond those of plain decoding, in target passes"
KNOBS = {
    "acceptance_rate": slider(SHARES, 0.5, RATE, digits=".3g", widen=True, label="acceptance rate"),
    "cost": slider(SHARES, 0.1, PRICE, digits=".3g", widen=True),
    "length": slider(LENGTHS, 4, "guesses per round, a draft pass each"),
    "host": slider(HOSTS, 0.0, HOST),
}


def latency_explorer(curves: pd.DataFrame) -> Panel:
    """Knobs over `figures.pass_at`: model, runtime, rows and context of a pass.

    curves    of `latency.with_roofline`, every model timed in every runtime

    Between measured rows and contexts the seconds lie on straight lines.  Raises ValueError for a
    table that `latency.pass_tables` refuses, or a model that was not timed in every runtime.
    """
    models, runtimes = list(curves.model.unique()), list(curves.runtime.unique())
    for (model, runtime), passes in pd.crosstab(curves.model, curves.runtime).stack().items():
        if not passes:
            raise ValueError(f"every model is timed in every runtime; {model} is not in {runtime}")
    tables = {
        runtime: {name: latency.pass_tables(curves, runtime, column=name) for name in SECONDS}
        for runtime in runtimes
    }
    counts, contexts = range(1, int(curves.rows.max()) + 1), sorted({*curves.context_tokens})

    def draw(model: str, runtime: str, rows: int, context: int) -> Shown:
        measured = curves[(curves.model == model) & (curves.runtime == runtime)]
        line = pd.DataFrame({"rows": list(counts)})
        for column, passes in tables[runtime].items():
            line[column] = [passes[model].at(count, context) for count in counts]
        title = f"{model}, {runtime}: a pass over {rows} rows after {context} tokens"
        figure = figures.pass_at(measured, line, rows=rows, title=title)
        return Shown((figure,), bullets(_pass_words(measured, line, rows, context)))

    between = sorted({*contexts, *((low + high) // 2 for low, high in pairwise(contexts))})
    verified = "tokens read in the pass: the last one, and the guesses that it verifies"
    knobs = {
        "model": choice(models),
        "runtime": choice(runtimes),
        "rows": slider(counts, min(4, len(counts)), verified),
        "context": slider(between, contexts[len(contexts) // 2], "tokens that were read before"),
    }
    return Panel(knobs, draw)


def _pass_words(measured: pd.DataFrame, line: pd.DataFrame, rows: int, context: int) -> list[str]:
    """Seconds of a pass, their ratio to one row's, and the roofline's."""
    one, here = (line[line.rows == count].iloc[0] for count in (1, rows))
    spot = measured[(measured.rows == rows) & (measured.context_tokens == context)]
    how = "between measured ones, on straight lines"
    if len(spot):
        low, high = (1e3 * spot[name].iloc[0] for name in ("low_seconds", "high_seconds"))
        how = f"half of the measured passes took {low:.2f} to {high:.2f}"
    ratio, bound = here.seconds / one.seconds, here.roofline_seconds
    return [
        f"{1e3 * here.seconds:.2f} ms ({how}), {1e3 * here.seconds / rows:.2f} ms per row",
        f"{ratio:.2f} times a pass over one row: {rows - 1} guesses to verify cost"
        f" {ratio - 1:+.0%} of a pass",
        f"the machine would allow {1e3 * bound:.2f} ms (bandwidth or arithmetic):"
        f" {bound / here.seconds:.0%} of what it takes",
    ]


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
    Raises ValueError if there is no curve, or a start is out of range.
    """
    curves, start = dict(verify), {"acceptance_rate": acceptance_rate, "cost": cost}
    if not curves or not (0 <= acceptance_rate <= 1 and cost >= 0):
        wanted = "a curve of the target, a rate in [0, 1] and a cost of 0 or more"
        raise ValueError(f"the map needs {wanted}, got {len(curves)} curves and {start}")

    def draw(
        acceptance_rate: float, cost: float, length: int, host: float, verify: str, map: str
    ) -> Shown:
        at, options = (acceptance_rate, cost), {"verify": curves[verify], "overhead": host}
        mapped, which = [length], f"a chain of {length}"
        if map == BEST:
            mapped, which = LENGTHS, "the best chain"
        title = f"Predicted speed-up of {which}; {verify}; host {host:g}"
        cells = pd.DataFrame(chain_map(MAP_RATES, MAP_COSTS, lengths=mapped, **options))
        speed_ups = figures.break_even(cells, points, here=at, title=title)
        rows = [chain_map(at[:1], at[1:], lengths=[one], **options)[0] for one in LENGTHS]
        table = pd.DataFrame(rows)
        table["tokens_per_round"] = [chain_tokens(acceptance_rate, one) for one in LENGTHS]
        title = f"At acceptance rate {acceptance_rate:.3g} and cost {cost:.3g}, by length"
        bars = figures.chain_lengths(table, length=length, title=title)
        even = chain_break_even(*at, lengths=LENGTHS, **options)
        return Shown((speed_ups, bars), _words(table, length, even))

    knobs = {
        "verify": choice(list(curves), "cost of a target pass over more rows"),
        "map": choice((BEST, AS_SET), "which length the map shows", label="map of"),
    }
    return Panel(KNOBS | knobs, draw, start=start)


def _words(table: pd.DataFrame, length: int, even: BreakEven) -> str:
    """The verdict, what the chain of that length gives, and where the break-even lies, as HTML."""
    best, chosen = table.loc[table.speed_up.idxmax()], table[table.length == length].iloc[0]
    speculate = f"Speculate, with {counted(best.length)} per round."
    verdict = speculate if best.speed_up > 1 else "Do not speculate: no length pays."
    least, most = "no acceptance rate pays", "even a free draft does not pay"
    if even.acceptance_rate is not None:
        least = f"{even.acceptance_rate:.2f} of the guesses or more must be right"
    if even.cost is not None:
        most = f"a draft pass may cost up to {even.cost:.2f} target passes"
    tokens = chosen.tokens_per_round
    lines = [
        f"a chain of {length}: {tokens:.2f} tokens per round in the time of"
        f" {tokens / chosen.speed_up:.2f} target passes, {chosen.speed_up:.2f} times plain"
        " decoding",
        f"the best length is {best.length:.0f}: {best.speed_up:.2f} times",
        f"break-even: at this cost {least}; at this acceptance rate {most}",
    ]
    return f"<p><b>{verdict}</b></p>{bullets(lines)}"
