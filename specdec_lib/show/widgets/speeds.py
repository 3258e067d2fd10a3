"""What a pass takes, when a chain pays, and what a faster draft or a faster host would bring."""

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import ipywidgets
import pandas as pd
import plotly.graph_objects as go

from specdec_lib.measure import latency
from specdec_lib.show import figures
from specdec_lib.show.widgets.knobs import labelled, look, slider
from specdec_lib.show.widgets.panel import Panel, Shown
from specdec_lib.theory import (
    Gain,
    Overhead,
    PassTable,
    Verify,
    chain_break_even,
    chain_map,
    chain_tokens,
)

SHARES = tuple(step / 50 for step in range(51))  # what an acceptance rate or a cost may be
RATES, COSTS = (
    tuple(step / 40 for step in range(2, 40)),
    tuple(step / 40 for step in range(41)),
)  # of the map
HOST = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1.0, 2.0)
LONGEST = 12
BEST, AS_SET = "the best length", "the length set"


def latency_explorer(curves: pd.DataFrame) -> Panel:
    """Knobs over `figures.pass_at`: model, runtime, rows and context of a pass, its seconds by the
    measured curves, and the roofline's.

    curves    of `latency.curves`; with the columns of `latency.with_roofline`, the roofline is
              drawn too

    Between measured rows and contexts the seconds lie on straight lines.  Raises ValueError for a
    table that `latency.tables` refuses.
    """
    made = _Passes(curves, {name: _tables(curves, name) for name in dict.fromkeys(curves.runtime)})
    rows, contexts = range(1, int(curves.rows.max()) + 1), sorted({*curves.context_tokens})
    between = sorted({*contexts, *((low + high) // 2 for low, high in pairwise(contexts))})
    knobs = {
        name: ipywidgets.Dropdown(
            options=list(dict.fromkeys(curves[name])), description=name, **look(name)
        )
        for name in ("model", "runtime")
    }
    knobs["rows"] = slider(
        "rows",
        rows,
        min(4, len(rows)),
        tooltip="tokens read in the pass: the last one, and the guesses that it verifies",
    )
    knobs["context"] = slider(
        "context", between, contexts[len(contexts) // 2], tooltip="tokens that were read before"
    )
    return Panel(knobs, made.draw)


def _tables(curves: pd.DataFrame, runtime: str) -> dict[str, dict[str, PassTable]]:
    """Per model what is measured of a pass, by column."""
    columns = [name for name in ("seconds", "roofline_seconds") if name in curves]
    found = {column: latency.tables(curves, runtime, column=column) for column in columns}
    return {
        model: {column: tables[model] for column, tables in found.items()}
        for model in found["seconds"]
    }


@dataclass(frozen=True, eq=False)
class _Passes:
    """What the knobs of `latency_explorer` mean."""

    curves: pd.DataFrame
    tables: Mapping[str, Mapping[str, Mapping[str, PassTable]]]

    def draw(self, *, model: str, runtime: str, rows: int, context: int) -> Shown:
        """The curve with the pass on it, and what it says."""
        tables = self.tables[runtime].get(model)
        if tables is None:
            raise ValueError(
                f"{model} was not timed with runtime {runtime!r}, there are"
                f" {', '.join(self.tables[runtime])}"
            )
        measured = self.curves[(self.curves.model == model) & (self.curves.runtime == runtime)]
        counts = list(range(1, int(measured.rows.max()) + 1))
        if rows not in counts:
            raise ValueError(
                f"{model} was timed over up to {counts[-1]} rows with runtime {runtime!r}, got"
                f" {rows}"
            )
        line = pd.DataFrame(
            {"rows": counts}
            | {
                column: [table.at(count, context) for count in counts]
                for column, table in tables.items()
            }
        )
        title = f"{model}, {runtime}: a pass over {rows} rows after {context} tokens"
        return Shown(
            (figures.pass_at(measured, line, rows=rows, title=title),),
            _listed(self.words(measured, line, rows, context)),
        )

    def words(
        self, measured: pd.DataFrame, line: pd.DataFrame, rows: int, context: int
    ) -> list[str]:
        """Seconds, their ratio to one row's, and the roofline's."""
        one, here = (line[line.rows == count].iloc[0] for count in (1, rows))
        spot = measured[(measured.rows == rows) & (measured.context_tokens == context)]
        how = "between measured ones, on straight lines"
        if len(spot):
            how = f"half of the measured passes took {1e3 * spot.low_seconds.iloc[0]:.2f} to {1e3 * spot.high_seconds.iloc[0]:.2f}"
        ratio = here.seconds / one.seconds
        lines = [
            f"{1e3 * here.seconds:.2f} ms ({how}), {1e3 * here.seconds / rows:.2f} ms per row",
            f"{ratio:.2f} times a pass over one row: {rows - 1} guesses to verify cost"
            f" {ratio - 1:+.0%} of a pass",
        ]
        if "roofline_seconds" in line:
            bound = here.roofline_seconds
            lines.append(
                f"the machine would allow {1e3 * bound:.2f} ms (bandwidth or arithmetic):"
                f" {bound / here.seconds:.0%} of what it takes"
            )
        return lines


def break_even_explorer(
    verify: Mapping[str, Verify | None],
    points: pd.DataFrame,
    *,
    acceptance_rate: float = 0.7,
    cost: float = 0.2,
    longest: int = LONGEST,
) -> Panel:
    """Knobs over `figures.break_even` and `figures.chain_lengths`: does a chain pay, and which?

    verify             curves by name: what a target pass over so many rows costs, over that of one
                       row; None is flat
    points             our pairs: `pair`, `acceptance_rate`, `cost`
    acceptance_rate    where the knob stands first
    cost               the same, of a draft pass ÷ a target pass
    longest            guesses of the longest chain

    The knobs are acceptance_rate, cost, length (guesses per round), host (seconds of a round
    outside the models beyond those of plain decoding, in target passes), verify and map (of the
    best length everywhere, or of the one set).
    Raises ValueError if there is no curve, no guess in the longest chain, or a start is out of
    range.
    """
    if not verify or longest < 1 or not (0 <= acceptance_rate <= 1 and cost >= 0):
        raise ValueError(
            "the map needs a curve of the target, a chain of at least 1 guess, a rate in [0, 1]"
            f" and a cost of 0 or more, got {len(verify)} curves,"
            f" longest={longest}, acceptance_rate={acceptance_rate}, cost={cost}"
        )
    made = _BreakEven(dict(verify), points, longest)
    knobs = {
        "acceptance_rate": labelled(
            "acceptance rate",
            SHARES,
            acceptance_rate,
            tooltip="how often a guess is accepted, where it is tried",
        ),
        "cost": labelled(
            "cost", SHARES, cost, tooltip="seconds of a draft pass ÷ of a target pass over one row"
        ),
        "length": slider(
            "length",
            range(1, longest + 1),
            min(4, longest),
            tooltip="guesses per round, a draft pass each",
        ),
        "host": slider(
            "host",
            HOST,
            0.0,
            tooltip="seconds of a round outside the models, beyond those of plain decoding, in target passes",
        ),
        "verify": ipywidgets.Dropdown(
            options=list(verify),
            description="verify",
            **look("verify", "what a target pass over more rows costs"),
        ),
        "map": ipywidgets.Dropdown(
            options=[BEST, AS_SET],
            description="map of",
            **look("map", "which length the map shows"),
        ),
    }
    return Panel(knobs, made.draw)


@dataclass(frozen=True, eq=False)
class _BreakEven:
    """What the knobs of `break_even_explorer` mean."""

    curves: Mapping[str, Verify | None]
    points: pd.DataFrame
    longest: int

    def draw(
        self,
        *,
        acceptance_rate: float,
        cost: float,
        length: int,
        host: float,
        verify: str,
        map: str,
    ) -> Shown:
        """The map with the pair on it, its speed-up by length, and the verdict."""
        curve, lengths = self.curves[verify], range(1, self.longest + 1)
        cells = pd.DataFrame(
            chain_map(
                RATES, COSTS, curve, lengths=[length] if map == AS_SET else lengths, overhead=host
            )
        )
        which = f"a chain of {length}" if map == AS_SET else "the best chain"
        first = figures.break_even(
            cells,
            self.points,
            here=(acceptance_rate, cost),
            title=f"Speed-up of {which}; {verify}; host {host:g}",
        )
        each = [
            chain_map([acceptance_rate], [cost], curve, lengths=[count], overhead=host)[0]
            for count in lengths
        ]
        table = pd.DataFrame(each).assign(
            tokens_per_round=[chain_tokens(acceptance_rate, count) for count in lengths]
        )
        second = figures.chain_lengths(
            table,
            length=length,
            title=f"At acceptance rate {acceptance_rate:.3g} and cost {cost:.3g}, by length",
        )
        even = chain_break_even(acceptance_rate, cost, curve, lengths=lengths, overhead=host)
        best = table.loc[table.speed_up.idxmax()]
        guesses = "1 guess" if best.length == 1 else f"{best.length:.0f} guesses"
        verdict = (
            f"Speculate, with {guesses} per round."
            if best.speed_up > 1
            else "Do not speculate: no length pays."
        )
        least = (
            "no acceptance rate pays"
            if even.acceptance_rate is None
            else f"{even.acceptance_rate:.2f} of the guesses or more must be right"
        )
        most = (
            "even a free draft does not pay"
            if even.cost is None
            else f"a draft pass may cost up to {even.cost:.2f} target passes"
        )
        chosen = table[table.length == length].iloc[0]
        lines = [
            f"a chain of {length}: {chosen.tokens_per_round:.2f} tokens per round in the time of"
            f" {chosen.tokens_per_round / chosen.speed_up:.2f}"
            f" target passes, {chosen.speed_up:.2f} times plain decoding",
            f"the best length is {best.length:.0f}: {best.speed_up:.2f} times",
            f"break-even: at this cost {least}; at this acceptance rate {most}",
        ]
        return Shown((first, second), f"<p><b>{verdict}</b></p>{_listed(lines)}")


def _listed(lines: Sequence[str]) -> str:
    return "<ul>" + "".join(f"<li>{html.escape(one)}</li>" for one in lines) + "</ul>"


def faster_draft(
    gains: Callable[[Mapping[str, PassTable], Overhead, Overhead], Sequence[Gain]],
    tables: Mapping[str, PassTable],
    overheads: tuple[Overhead, Overhead],
    *,
    draft: float,
    host: float,
) -> go.Figure:
    """Speed-up against the budget if the draft were `draft` times as fast as its table says, and
    all outside the models `host` times.

    gains        (tables, overhead of a tree's round, overhead of a plain one) to gains, one per
                 budget and depth, such as of `theory.tree_gains`
    overheads    both, as measured
    """
    faster = dict(tables) | {"draft": tables["draft"].faster(draft)}
    found = pd.DataFrame(
        gains(
            faster,
            *(
                Overhead(one.round / host, one.guess / host, one.draft_pass / host)
                for one in overheads
            ),
        )
    )
    said = f"draft {draft:g} × as fast, host {host:g} ×: {max(found.speed_up):.2f} times plain decoding"
    return figures.speed_ups(found.drop(columns="width")).update_layout(
        title={"text": said}, height=500, margin={"t": 96}
    )
