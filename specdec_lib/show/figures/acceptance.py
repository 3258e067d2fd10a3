"""Figures of acceptance rates: by depth, rank, kind, confidence and gap, and of yields."""

from itertools import pairwise

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from specdec_lib.core.tree import MatchTable
from specdec_lib.show.figures.forms.bars import add_bars
from specdec_lib.show.figures.forms.cells import add_cells
from specdec_lib.show.figures.forms.chart import PLAIN, open_chart
from specdec_lib.show.figures.forms.dots import add_dots
from specdec_lib.show.figures.forms.lines import add_diagonal
from specdec_lib.show.figures.marks import check, ends_of, lanes, marks, names_of, shorts
from specdec_lib.show.figures.theme import INK, SOURCES, Look, looks

RATES = ("rate", "low", "high", "at_risk", "series")
MOST_TICKS = 24
WIDEST = 26  # pixels across the dot of the most tokens


def acceptance(table: pd.DataFrame, *, x: str, x_title: str, log_x: bool = False) -> go.Figure:
    """Acceptance rates as dots with intervals, joined by a line per series; a NaN rate draws
    nothing.

    table    a row per dot: the column that `x` names, `rate`, `low` and `high` (ends of the
             interval), `at_risk` (tokens tried), `series`
    log_x    whether equal factors of `x` are equally far apart
    """
    check(table, (x, *RATES))
    if log_x and not table[x].min() > 0:
        raise ValueError(f"a logarithmic axis shows {x} above 0, got {table[x].min()}")
    rows = _rates(table.sort_values(x, kind="stable"), x)
    chart = open_chart(size=(760, 384), x=x_title, y="acceptance rate")
    add_dots(chart, rows, looks(table["series"]), joined=2)
    chart.update_axes("x", {"type": "log" if log_x else "linear", "showline": True})
    values = sorted(set(table[x]))
    if not log_x and len(values) <= MOST_TICKS and all(float(one).is_integer() for one in values):
        chart.update_axes("x", {"tickvals": values})
    chart.update_axes("y", {"range": [0, 1.02]})
    return chart.titled(f"How often a guess is accepted, by {x_title.split(',')[0]}")


def kinds(table: pd.DataFrame, *, x_title: str) -> go.Figure:
    """Acceptance rates as dots with intervals and their values, a place on the axis per kind and a
    dot per series.

    table    a row per dot: `kind`, `rate`, `low`, `high`, `at_risk` (tokens tried), `series`; a NaN
             rate draws nothing
    """
    check(table, ("kind", *RATES))
    place = lanes(table["kind"], table["series"], room=0.6)
    rows = _rates(table.assign(place=place, text=shorts(table["rate"])), "place")
    chart = open_chart(size=(760, 384), x=x_title, y="acceptance rate")
    add_dots(chart, rows, looks(table["series"]), size=11)
    chart.name_places("x", names_of(table["kind"]))
    chart.update_axes("y", {"range": [0, 1.08]})
    return chart.titled(f"How often a guess is accepted, by {x_title.split(',')[0]}")


def calibration(table: pd.DataFrame) -> go.Figure:
    """Acceptance rate against the draft's confidence, a dot with an interval per bin; the larger
    its area, the more tokens are in it.

    table    a row per bin: `confidence` (mean of the bin), `rate`, `low`, `high`, `at_risk` (tokens
             tried), `series`
    """
    check(table, ("confidence", *RATES))
    rows = _rates(table.sort_values("confidence", kind="stable"), "confidence")
    share = table["at_risk"] / max(1.0, float(table["at_risk"].max()))
    rows = rows.assign(size=(WIDEST * np.sqrt(share)).clip(lower=3))
    chart = open_chart(size=(600, 540), x="confidence of the draft", y="acceptance rate")
    add_diagonal(chart, (0, 1), name="perfectly calibrated")
    add_dots(chart, rows, looks(table["series"]), joined=1)
    chart.figure.update_layout(legend={"itemsizing": "constant"})
    _make_square(chart.figure, (-0.02, 1.02))
    return chart.titled("Is the draft's confidence right? Areas are numbers of tokens")


def predictions(table: pd.DataFrame) -> go.Figure:
    """Measured tokens per round against predicted ones; on the line they agree, in the band they do
    to 5 %.

    table    a row per dot: `name`, `predicted`, `measured`, `low` and `high` (interval of the
             measured), optionally `series`
    """
    check(table, ("name", "predicted", "measured", "low", "high"))
    series = table["series"] if "series" in table else "measured, with interval"
    rows = marks(
        table.assign(series=series, note=table["name"]),
        x="predicted",
        y="measured",
        series="series",
        ends=("low", "high"),
    )
    chart = open_chart(
        size=(600, 540), x="predicted tokens per round", y="measured tokens per round"
    )
    ends = _span(table)
    add_diagonal(chart, ends, name="as predicted", near=0.05)
    add_dots(chart, rows, looks(rows["series"]))
    _make_square(chart.figure, ends)
    return chart.titled("Measured against predicted: on the line they agree")


def _span(table: pd.DataFrame) -> tuple[float, float]:
    """The ends of both axes: everything, with a little room."""
    values = table[["predicted", "measured", "low", "high"]].astype(float)
    low, high = float(values.min().min()), float(values.max().max())
    room = 0.08 * (high - low) or 0.1 * abs(high) or 1.0
    return low - room, high + room


def _make_square(figure: go.Figure, ends: tuple[float, float]) -> None:
    figure.update_xaxes(range=ends, constrain="domain")
    figure.update_yaxes(range=ends, constrain="domain", scaleanchor="x")


def _rates(table: pd.DataFrame, x: str) -> pd.DataFrame:
    """Rates as marks; each says over how many tokens it is."""
    notes = [f"{count:,.0f} tokens at risk" for count in table["at_risk"]]
    return marks(table.assign(note=notes), x=x, y="rate", series="series", ends=("low", "high"))


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


def gaps(table: pd.DataFrame) -> go.Figure:
    """P(match | rank, gap) as cells with the numbers in them: ranks from the top down, gaps from
    the left.

    table    a row per cell: `gap` (the bin's name, in order), `rank` from 0, `rate`; a missing cell
             stays empty
    """
    check(table, ("gap", "rank", "rate"), once=("gap", "rank"))
    grid = table.pivot(index="rank", columns="gap", values="rate")[names_of(table["gap"])]
    grid.index = [f"rank {rank}" for rank in grid.index]
    chart = open_chart(
        size=(760, 86 + 38 * len(grid)),
        x="gap to the best guess in nats; for rank 0, its lead over the second",
        y="rank of the guess",
    )
    add_cells(chart, grid, name="rate", ends=(0, 1))
    chart.update_axes("y", {"autorange": "reversed"})
    return chart.titled("How often a guess matches the target, by its rank and gap")


def yields(table: pd.DataFrame, *, bonus: bool = True) -> go.Figure:
    """Tokens per round: a lying bar per series of accepted guesses and, hatched behind it, the
    token that the target adds to every round.

    table    a row per series, as of `acceptance.tokens`: `series`, `rounds`, `tokens_per_round` and
             `accepted_per_round`, both with `_low` and `_high` (NaN: no interval)
    bonus    False leaves the target's token out, and shows the interval of what is left
    """
    both = ("tokens_per_round", "accepted_per_round")
    ends = [f"{name}_{end}" for name in both for end in ("low", "high")]
    check(table, ("series", "rounds", *both, *ends), once=("series",))
    table = table.assign(place=range(len(table)))
    ends, value = (ends[:2], both[0]) if bonus else (ends[2:], both[1])
    whole = marks(table, x=value, y="place", ends=ends, value=value)
    guessed = whole.assign(x=whole["accepted_per_round"], series="accepted guesses")
    own = whole.assign(
        x=whole["x"] - guessed["x"], base=guessed["x"], series="the target's own token"
    )
    notes = [f"over {count:,} rounds" for count in table["rounds"]]
    styles = {
        "accepted guesses": Look(SOURCES["draft"]),
        "the target's own token": Look(SOURCES["target"], hatch="/"),
        "": Look(INK),
    }
    words = "tokens per round" if bonus else "accepted guesses per round"
    chart = open_chart(size=(760, 84 + 34 * len(table)), x=words, y="")
    plain = guessed.drop(columns=["low", "high"]).assign(note=notes)
    add_bars(chart, plain, styles, lying=True)
    if bonus:
        add_bars(chart, own.drop(columns=["low", "high"]).assign(note=notes), styles, lying=True)
    add_dots(chart, whole.assign(text=shorts(whole["x"])), styles, lying=True, size=5)
    chart.figure.add_vline(x=1 if bonus else 0, **PLAIN)
    chart.update_axes("x", {"range": [0, 1.15 * max(1.0, float(ends_of(whole, "x").max()))]})
    chart.name_places("y", [str(name) for name in table["series"]])
    never = 1 if bonus else 0
    return chart.titled(f"{words.capitalize()}; a draft that is never right gives {never} (dotted)")
