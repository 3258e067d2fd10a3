"""Figures of acceptance rates: by depth, rank, kind, confidence and gap, and of yields."""

from itertools import pairwise

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from specdec_lib.core.tree import MatchTable
from specdec_lib.show.figures.chart import PLAIN, open_chart
from specdec_lib.show.figures.forms import add_bars, add_cells, add_diagonal, add_dots
from specdec_lib.show.figures.marks import Numbers, check, lanes, marks, names_of
from specdec_lib.show.figures.theme import INK, SOURCES, Look

RATES = "rate low high at_risk series"
ENDS = "low rate high"
MOST_TICKS = 24
WIDEST = 26  # pixels across the dot of the most tokens
GUESSED, OWN = "accepted guesses", "the target's own token"
YIELDS = {
    GUESSED: Look(SOURCES["draft"]),
    OWN: Look(SOURCES["target"], hatch="/"),
    "": Look(INK),
}


def acceptance(table: pd.DataFrame, *, x: str, x_title: str, log_x: bool = False) -> go.Figure:
    """Acceptance rates as dots with intervals, joined by a line per series.

    table    the column that `x` names, `rate` (NaN draws nothing), `low`, `high`, `at_risk`,
             `series`
    log_x    whether equal factors of `x` are equally far apart
    """
    check(table, "", f"{x} {RATES}")
    if log_x and not table[x].min() > 0:
        raise ValueError(f"a logarithmic axis shows {x} above 0, got {table[x].min()}")
    chart = open_chart(size=(760, 384), x=x_title, y="acceptance rate")
    add_dots(chart, _rates(table.sort_values(x, kind="stable"), x), joined=2)
    chart.figure.update_xaxes(type="log" if log_x else "linear", showline=True)
    values = sorted(set(table[x]))
    if not log_x and len(values) <= MOST_TICKS and all(float(one).is_integer() for one in values):
        chart.figure.update_xaxes(tickvals=values)
    chart.figure.update_yaxes(range=[0, 1.02])
    return chart.titled(f"How often a guess is accepted, by {x_title.split(',')[0]}")


def kinds(table: pd.DataFrame, *, x_title: str) -> go.Figure:
    """Acceptance rates as dots with intervals and their values, a place on the axis per kind and a
    dot per series.

    table    `kind`, `rate` (NaN draws nothing), `low`, `high`, `at_risk`, `series`
    """
    check(table, "", f"kind {RATES}")
    place = lanes(table["kind"], table["series"], room=0.6)
    chart = open_chart(size=(760, 384), x=x_title, y="acceptance rate")
    add_dots(chart, _rates(table, place, text="rate"), size=11)
    chart.name_places("x", names_of(table["kind"]))
    chart.figure.update_yaxes(range=[0, 1.08])
    return chart.titled(f"How often a guess is accepted, by {x_title.split(',')[0]}")


def calibration_curve(table: pd.DataFrame) -> go.Figure:
    """Acceptance rate against the draft's confidence, a dot with an interval per bin; the larger
    its area, the more tokens are in it.

    table    `confidence` (mean of the bin), `rate`, `low`, `high`, `at_risk`, `series`
    """
    check(table, "", f"confidence {RATES}")
    share = table["at_risk"] / max(1.0, float(table["at_risk"].max()))
    sized = table.assign(size=(WIDEST * np.sqrt(share)).clip(lower=3))
    chart = open_chart(size=(600, 540), x="confidence of the draft", y="acceptance rate")
    add_diagonal(chart, (0, 1), name="perfectly calibrated")
    add_dots(chart, _rates(sized.sort_values("confidence", kind="stable"), "confidence"), joined=1)
    chart.figure.update_layout(legend={"itemsizing": "constant"})
    _make_square(chart.figure, (-0.02, 1.02))
    return chart.titled("Is the draft's confidence right? Areas are numbers of tokens")


def _rates(table: pd.DataFrame, x: Numbers, text: str = "") -> pd.DataFrame:
    """Rates as marks; each says over how many tokens it is."""
    notes = [f"{count:,.0f} tokens at risk" for count in table["at_risk"]]
    return marks(table.assign(note=notes), x, "rate", series="series", ends=ENDS, text=text)


def predicted_tokens(table: pd.DataFrame) -> go.Figure:
    """Measured tokens per round against predicted ones; on the line they agree, in the band they do
    to 5 %.

    table    `name`, `predicted`, `measured`, `low` and `high` (interval of the measured),
             optionally `series`
    """
    check(table, "", "name predicted measured low high")
    if "series" not in table:
        table = table.assign(series="measured, with interval")
    noted = table.assign(note=table["name"])
    rows = marks(noted, "predicted", "measured", series="series", ends="low measured high")
    values = table[["predicted", "measured", "low", "high"]].astype(float)
    low, high = float(values.min().min()), float(values.max().max())
    room = 0.08 * (high - low) or 0.1 * abs(high) or 1.0
    x, y = "predicted tokens per round", "measured tokens per round"
    chart, ends = open_chart(size=(600, 540), x=x, y=y), (low - room, high + room)
    add_diagonal(chart, ends, name="as predicted", near=0.05)
    add_dots(chart, rows)
    _make_square(chart.figure, ends)
    return chart.titled("Measured against predicted: on the line they agree")


def _make_square(figure: go.Figure, ends: tuple[float, float]) -> None:
    figure.update_xaxes(range=ends, constrain="domain")
    figure.update_yaxes(range=ends, constrain="domain", scaleanchor="x")


def gap_table(match: MatchTable) -> pd.DataFrame:
    """A match table as rows: gap (the bin's name), rank, rate.

    Raises ValueError if it does not look at gaps.
    """
    if not match.edges:
        raise ValueError(f"match table {match.name!r} does not look at gaps")
    names = [f"{low:g}–{high:g}" for low, high in pairwise((0.0, *match.edges))]
    names.append(f"{match.edges[-1]:g} and more")
    rows = [
        (name, rank, rate)
        for name, rates in zip(names, match.binned, strict=True)
        for rank, rate in enumerate(rates)
    ]
    return pd.DataFrame(rows, columns=["gap", "rank", "rate"])


def match_rates(table: pd.DataFrame) -> go.Figure:
    """P(match | rank, gap) as cells with the numbers in them: ranks from the top down, gaps from
    the left.

    table    `gap` (the bin's name, in order), `rank` from 0, `rate`; a missing cell stays empty
    """
    check(table, "gap rank", "rate")
    grid = table.pivot(index="rank", columns="gap", values="rate")[names_of(table["gap"])]
    grid.index = [f"rank {rank}" for rank in grid.index]
    x = "gap to the best guess in nats; for rank 0, its lead over the second"
    chart = open_chart(size=(760, 86 + 38 * len(grid)), x=x, y="rank of the guess")
    add_cells(chart, grid, name="rate", ends=(0, 1))
    chart.figure.update_yaxes(autorange="reversed")
    return chart.titled("How often a guess matches the target, by its rank and gap")


def yields(table: pd.DataFrame, *, bonus: bool = True) -> go.Figure:
    """Tokens per round: a lying bar per series of accepted guesses and, hatched behind it, the
    token that the target adds to every round.

    table    as of `acceptance.tokens`: `series`, `rounds`, `tokens_per_round` and
             `accepted_per_round`, both with `_low` and `_high` (NaN: no interval)
    bonus    False leaves the target's token out, and shows the interval of what is left
    """
    both = ("tokens_per_round", "accepted_per_round")
    ends = [f"{name}_low {name} {name}_high" for name in both]
    check(table, "series", " ".join(("rounds", *ends)))
    value, ends = (both[0], ends[0]) if bonus else (both[1], ends[1])
    whole = marks(table, value, range(len(table)), ends=ends, text=value)
    notes = [f"over {count:,} rounds" for count in table["rounds"]]
    bars = whole.drop(columns=["low", "high", "text"]).assign(note=notes)
    guessed = bars.assign(x=bars["accepted_per_round"], series=GUESSED)
    words = "tokens per round" if bonus else "accepted guesses per round"
    chart = open_chart(size=(760, 84 + 34 * len(table)), x=words)
    add_bars(chart, guessed, YIELDS, lying=True)
    if bonus:
        own = bars.assign(x=bars["x"] - guessed["x"], base=guessed["x"], series=OWN)
        add_bars(chart, own, YIELDS, lying=True)
    add_dots(chart, whole, YIELDS, lying=True, size=5)
    never = 1 if bonus else 0
    chart.figure.add_vline(x=never, **PLAIN)
    chart.start_at_zero("x", whole, 1.15, least=1.0)
    chart.name_places("y", names_of(table["series"]))
    return chart.titled(f"{words.capitalize()}; a draft that is never right gives {never} (dotted)")
