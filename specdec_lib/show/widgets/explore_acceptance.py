"""The explorer of acceptance: of which guesses, by what, and whether the bonus counts."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import ipywidgets
import numpy as np
import pandas as pd
import plotly.graph_objects as go

from specdec_lib.measure import acceptance
from specdec_lib.show import figures
from specdec_lib.show.widgets.bookmark import Bookmark
from specdec_lib.show.widgets.knobs import Values, choice, slider
from specdec_lib.show.widgets.panel import Panel, Shown
from specdec_lib.show.widgets.words import aligned_table

EVERY = "all"
NOTHING = "nothing"
SLICES = ("draft", "domain", "temperature", "rule")
AXES = {
    "depth": "depth of the guess, 1 below the root",
    "rank": "rank among its siblings, from 0",
    "parent_rank": "rank of its parent, −1 at depth 1",
    "siblings": "guesses beside it, itself included",
    "source": "who guessed",
    "confidence": "the draft's confidence",
    "gap": "gap to the best guess in nats; for rank 0, its lead over the second",
    "repetition": "share of the text's tokens that continue a loop",
    **{name: name for name in SLICES},
}
BINS = {
    "confidence": (0.0, 0.05, *(tenth / 10 for tenth in range(1, 11))),
    "repetition": (0.0, 0.1, 0.3, 0.5, 1.0),
}
PER = {"node": "one of a node's guesses is accepted", "guess": "a guess is accepted"}
LEASTS = (1, 5, 10, 20, 50, 100, 200, 500)


def acceptance_explorer(
    guesses: pd.DataFrame, rounds: pd.DataFrame, *, start: Values | None = None
) -> Panel:
    """Knobs over `figures.acceptance` or `figures.kinds`, and `figures.yields` below.

    guesses    of `acceptance.collect`, with further columns that become axes: `repetition` of the
               text (0–1), and `gap` (see `acceptance.with_gaps`)
    rounds     of the same call, with the same labels
    start      where some knobs start
    """
    slices = [name for name in SLICES if name in rounds and rounds[name].nunique() > 1]

    def draw(by: str, per: str, line: str, least: int, bonus: bool, **at: Any) -> Shown:
        some = guesses
        turns = rounds
        for name in slices:
            if at[name] != EVERY:
                some, turns = (table[table[name] == at[name]] for table in (some, turns))
        if some.empty or turns.empty:
            chosen = ", ".join(f"{name} {value}" for name, value in at.items())
            raise ValueError(f"there is no guess of {chosen or 'any kind'}: choose others")
        keys = [] if line in (NOTHING, by) else [line]
        rates = _add_series(_rates(some, by, per, keys), keys)
        shown = rates[rates.at_risk >= least]
        words = _glossary(some, turns)
        if shown.empty:
            most = rates.at_risk.max()
            raise ValueError(f"no rate rests on {least} at risk or more, the most is {most}")
        if left_out := len(rates) - len(shown):
            words += f"<br>Not shown: {left_out} with fewer than {least} at risk."
        per_round = _add_series(acceptance.tokens(turns, keys), keys)
        pictures = _figure(shown, by, per), figures.yields(per_round, bonus=bonus)
        return Shown(pictures, words)

    bookmark = Bookmark("02_acceptance_rate", named=("least",))
    knobs = _knobs(guesses, rounds, slices)
    return Panel(knobs, draw, start=start, bookmark=bookmark, heights=(480, 350))


def _knobs(
    guesses: pd.DataFrame, rounds: pd.DataFrame, slices: Sequence[str]
) -> dict[str, ipywidgets.DOMWidget]:
    """A knob per label in which the rounds differ, and what to draw."""
    axes = [name for name in AXES if name in guesses and (name not in SLICES or name in slices)]
    per = "per guess, or per node whose guesses were looked at: whether any of them was accepted"
    fewer = "rates that rest on fewer are not shown"
    bonus = "count the bonus token"
    sliced: dict[str, ipywidgets.DOMWidget] = {
        name: choice([EVERY, *dict.fromkeys(rounds[name])]) for name in slices
    }
    return sliced | {
        "by": choice(axes, "what lies along the axis"),
        "per": choice(PER, per),
        "line": choice([*slices, NOTHING], "what has a line of its own"),
        "least": slider(LEASTS, 10, fewer, label="at risk, least"),
        "bonus": ipywidgets.Checkbox(True, description=bonus, indent=False),
    }


def _rates(guesses: pd.DataFrame, by: str, per: str, keys: Sequence[str]) -> pd.DataFrame:
    """Acceptance rates by one quantity, numbers that hardly ever repeat in bins."""
    rows = guesses.dropna(subset=[by])
    if rows.empty:
        raise ValueError(f"none of these guesses has a {by}: choose others")
    if edges := BINS.get(by):
        names = [f"{low:g} to {high:g}" for low, high in pairwise(edges)]
        if by == "confidence":
            names = [round((low + high) / 2, 4) for low, high in pairwise(edges)]
        at = np.digitize(rows[by].astype(float), edges[1:-1])
        rows = rows.assign(**{by: [names[one] for one in at]}).iloc[np.argsort(at, kind="stable")]
    return acceptance.rates(rows, [*keys, by], per=per)


def _add_series(table: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """The table with the name of each row's line."""
    label = "T = {:g}" if keys == ["temperature"] else "{}"
    return table.assign(series=table[keys[0]].map(label.format) if keys else "all of them")


def _figure(table: pd.DataFrame, by: str, per: str) -> go.Figure:
    """Numbers along an axis are joined by lines, kinds stand beside each other."""
    if by != "temperature" and pd.api.types.is_numeric_dtype(table[by]):
        figure = figures.acceptance(table, x=by, x_title=AXES[by])
    else:
        figure = figures.kinds(table.assign(kind=table[by].map(str)), x_title=AXES[by])
    return figure.update_yaxes(title=f"acceptance rate:<br>how often {PER[per]}")


def _glossary(guesses: pd.DataFrame, rounds: pd.DataFrame) -> str:
    """The field's words with the numbers of these guesses, as HTML."""
    looked = len(guesses)
    right = int(guesses.accepted.sum())
    count = len(rounds)
    accepted, emitted, tried = map(int, rounds[["accepted", "emitted", "tried"]].sum())
    rate = accepted / tried if tried else 0.0
    rows = [
        ("acceptance rate, per tried token", f"{accepted:,} accepted ÷ {tried:,} tried", rate),
        (
            "the same per guess that was looked at, siblings and all",
            f"{right:,} ÷ {looked:,}",
            right / looked,
        ),
        (
            "accepted per round, without the bonus",
            f"{accepted:,} ÷ {count:,} rounds",
            accepted / count,
        ),
        ("tokens per round, with the bonus", f"{emitted:,} ÷ {count:,} rounds", emitted / count),
    ]
    table = aligned_table(("what is called acceptance", "counted", "number"), rows, digits=3)
    apart = (emitted - accepted) / count
    return (
        f'{table}"Acceptance length", "mean accepted tokens" and "block efficiency" in papers and'
        f" servers are one of the last two, which differ by {apart:.2f} here."
    )
