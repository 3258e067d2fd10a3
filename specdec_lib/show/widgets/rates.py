"""Knobs for acceptance: of which guesses, by what, and whether the bonus counts."""

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import ipywidgets
import numpy as np
import pandas as pd
import plotly.graph_objects as go

from specdec_lib.measure import acceptance
from specdec_lib.show import figures
from specdec_lib.show.widgets.knobs import check_names, look, slider
from specdec_lib.show.widgets.panel import Panel, Shown

EVERY = "all"
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
BINNED: Mapping[str, Sequence[float]] = MappingProxyType(
    {
        "confidence": (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
        "repetition": (0.0, 0.1, 0.3, 0.5, 1.0),
    }
)
LEAST = (1, 5, 10, 20, 50, 100, 200, 500)
HEIGHTS = (460, 350)  # pixels
ROOMY = 3  # series whose numbers still have room beside each other
TOOLTIPS = {
    "by": "what the rates are told apart by, along the axis",
    "per": "per guess, or per node whose guesses were looked at: whether any of them was accepted",
    "line": "what has a line of its own",
    "least": "rates that rest on fewer are not shown",
}


def acceptance_explorer(
    guesses: pd.DataFrame, rounds: pd.DataFrame, *, start: Mapping[str, Any] = MappingProxyType({})
) -> Panel:
    """Knobs over `figures.acceptance` or `figures.kinds`, and `figures.yields` below: which
    guesses, by what, and whether the bonus counts.

    guesses    of `acceptance.collect`; further columns that are offered where they are there:
               draft, domain, temperature, rule, `repetition` of the text (0–1), and `gap` (see
               `acceptance.with_gaps`)
    rounds     of the same call, with the same labels
    start      where knobs stand first, by name

    The knobs are draft, domain, temperature and rule (those that the tables tell apart), by, per
    ("guess", or "node": whether any of the siblings is accepted), line (what has a line of its
    own), least (at risk, fewer are not shown) and bonus.
    Raises ValueError for a start that is none of a knob's choices, or an empty table.
    """
    made = _Rates(guesses, rounds)
    if guesses.empty or rounds.empty:
        raise ValueError(
            f"acceptance is explored over guesses and rounds, got {len(guesses)} and {len(rounds)}"
            " rows"
        )
    knobs = made.knobs()
    check_names(start, knobs)
    for name, value in start.items():
        choices = made.choices().get(name, (False, True))
        if value not in choices:
            raise ValueError(
                f"the knob {name!r} is turned to one of {list(choices)}, got {value!r}"
            )
        knobs[name].value = value
    return Panel(knobs, made.draw, heights=HEIGHTS)


@dataclass(frozen=True, eq=False)
class _Rates:
    """What the knobs mean."""

    guesses: pd.DataFrame
    rounds: pd.DataFrame

    def choices(self) -> dict[str, list]:
        """What each knob but the bonus may be turned to."""
        told = [name for name in SLICES if name in self.rounds and self.rounds[name].nunique() > 1]
        found = {name: [EVERY, *dict.fromkeys(self.rounds[name])] for name in told}
        by = [
            name for name in AXES if name in self.guesses and (name not in SLICES or name in told)
        ]
        return found | {
            "by": by,
            "per": ["node", "guess"],
            "line": [*told, "nothing"],
            "least": list(LEAST),
        }

    def knobs(self) -> dict[str, ipywidgets.ValueWidget]:
        """All knobs."""
        found: dict[str, ipywidgets.ValueWidget] = {}
        for name, values in self.choices().items():
            if name == "least":
                found[name] = slider(name, values, LEAST[2], tooltip=TOOLTIPS[name])
                found[name].description = "at risk, least"
            else:
                options = [(str(value), value) for value in values]
                found[name] = ipywidgets.Dropdown(
                    options=options, description=name, **look(name, TOOLTIPS.get(name, ""))
                )
        return found | {
            "bonus": ipywidgets.Checkbox(
                value=True, description="count the bonus token", indent=False
            )
        }

    def draw(
        self, *, by: str, per: str, line: str, least: int, bonus: bool, **slices: Any
    ) -> Shown:
        """Rates by one quantity, tokens per round, and the field's words with these numbers in
        them.
        """
        guesses, rounds = (_chosen(table, slices) for table in (self.guesses, self.rounds))
        if guesses.empty or rounds.empty:
            asked = ", ".join(f"{name} {value}" for name, value in slices.items() if value != EVERY)
            raise ValueError(f"there is no guess of {asked}: choose others")
        rows = _binned(guesses.dropna(subset=[by]), by)
        if rows.empty:
            raise ValueError(f"none of these guesses has a {by}: choose others")
        keys = [] if line in ("nothing", by) else [line]
        found = acceptance.rates(rows, [*keys, by], per=per)
        enough = found[found.at_risk >= least]
        if enough.empty:
            raise ValueError(
                f"no rate rests on {least} at risk or more, the most is {found.at_risk.max()}"
            )
        enough, yielded = _named(enough, keys), _named(acceptance.tokens(rounds, keys), keys)
        counts = [
            f"{name}: {', '.join(f'{count:,}' for count in own.at_risk)}"
            for name, own in enough.groupby("series", sort=False)
        ]
        counted = f"at risk, by {by} from the left: {'; '.join(counts)}"
        if len(found) > len(enough):
            counted += f"; not shown: {len(found) - len(enough)} with fewer than {least}"
        return Shown(
            (_figure(enough, by, per), figures.yields(yielded, bonus=bonus)),
            _words(guesses, rounds, counted),
        )


def _chosen(table: pd.DataFrame, slices: Mapping[str, Any]) -> pd.DataFrame:
    for name, value in slices.items():
        if value != EVERY:
            table = table[table[name] == value]
    return table


def _named(table: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """The table with the name of each row's series."""
    names = (
        [f"T = {value:g}" if keys[0] == "temperature" else str(value) for value in table[keys[0]]]
        if keys
        else ["all of them"] * len(table)
    )
    return table.assign(series=names)


def _binned(table: pd.DataFrame, by: str) -> pd.DataFrame:
    """The table with a number that is hardly ever the same twice replaced by the middle of its bin,
    or its bin's name, in order.
    """
    if by not in BINNED:
        return table
    edges = np.array(BINNED[by])
    place = np.clip(
        np.searchsorted(edges, table[by].astype(float), side="right") - 1, 0, len(edges) - 2
    )
    if by == "confidence":
        return table.assign(**{by: ((edges[:-1] + edges[1:]) / 2)[place].round(4)})
    names = np.array([f"{low:g} to {high:g}" for low, high in pairwise(edges)], dtype=object)
    return table.assign(**{by: names[place]}).iloc[np.argsort(place, kind="stable")]


def _figure(table: pd.DataFrame, by: str, per: str) -> go.Figure:
    """Numbers along an axis are joined by lines, kinds stand beside each other."""
    if by != "temperature" and pd.api.types.is_numeric_dtype(table[by]):
        figure = figures.acceptance(table, x=by, x_title=AXES[by])
    else:
        figure = figures.kinds(table.assign(kind=table[by].map(str)), x_title=AXES[by])
        if table["series"].nunique() > ROOMY:
            figure.update_layout(annotations=[])
    words = "a guess is accepted" if per == "guess" else "one of a node's guesses is accepted"
    return figure.update_yaxes(title=f"acceptance rate:<br>how often {words}")


def _words(guesses: pd.DataFrame, rounds: pd.DataFrame, counted: str) -> str:
    """The glossary, with what was counted in it."""
    count, accepted, emitted, tried = (
        len(rounds),
        int(rounds.accepted.sum()),
        int(rounds.emitted.sum()),
        int(rounds.tried.sum()),
    )
    looked, right = len(guesses), int(guesses.accepted.sum())
    lines = [
        f"<b>acceptance rate</b>, per tried token: {accepted:,} accepted ÷ {tried:,} tried ="
        f" {accepted / tried if tried else 0:.3f}; "
        f"per guess that was looked at, siblings and all: {right:,} ÷ {looked:,} ="
        f" {right / looked:.3f}",
        f"<b>accepted per round</b>, without the bonus: {accepted:,} ÷ {count:,} rounds ="
        f" {accepted / count:.2f}",
        f"<b>tokens per round</b>, with the bonus: {emitted:,} emitted ÷ {count:,} rounds ="
        f" {emitted / count:.2f}",
        '"acceptance length", "mean accepted tokens" and "block efficiency" in papers and servers'
        " are one of the last two: ask which, they differ by "
        f"{(emitted - accepted) / count:.2f} here",
        html.escape(counted),
    ]
    return "<ul>" + "".join(f"<li>{line}</li>" for line in lines) + "</ul>"
