"""From a table to marks, and a chart in the making: its panels with their axes, its headline.

A mark has a `panel`, a `series`, `x` and `y`; perhaps an interval, `low` to `high`, a `text` beside
it, and a `note` when hovered over.
"""

import math
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from specdec_lib.measure.ratios import LEAST_PROMPTS
from specdec_lib.show.figures.theme import INK, SCREEN, escape, names_of, short, wrap

PLAIN = {"line": {"dash": "dot", "width": 1.5, "color": INK}, "layer": "below"}  # plain decoding
WIDEST = 1160  # pixels of a figure: it fits a page
# pixels: of a letter, of a legend's mark, of its line
LETTER = 6.8
KEY = 46
LEGEND_ROW = 24
# pixels
HEADLINE = 21
HEADLINE_LETTER = 8.2
WIDE_HEADLINE_LETTER = 8.5
Numbers = str | float | Sequence[float] | pd.Series


def check(table: pd.DataFrame, keys: str, values: str) -> None:
    """Raises ValueError if the table lacks a column or a row, or two rows agree in all `keys`.

    keys, values    names of columns, divided by spaces
    """
    columns = f"{keys} {values}".split()
    once = keys.split()
    if table.empty or not set(columns) <= set(table):
        raise ValueError(
            f"this figure needs rows with the columns {', '.join(columns)},"
            f" got {len(table)} rows of {list(table)}"
        )
    if once and (again := table[table.duplicated(once)][once]).size:
        first = ", ".join(f"{key} {value}" for key, value in again.iloc[0].items())
        raise ValueError(f"this figure needs at most one row per {keys}, got several for {first}")


def lanes(
    table: pd.DataFrame, names: str, lane: str = "", room: float = 0.7, order: Sequence[str] = ()
) -> pd.Series:
    """A coordinate per row on an axis on which the names of a column stand at 0, 1, 2, … in order
    of first appearance; the marks of one name stand beside each other around it.

    lane     the column that tells the marks of one name apart; without it all stand at its place
    room     the share of the distance between two names that all lanes of one take
    order    of the lanes, where it is another than that of first appearance
    """
    at = table[names].map(str).map(names_of(table[names]).index).astype(float)
    if not lane:
        return at
    order = list(order) or names_of(table[lane])
    aside = table[lane].map(str).map(order.index)
    own = aside.groupby(at)
    return at + room / len(order) * (aside - (own.transform("min") + own.transform("max")) / 2)


def marks(
    table: pd.DataFrame,
    x: Numbers,
    y: Numbers,
    *,
    series: str = "",
    panel: str = "",
    ends: str = "",
    text: str = "",
    note: str = "",
) -> pd.DataFrame:
    """The table with the columns of marks besides its own.

    x, y     a column, or numbers: one, or one per row
    ends     three columns: an interval's low end, the value and the high end; without them the
             marks have no interval, even if the table has columns `low` and `high`
    text     the column whose numbers stand beside the marks
    note     what a mark says when hovered over, with columns in it: "{rounds:,} rounds"
    Raises ValueError if an interval does not hold its value.
    """
    found = table.drop(columns=["low", "high"], errors="ignore").assign(
        x=table[x] if isinstance(x, str) else x,
        y=table[y] if isinstance(y, str) else y,
        series=table[series].map(str) if series else "",
        panel=table[panel].map(str) if panel else "",
    )
    if text:
        found["text"] = table[text].map(short)
    if note:
        found["note"] = [note.format_map(row) for row in table.to_dict("records")]
    if not ends:
        return found
    low, middle, high = (table[name].astype(float) for name in ends.split())
    if (wrong := (low > middle) | (middle > high)).any():
        got = table.loc[wrong, ends.split()].iloc[0].tolist()
        raise ValueError(f"{' ≤ '.join(ends.split())} must hold in every row, got {got}")
    return found.assign(low=low, high=high)


def ends_of(rows: pd.DataFrame, value: str) -> pd.Series:
    """Per mark, the interval's end farther from 0, or the value without one, plus its `base`."""
    ends = middle = rows[value].astype(float)
    if "high" in rows:
        ends = rows["high"].where(middle >= 0, rows["low"]).fillna(middle)
    return ends + rows.get("base", 0)


def span_of(values: pd.DataFrame, before: float = 0, after: float = 0) -> tuple[float, float]:
    """The least and the greatest value, moved out by `before` and `after` times their distance."""
    low = float(np.nanmin(values.astype(float)))
    high = float(np.nanmax(values.astype(float)))
    room = (high - low) or 1.0
    return low - before * room, high + after * room


def named_rows(table: pd.DataFrame) -> Iterator[Any]:
    """The rows of a table, each a named tuple."""
    return table.itertuples()


def groups_of(table: pd.DataFrame, by: str | list[str]) -> Iterator[tuple[Any, pd.DataFrame]]:
    """The values of a column (or of several), in their order, each with its rows."""
    yield from table.groupby(by, sort=False)


class Chart:
    """A figure of panels, to which forms add marks; methods that change an axis return the chart.

    panels     their names, of which at most three, or `columns`, stand side by side
    wide       pixels of a panel; those of the axis are added
    high       pixels of a row of panels, without what stands above the panels
    x, y       titles of the axes; that of y stands at the first panel of each row
    """

    def __init__(
        self,
        panels: Iterable[str] = ("",),
        *,
        wide: float = 640,
        high: float = 360,
        x: str = "",
        y: str = "",
        columns: int = 0,
        shared_y: bool = True,
        gap: float = 0.05,
    ) -> None:
        names = names_of(panels)
        across = columns or (2 if len(names) == 4 else min(3, len(names)))
        down = -(-len(names) // across)
        width = min(WIDEST, round(120 + wide * across))
        height = round(high * down)
        apart = {"horizontal_spacing": gap, "vertical_spacing": 100 / height if down > 1 else 0}
        apart |= {"shared_yaxes": shared_y, "subplot_titles": list(map(escape, names))}
        self.drawn: list[pd.DataFrame] = []  # marks, of which the headline and axes tell
        self.figure = make_subplots(down, across, **apart)
        self.figure.update_annotations(font={"size": 14})
        self.figure.update_layout(template=SCREEN, width=width, height=height)
        self.figure.update_xaxes(title=wrap(x, max(20, int(width / across / 8))))
        self.figure.update_yaxes(title=wrap(y, max(16, int(high / 10))), col=1)
        self.panels = {
            name: {"row": place // across + 1, "col": place % across + 1}
            for place, name in enumerate(names)
        }

    def add(self, trace: Any, panel: str = "") -> None:
        """Add a trace to its panel; a name that several traces have stands in the legend once."""
        drawn: Any = self.figure.data
        known = {other.name for other in drawn if other.showlegend}
        shown = trace.showlegend is not False and bool(trace.name) and trace.name not in known
        trace.update(showlegend=shown, legendgroup=trace.name)
        place: Any = self.panels[panel]
        self.figure.add_trace(trace, **place)

    def axis(self, name: str, panel: str = "", **look: Any) -> "Chart":
        """Change the x or y axis of a panel, or of all."""
        place = self.panels[panel] if panel else {}
        getattr(self.figure, f"update_{name}axes")(look, **place)
        return self

    def name_places(self, axis: str, names: Iterable[object], *, longest: int = 24) -> "Chart":
        """The names, each once, at 0, 1, 2, … along an axis: from the left, or from the top."""
        words = [wrap(name, longest) for name in names_of(names)]
        first = -0.5
        last = len(words) - 0.5
        return self.axis(
            axis,
            tickvals=list(range(len(words))),
            ticktext=words,
            tickangle=0,
            range=[first, last] if axis == "x" else [last, first],
            showgrid=False,
            showline=True,
        )

    def start_at_zero(
        self, axis: str, room: float, *, least: float = 0, top: float = math.inf, panel: str = ""
    ) -> "Chart":
        """An axis, of a panel or all, from 0 to `room` times the greatest upper end or `least`."""
        own = [rows[rows["panel"] == panel] if panel else rows for rows in self.drawn]
        most = max([least, *(float(ends_of(rows, axis).max()) for rows in own if len(rows))])
        return self.axis(axis, panel, range=[0, min(top, room * (most or 1.0))])

    def count_in_factors(
        self, axis: str, ticks: Sequence[float], ends: Sequence[float] = ()
    ) -> "Chart":
        """A logarithmic axis with these ticks, between two ends; plotly wants their exponents."""
        look: dict[str, Any] = {"type": "log"}
        if ends:
            look["range"] = [math.log10(end) for end in ends]
        look["tickvals"] = ticks
        look["ticktext"] = [f"{tick:g}" for tick in ticks]
        return self.axis(axis, **look)

    def count_in_powers(self, values: Iterable[float]) -> "Chart":
        """An x axis on which each doubling is one step, with a tick at each power of 2."""
        least = min(values)
        most = max(values)
        powers = [2**power for power in range(64) if least <= 2**power <= most]
        return self.count_in_factors("x", powers)

    def _headline_room(self) -> int:
        """Characters in a line of the headline, which begins right of the first panel's names: in a
        wide font too, it ends within the figure.
        """
        layout: Any = self.figure.layout
        names = [re.sub("<[^>]*>", "", line) for line in _lines(layout.yaxis.ticktext)]
        longest = max(map(len, names), default=0)
        beside = (layout.width - 40 - LETTER * longest) / WIDE_HEADLINE_LETTER
        return int(min((layout.width - 84) / HEADLINE_LETTER, beside))

    def titled(self, text: str, *, plain: str = "", bare: str = "", room: int = 0) -> go.Figure:
        """The figure under a headline, whose last line tells of prompts and machine; it grows by
        what headline, legend and panel names take.

        plain    the axis, "x" or "y", on which a dotted line marks plain decoding, 1
        bare     which marks have no interval, where that is not for want of prompts
        room     characters in a line of the headline, where the names left of the panels take so
                 much that the figure's width does not tell
        """
        if plain == "x":
            self.figure.add_vline(1, **PLAIN)
        if plain == "y":
            self.figure.add_hline(1, **PLAIN)
        layout: Any = self.figure.layout
        room = room or self._headline_room()
        lines = textwrap.wrap(text, room) + textwrap.wrap(self._behind(bare), room)
        traces: Any = self.figure.data
        names = [trace.name for trace in traces if trace.showlegend]
        ticks = max(map(len, layout.yaxis.ticktext or [""]))
        # plotly gives all entries the room of the widest, unless all stand in one line
        wide = [KEY + LETTER * len(name) for name in names]
        most = layout.width - 80 - min(26, ticks) * LETTER
        columns = len(names) if sum(wide) <= most else max(1, int(most / max(wide)))
        rows = -(-len(names) // columns) if names else 0
        head = 18 + HEADLINE * len(lines)
        top = head + LEGEND_ROW * rows + (30 if any(self.panels) else 8)
        height = layout.height + top
        legend = {"yref": "container", "y": 1 - head / height, "yanchor": "top"}
        self.figure.update_layout(height=height, margin={"t": top}, legend=legend)
        # plotly begins a headline of several lines 11 pixels higher than one of a single line
        title = {"text": "<br>".join(map(escape, lines)), "pad": {"t": 16 + 11 * (len(lines) > 1)}}
        return self.figure.update_layout(title=title, showlegend=bool(names))

    def _behind(self, bare: str) -> str:
        """From how many prompts it is, which have intervals, and the machines that were timed."""
        counts: set[float] = set()
        machines: set[str] = set()
        for rows in self.drawn:
            if {"low", "prompts"} <= set(rows):
                counts.update(rows["prompts"].dropna())
            if "machine" in rows:
                machines.update(rows["machine"].dropna())
        said = _prompts_behind(counts, bare) if counts else ""
        if machines:
            names = " and ".join(_machine(name) for name in sorted(machines))
            said += f"; machine: {names}" if said else f"Machine: {names}"
        return said


def _lines(names: Iterable[str] | None) -> list[str]:
    """The lines of names that are broken."""
    return [line for name in names or () for line in name.split("<br>")]


def _prompts_behind(counts: set[float], bare: str) -> str:
    """From how many prompts the marks are, and whether they have intervals."""
    least = int(min(counts))
    most = int(max(counts))
    counted = f"{least} to {most}" if most > least else f"{least}"
    said = f"From {counted} prompts" if most > 1 else f"From {counted} prompt"
    if most < LEAST_PROMPTS:
        return f"{said}, too few for intervals"
    said += ", with 95 % intervals"
    if least < LEAST_PROMPTS:
        said += f" where {LEAST_PROMPTS} or more"
    return f"{said}, none {bare}" if bare else said


def _machine(name: str) -> str:
    """A machine's name in words: "zen-4-threads" is "zen, 4 threads"."""
    words = re.sub(r"-(\d+)-threads$", r", \1 threads", name)
    return re.sub(r", 1 threads$", ", 1 thread", words)
