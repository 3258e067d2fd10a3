"""A chart in the making: its panels with their axes, its legend and its headline."""

import math
import re
import textwrap
from collections.abc import Iterable

import pandas as pd
import plotly.graph_objects as go
from plotly.basedatatypes import BaseTraceType
from plotly.subplots import make_subplots

from specdec_lib.measure.intervals import LEAST_PROMPTS
from specdec_lib.show.figures.marks import ends_of, names_of
from specdec_lib.show.figures.theme import INK, SCREEN, escape, wrap

PLAIN = {"line": {"dash": "dot", "width": 1.5, "color": INK}, "layer": "below"}  # plain decoding
THIN = {"width": 1, "color": "rgba(128,128,128,0.35)"}
WIDEST = 1160  # pixels of a figure: it fits a page
LETTER, KEY, LEGEND_ROW = 6.8, 46, 24  # pixels: of a letter, of a legend's mark, of its line
HEADLINE, HEADLINE_LETTER = 21, 8.0  # pixels


class Chart:
    """A figure of panels, to which forms add their marks.

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
        width, height = min(WIDEST, round(120 + wide * across)), round(high * down)
        apart = {"horizontal_spacing": gap, "vertical_spacing": 100 / height if down > 1 else 0}
        apart |= {"shared_yaxes": shared_y, "subplot_titles": list(map(escape, names))}
        self.prompts: set[int] = set()
        self.machines: set[str] = set()
        self.figure = make_subplots(down, across, **apart)
        self.figure.update_annotations(font={"size": 14})
        self.figure.update_layout(template=SCREEN, width=width, height=height)
        self.figure.update_xaxes(title=wrap(x, max(20, int(width / across / 8))))
        self.figure.update_yaxes(title=wrap(y, max(16, int(high / 10))), col=1)
        self.panels = {
            name: {"row": place // across + 1, "col": place % across + 1}
            for place, name in enumerate(names)
        }

    def add(self, trace: BaseTraceType, panel: str = "") -> None:
        """Add a trace to its panel; a name that several traces have stands in the legend once."""
        known = {other.name for other in self.figure.data if other.showlegend}
        if trace.showlegend is not False:
            trace.showlegend = bool(trace.name) and trace.name not in known
        trace.legendgroup = trace.name
        self.figure.add_trace(trace, **self.panels[panel])

    def counted(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The same marks; the headline will say from how many `prompts` their intervals come, and
        which `machine` was timed.
        """
        if {"low", "prompts"} <= set(rows):
            self.prompts |= set(rows["prompts"].dropna().astype(int))
        if "machine" in rows:
            self.machines |= set(rows["machine"].dropna())
        return rows

    def axis(self, name: str, panel: str = "", **look: object) -> None:
        """Change the x or y axis of a panel, or of all."""
        update = {"x": self.figure.update_xaxes, "y": self.figure.update_yaxes}[name]
        update(look, **self.panels[panel] if panel else {})

    def name_places(self, axis: str, names: Iterable[object], *, longest: int = 24) -> None:
        """The names, each once, at 0, 1, 2, … along an axis: from the left, or from the top."""
        words = [wrap(name, longest) for name in names_of(names)]
        ends = [-0.5, len(words) - 0.5][:: 1 if axis == "x" else -1]
        ticks = {"tickvals": list(range(len(words))), "ticktext": words, "tickangle": 0}
        self.axis(axis, **ticks, range=ends, showgrid=False, showline=True)

    def start_at_zero(
        self, axis: str, rows: pd.DataFrame, room: float, least: float = 0.0, panel: str = ""
    ) -> None:
        """An axis, of one panel or of all, from 0 to `room` times the marks' greatest upper end, or
        `least`.
        """
        most = max(least, float(ends_of(rows, axis).max())) or 1.0
        self.axis(axis, panel, range=[0, room * most])

    def show_rates(self, rows: pd.DataFrame) -> None:
        """A y axis from 0 to 1, or less far where no interval comes near."""
        self.axis("y", range=[0, min(1.08, 1.15 * float(ends_of(rows, "y").max()) or 1.08)])

    def count_in_powers(self, values: Iterable[float]) -> None:
        """An x axis on which each doubling is one step, with a tick at each power of 2."""
        least, most = min(values), max(values)
        ticks = [2**power for power in range(64) if least <= 2**power <= most]
        self.axis("x", type="log", tickvals=ticks, ticktext=list(map(str, ticks)))

    def count_in_factors(self, axis: str, least: float, most: float, ticks: list[float]) -> None:
        """A logarithmic axis between two ends; plotly wants their exponents."""
        span, words = [math.log10(least), math.log10(most)], [f"{tick:g}" for tick in ticks]
        self.axis(axis, type="log", range=span, tickvals=ticks, ticktext=words)

    def part_rows(self, edges: Iterable[int]) -> None:
        """Thin lines between the rows of a lying chart, below so many of them."""
        for edge in edges:
            self.figure.add_hline(y=edge - 0.5, line=THIN, layer="below")

    def titled(self, text: str, *, plain: str = "", bare: str = "") -> go.Figure:
        """The figure under a headline, whose last line counts the prompts behind the intervals and
        names the machine; it grows by what headline, legend and panel names take.

        plain    the axis, "x" or "y", on which a dotted line marks plain decoding, 1
        bare     which marks have no interval, where that is not for want of prompts
        """
        if plain:
            {"x": self.figure.add_vline, "y": self.figure.add_hline}[plain](1, **PLAIN)
        layout = self.figure.layout
        room = int((layout.width - 60) / HEADLINE_LETTER)
        behind = _from_prompts(self.prompts, bare), _on_machines(self.machines)
        said = "; ".join(filter(None, behind))
        lines = textwrap.wrap(text, room) + textwrap.wrap(said[:1].upper() + said[1:], room)
        names = [trace.name for trace in self.figure.data if trace.showlegend]
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
        title = {"text": "<br>".join(map(escape, lines))}
        return self.figure.update_layout(title=title, showlegend=bool(names))


def _on_machines(names: set[str]) -> str:
    """The machines and their threads, from names such as "amd-epyc-avx2-1-threads"."""
    said = [re.sub(r"-(\d+)-threads$", r", \1 threads", name) for name in sorted(names)]
    return "machine: " * bool(said) + " and ".join(said).replace(", 1 threads", ", 1 thread")


def _from_prompts(counts: set[int], bare: str) -> str:
    """From how many prompts, whether they are enough for intervals, and what has none."""
    if not counts:
        return ""
    least, most = min(counts), max(counts)
    counted = f"{least} to {most}" if most > least else f"{least}"
    said = f"From {counted} prompt{'s' if most > 1 else ''}"
    if most < LEAST_PROMPTS:
        return f"{said}, too few for intervals"
    fewer = f" where {LEAST_PROMPTS} or more" if least < LEAST_PROMPTS else ""
    return f"{said}, with 95 % intervals{fewer}{bare and f', none {bare}'}"
